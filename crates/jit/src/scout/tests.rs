//! Selection of the tables that are looked up inline, by program and by table size.

use std::sync::Arc;

use bits::Bits;
use engine::{Now, TableEntry};
use ir::KeyValue;

use super::*;
use crate::{NativeProgram, Plan, Progress, Speed, text};

/// Builds a program whose control applies `hashed`, `ranged` and `listed` as given, after a parser.
fn program(control: &str) -> Program {
    text::program(&format!(
        "program test
errors {{ NoError }}
header_type t {{ a: 64  b: 16 }}
header h: t
metadata x: 64
metadata y: 16
register r: 16 size 1
argument set_x.to: 64
action set_x(to: set_x.to) body set_x
table hashed {{
  key k: exact 64 = h.a
  action set_x
  default set_x(0x0:64)
  size 4096
}}
table ranged {{
  key k: exact 64 = h.a
  key l: range 16 = h.b
  action set_x
  default set_x(0x0:64)
}}
table listed {{
  key k: ternary 4 = h.b[3:0]
  action set_x
  default set_x(0x0:64)
}}
table few {{
  key k: ternary 3 = h.b[2:0]
  action set_x
  default set_x(0x7:64)
}}
role parser: P
role ingress: I
action_body set_x {{
  block start:
    x = set_x.to
    return
}}
parser P {{
  block start:
    extract h
    return
}}
control I {{
  block start:
{control}    return
}}
"
    ))
}

/// Returns a unit of the whole program, with `x` as its result.
fn unit(program: &Program) -> Unit {
    let steps = ["parser", "ingress"].map(|role| Step::Run(program.blocks[role])).to_vec();
    Unit { steps, fresh: true, results: Some(vec![program.slot_named("x").unwrap()]), ..Unit::default() }
}

fn prefetch_layout(program: &Program) -> PrefetchLayout {
    PrefetchLayout::new(program, &FrameLayout::new(program, &[], &[], false).unwrap(), &unit(program), true, false)
}

/// Returns the inline lookups for which code is generated, for each table that the control applies, except enumeration
/// of few keys: dense, hashed, called.
fn ways(control: &str) -> Vec<[bool; 3]> {
    let ways =
        |prefetched: &PrefetchedTable| [prefetched.dense, prefetched.hashed, prefetched.called].map(|at| at.is_some());
    prefetch_layout(&program(control)).tables.iter().map(ways).collect()
}

#[test]
fn a_table_alone_is_looked_up_in_place_where_no_header_is_written() {
    assert_eq!(ways("    apply hashed\n"), [[true, true, false]]);
    assert_eq!(ways("    apply ranged\n"), [[false, false, true]]);
    let writes = "    h.b = 0x1:16\n";
    assert_eq!(ways(&format!("    apply hashed\n{writes}")), [[true, false, false]], "arrays still are");
    assert_eq!(ways(&format!("    apply ranged\n{writes}")), [[false, false, false]]);
    assert_eq!(ways("    apply hashed\n    x = 0x1:64\n"), [[true, true, false]], "metadata is not a header");
}

#[test]
fn several_tables_are_looked_up_in_place_even_if_headers_are_written() {
    let control = "    apply hashed\n    apply ranged\n    h.b = 0x1:16\n";
    assert_eq!(ways(control), [[true, true, false], [false, false, true]]);
}

/// A program and its tables, with entries whose keys are far apart.
struct Filled {
    prefetch: PrefetchLayout,
    objects: Objects,
}

impl Filled {
    /// Creates the tables that the control applies, with the given numbers of entries.
    fn new(control: &str, entries: &[u64]) -> Filled {
        let program = program(control);
        let mut objects = Objects::new(&program);
        for (prefetched, entries) in prefetch_layout(&program).tables.iter().zip(entries) {
            let table = &program.tables[prefetched.table];
            for entry in 1..=*entries {
                let key = |key: &ir::Key| match key.kind {
                    MatchKind::Exact => {
                        KeyValue::Exact(Bits::new(u128::from(entry.wrapping_mul(0x9e37_79b9_7f4a_7c15)), key.width))
                    }
                    MatchKind::Ternary => KeyValue::Ternary(Bits::new(entry.into(), key.width), Bits::ones(key.width)),
                    _ => KeyValue::Range(Bits::zero(key.width), Bits::ones(key.width)),
                };
                let keys: Vec<KeyValue> = table.keys.iter().map(key).collect();
                let priority = i32::from(table.keys.iter().any(|key| key.kind != MatchKind::Exact));
                let entry = TableEntry::new(keys, priority, table.actions[0].action, vec![Bits::new(entry.into(), 64)]);
                objects.insert(prefetched.table, entry).unwrap();
            }
        }
        Filled { prefetch: prefetch_layout(&program), objects }
    }

