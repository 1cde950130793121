//! Generates random entries and packets for a program. Both depend on the seed and on names only, so a shrunk
//! program gets the same ones.

use bits::Bits;
use engine::{ActionCall, ActionSpec, TableEntry};
use ir::{KeyValue, MatchKind, Program, TableId, ValueSetId};
use p4_reference as reference;
use rng::SplitMix64;

/// Everything that a control plane writes before the first packet.
#[derive(Clone, Debug, Default)]
pub struct EntryPlan {
    /// EntryPlan with their tables.
    pub tables: Vec<(TableId, TableEntry)>,
    /// Members of value sets.
    pub value_sets: Vec<(ValueSetId, Vec<KeyValue>)>,
}

fn named(seed: u64, name: &str) -> SplitMix64 {
    let hash = name.bytes().fold(0u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    SplitMix64::new(rng::mix([seed, hash, 7]))
}

fn small(rng: &mut SplitMix64, width: u32) -> Bits {
    let value = match rng.below(4) {
        0 => u128::from(rng.next_u64()),
        1 => u128::MAX,
        _ => u128::from(rng.below(8)),
    };
    Bits::new(value, width)
}

fn key(rng: &mut SplitMix64, kind: MatchKind, width: u32) -> KeyValue {
    let value = small(rng, width);
    match kind {
        MatchKind::Exact | MatchKind::Selector => KeyValue::Exact(value),
        MatchKind::Lpm => {
            let length = rng.below(u64::from(width) + 1) as u32;
            KeyValue::Lpm(value.and(&Bits::ones(width).shl(width - length)), length)
        }
        MatchKind::Ternary => {
            let mask = small(rng, width);
            KeyValue::Ternary(value.and(&mask), mask)
        }
        MatchKind::Range => {
            let other = small(rng, width);
            let (low, high) = if value.unsigned_cmp(&other).is_le() { (value, other) } else { (other, value) };
            KeyValue::Range(low, high)
        }
        MatchKind::Optional if rng.below(3) == 0 => KeyValue::Any,
        MatchKind::Optional => KeyValue::Exact(value),
    }
}

/// Returns random entries for the tables and value sets of a program.
pub fn entries(program: &Program, seed: u64) -> EntryPlan {
    let mut all = EntryPlan::default();
    for (id, table) in &program.tables {
        let mut rng = named(seed, &table.name);
        let kinds: Vec<&ir::Key> = table.keys.iter().filter(|key| key.kind != MatchKind::Selector).collect();
        if table.const_entries || kinds.is_empty() || table.actions.is_empty() {
            continue;
        }
        let ranked =
            kinds.iter().any(|key| matches!(key.kind, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional));
        for number in 0..rng.below(6) {
            let keys = kinds.iter().map(|table_key| key(&mut rng, table_key.kind, table_key.width)).collect();
            let chosen = &table.actions[rng.below(table.actions.len() as u64) as usize];
            let params = &program.actions[chosen.action].params;
            let args = params.iter().map(|param| small(&mut rng, program.slots[param.slot].width)).collect();
            let priority = if ranked { 1 + number as i32 } else { 0 };
            all.tables.push((id, TableEntry::new(keys, priority, chosen.action, args)));
        }
    }
    for (id, set) in &program.value_sets {
        let mut rng = named(seed, &set.name);
        for _ in 0..rng.below(4) {
            all.value_sets.push((id, set.fields.iter().map(|(_, width, kind)| key(&mut rng, *kind, *width)).collect()));
        }
    }
    all
}

/// Returns a match in the form of the reference evaluator.
pub fn key_match(key: &KeyValue) -> reference::KeyMatch {
    match key {
        KeyValue::Exact(value) => reference::KeyMatch::Exact(value.to_big()),
        KeyValue::Lpm(value, length) => reference::KeyMatch::Prefix(value.to_big(), *length),
        KeyValue::Ternary(value, mask) => reference::KeyMatch::Masked(value.to_big(), mask.to_big()),
        KeyValue::Range(low, high) => reference::KeyMatch::Range(low.to_big(), high.to_big()),
        KeyValue::Any => reference::KeyMatch::Any,
    }
}

/// Returns an action call in the form of the reference evaluator.
pub fn action_call(program: &Program, call: &ActionCall) -> reference::ActionCall {
    let name = program.actions[call.action].name.clone();
    reference::ActionCall { name, args: call.args.iter().map(Bits::to_big).collect() }
}

/// Returns an entry in the form of the reference evaluator; `None` if its action is a member of a profile.
pub fn reference_entry(program: &Program, entry: &TableEntry) -> Option<reference::ReferenceEntry> {
    let ActionSpec::Direct(call) = &entry.action else { return None };
    Some(reference::ReferenceEntry {
        keys: entry.keys.iter().map(key_match).collect(),
        priority: entry.priority.into(),
        action: action_call(program, call),
    })
}

/// Returns a random packet: bytes that are often small, so that keys and conditions hold.
pub fn packet(seed: u64, number: u64) -> Vec<u8> {
    let mut rng = SplitMix64::new(rng::mix([seed, number, 11]));
    let length = match rng.below(6) {
        0 => rng.below(30),
        _ => 24 + rng.below(50),
    };
    let style = rng.below(3);
    (0..length)
        .map(|_| match (style, rng.below(4)) {
            (0, 0..=2) | (1, 0) => rng.below(8) as u8,
            (_, 3) => 0xff,
            _ => rng.next_u64() as u8,
        })
        .collect()
}