    /// Returns the size of each table in bytes.
    fn bytes(&self) -> Vec<usize> {
        self.prefetch.tables.iter().map(|prefetched| self.objects.inline_lookup(prefetched.table).unwrap().1).collect()
    }

    /// Returns whether any table needs a bulk lookup, and which tables are looked up inline.
    fn prepared(&self, near: usize) -> (bool, Vec<bool>) {
        let mut memory = vec![0; self.prefetch.words];
        let prepared = prepare(&self.prefetch, &mut memory, (0, near), None, &self.objects);
        let in_place = self.prefetch.tables.iter().map(|prefetched| bulk_lookup::is_inline(prefetched, &memory));
        (prepared.needs_bulk_lookup, in_place.collect())
    }
}

#[test]
fn a_table_alone_is_near_if_it_fits() {
    for control in ["    apply hashed\n", "    apply ranged\n", "    apply listed\n", "    apply few\n"] {
        let filled = Filled::new(control, &[3]);
        let bytes = filled.bytes()[0];
        assert_eq!(filled.prepared(bytes), (false, vec![true]), "{control}");
        assert_eq!(filled.prepared(bytes - 1), (true, vec![false]), "{control}");
    }
}

#[test]
fn several_tables_are_near_if_a_quarter_holds_them() {
    let filled = Filled::new("    apply hashed\n    apply ranged\n    apply listed\n", &[3, 3, 3]);
    let all: usize = filled.bytes().iter().sum();
    assert_eq!(filled.prepared(all * 4), (false, vec![true; 3]));
    assert_eq!(filled.prepared(0), (true, vec![false, false, true]), "an array is looked up in place all the same");
}

#[test]
fn small_tables_among_large_ones_are_looked_up_in_place() {
    let filled = Filled::new("    apply hashed\n    apply ranged\n", &[3000, 3]);
    let [large, small] = filled.bytes()[..] else { panic!("there are two tables") };
    assert!(large * 4 > small * 64, "{small} bytes are not small beside {large}");
    assert_eq!(filled.prepared(small * 64), (true, vec![false, true]));
    assert_eq!(filled.prepared(small * 64 - 1), (true, vec![false, false]));
}

#[test]
fn notes_are_made_anew_when_a_table_has_changed() {
    let program = program("    apply hashed\n");
    let (prefetch, mut objects) = (prefetch_layout(&program), Objects::new(&program));
    let (prefetched, mut memory) = (prefetch.tables[0], vec![0; prefetch.words]);
    let before = prepare(&prefetch, &mut memory, (0, usize::MAX), None, &objects);
    memory[prefetched.records] = 0;
    assert_eq!(prepare(&prefetch, &mut memory, (0, usize::MAX), Some(before), &objects), before);
    assert_eq!(memory[prefetched.records], 0, "nothing has changed");
    let action = program.tables[prefetched.table].actions[0].action;
    let entry = TableEntry::new(vec![KeyValue::Exact(Bits::new(1, 64))], 0, action, vec![Bits::new(1, 64)]);
    objects.insert(prefetched.table, entry).unwrap();
    assert_ne!(prepare(&prefetch, &mut memory, (0, usize::MAX), Some(before), &objects), before);
    assert_ne!(memory[prefetched.records], 0);
}

/// Keys of packets of the previous batch are not mistaken for keys of this one.
#[test]
fn a_table_that_grows_within_a_batch_answers_these_packets() {
    let program = Arc::new(program("    apply hashed\n    recirculate\n"));
    let mut objects = Objects::new(&program);
    let (table, action) = (prefetch_layout(&program).tables[0].table, program.actions.keys().next().unwrap());
    let fill = |objects: &mut Objects, entries: std::ops::Range<u64>| {
        for entry in entries {
            let number = |value: u64| Bits::new(value.into(), 64);
            let key = vec![KeyValue::Exact(number(entry << 32 | 1))];
            objects.insert(table, TableEntry::new(key, 0, action, vec![number(entry)])).unwrap();
        }
    };
    fill(&mut objects, 1..5);
    let plan = Plan { units: vec![unit(&program)], ..Plan::default() };
    let mut compiled = NativeProgram::new(&program, &plan, Speed::Run).unwrap().with_near_bytes(0);
    let mut packet = compiled.packet(Vec::new());
    let mut run = |compiled: &NativeProgram, objects: &mut Objects, key: u64, grows: bool| {
        let frame = [(key << 32 | 1).to_be_bytes().as_slice(), &[0, 0]].concat();
        let (mut one, mut other) = (frame.clone(), frame);
        let mut batch = compiled.batch(0, &mut packet);
        batch.push(&mut one, 0);
        batch.push(&mut other, 0);
        for number in 0..2 {
            assert_eq!(batch.run(objects, Now { ns: 0 }), Progress { done: number..number, stopped: true });
            assert_eq!(batch.finished(number).result(0), key, "packet {number}");
            if grows && number == 0 {
                fill(objects, 5..1000);
            }
        }
    };
    run(&compiled, &mut objects, 1, false);
    compiled = compiled.with_near_bytes(objects.inline_lookup(table).unwrap().1);
    run(&compiled, &mut objects, 2, true);
}

fn number(value: u64) -> Bits {
    Bits::new(value.into(), 64)
}

/// Builds a frame with these values of `a` and `b`.
fn frame(a: u64, b: u16) -> Vec<u8> {
    [a.to_be_bytes().as_slice(), &b.to_be_bytes()].concat()
}

/// Returns the final value of `x` for packets that run as a batch.
fn results(
    compiled: &NativeProgram,
    objects: &mut Objects,
    packet: &mut crate::Packet,
    mut frames: Vec<Vec<u8>>,
) -> Vec<u64> {
    let (mut batch, count) = (compiled.batch(0, packet), frames.len());
    batch.extend(frames.iter_mut().map(|frame| (&mut frame[..], 0)));
    let one = |at| {
        assert_eq!(batch.run(objects, Now { ns: 0 }), Progress { done: at..at, stopped: true });
        batch.finished(at).result(0)
    };
    (0..count).map(one).collect()
}

#[test]
fn records_of_few_keys_follow_changes_of_the_table() {
    let program = Arc::new(program("    apply few\n"));
    assert!(prefetch_layout(&program).tables[0].each.is_some());
    let mut objects = Objects::new(&program);
    let (table, action) = (prefetch_layout(&program).tables[0].table, program.actions.keys().next().unwrap());
    let plan = Plan { units: vec![unit(&program)], ..Plan::default() };
    let compiled = NativeProgram::new(&program, &plan, Speed::Run).unwrap();
    let mut packet = compiled.packet(Vec::new());
    let mut all =
        |objects: &mut Objects| results(&compiled, objects, &mut packet, (0..16).map(|b| frame(0, b)).collect());
    assert_eq!(all(&mut objects), [7; 16]);
    let of = |value: u128, mask: u128| vec![KeyValue::Ternary(Bits::new(value, 3), Bits::new(mask, 3))];
    objects.insert(table, TableEntry::new(of(4, 4), 1, action, vec![number(44)])).unwrap();
    objects.insert(table, TableEntry::new(of(6, 7), 2, action, vec![number(66)])).unwrap();
    assert_eq!(all(&mut objects), [[7, 7, 7, 7, 44, 44, 66, 44]; 2].concat());
    objects.modify(table, TableEntry::new(of(6, 7), 2, action, vec![number(67)])).unwrap();
    assert_eq!(all(&mut objects)[6], 67);
    objects.delete(table, &of(4, 4), 1).unwrap();
    assert_eq!(all(&mut objects), [[7, 7, 7, 7, 7, 7, 67, 7]; 2].concat());
}

/// A packet may reach a table that its scout did not. The key there is then one of the previous batch.
#[test]
fn packets_that_were_not_scouted_to_a_table_look_up_themselves() {
    let control = "    read r[0x0:32] -> y
    branch h.b == 0x0:16 -> makes_requests else other
  block other:
    branch y == 0x0:16 -> done else makes_requests
  block makes_requests:
    apply hashed
    goto done
  block done:
";
    let program = Arc::new(program(control));
    let prefetched = prefetch_layout(&program).tables[0];
    assert!(prefetched.is_certain, "the packet does not compare its key");
    let mut objects = Objects::new(&program);
    let action = program.actions.keys().next().unwrap();
    for entry in 1..9 {
        let key = vec![KeyValue::Exact(number(entry))];
        objects.insert(prefetched.table, TableEntry::new(key, 0, action, vec![number(entry * 100)])).unwrap();
    }
    let plan = Plan { units: vec![unit(&program)], ..Plan::default() };
    let compiled = NativeProgram::new(&program, &plan, Speed::Run).unwrap().with_near_bytes(0);
    let mut packet = compiled.packet(Vec::new());
    let mut run = |objects: &mut Objects, frames: [(u64, u16); 4]| {
        results(&compiled, objects, &mut packet, frames.map(|(a, b)| frame(a, b)).to_vec())
    };
    assert_eq!(run(&mut objects, [(1, 0), (2, 0), (3, 0), (4, 0)]), [100, 200, 300, 400]);
    assert_eq!(run(&mut objects, [(5, 1), (6, 0), (7, 0), (8, 0)]), [0, 600, 700, 800]);
    let register = program.registers.keys().next().unwrap();
    objects.write_register(register, 0, &Bits::new(1, 16));
    assert_eq!(run(&mut objects, [(5, 1), (6, 0), (7, 0), (8, 0)]), [500, 600, 700, 800]);
}
