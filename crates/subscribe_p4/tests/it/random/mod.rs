//! Random rules of the whole language (except state, which the module `state` covers) over fields of every kind, in
//! random orders and for every target. The generated program, interpreted and as machine code, must treat random
//! packets as the rules specify. The test computes the expected result from its own tree of each rule.
//!
//! For more rounds: `SUBSCRIBE_FUZZ_COUNT=1000 SUBSCRIBE_FUZZ_FROM=12 cargo test -p subscribe_p4 --test it random::`.

mod packet;
mod rule;
mod switch;

use std::collections::{BTreeMap, BTreeSet};

use rng::SplitMix64;
use subscribe::{ColumnLayout, Refusal, RuleId, Subscriptions, TargetCapabilities, UpdateMode, Wide};
use subscribe_p4::ProgramOptions;
use subscribe_p4::entries::Installer;
use v1model::Executor;

use packet::{FIELDS, Packet};
use rule::Rule;
use switch::{Read, TestSwitch};

const KINDS: &str = include_str!("../../../testdata/kinds.p4");
/// Number of ports that rules deliver to, from 1.
const PORTS: u32 = 5;
const CONTROLLER: u32 = v1model::CPU_PORT;
const BOTH: [Executor; 2] = [Executor::Interpreter, Executor::Jit];

/// Returns a combination of all options of users.
fn target(number: u64) -> TargetCapabilities {
    let wide = [Wide::Range, Wide::Ternary, Wide::Lpm][number as usize % 3];
    let (has_ranges, exact_beside) = (wide == Wide::Range, number / 3 % 2 == 1);
    TargetCapabilities { wide, has_ranges, exact_beside, ..ProgramOptions::default().target }
}

/// Returns some fields for the beginning of the order, or none.
fn order(rng: &mut SplitMix64, read: &Read) -> ColumnLayout {
    let mut names: Vec<&str> = FIELDS.iter().map(|field| field.name).collect();
    let some = (0..rng.below(6)).map(|_| names.swap_remove(rng.below(names.len() as u64) as usize)).collect::<Vec<_>>();
    ColumnLayout::forced(&read.rules.format, &some).expect("they are fields")
}

/// Returns the outgoing packets by port, as the rules specify; `None` if two rules would write different marks.
fn expected(rules: &BTreeMap<RuleId, Rule>, packet: &Packet) -> Option<Vec<(u32, Vec<u8>)>> {
    let matching: Vec<&Rule> = rules.values().filter(|rule| rule.when.holds(packet)).collect();
    let marks: BTreeSet<u8> = matching.iter().filter_map(|rule| rule.mark).collect();
    let ports: BTreeSet<u32> = matching.iter().flat_map(|rule| rule.ports.iter().copied()).collect();
    let bytes = match marks.len() {
        0 => packet.bytes.clone(),
        1 => packet.marked(*marks.first()?),
        _ => return None,
    };
    Some(ports.into_iter().map(|port| (port, bytes.clone())).collect())
}

/// Statistics of a round.
#[derive(Default)]
struct Tally {
    delivered: usize,
    changes: usize,
    refused: usize,
    between: usize,
}

/// Runs one program with changing rules. Returns the first discrepancy.
fn round(read: &Read, seed: u64, tally: &mut Tally, change: impl FnOnce(String) -> String) -> Result<(), String> {
    let mut rng = SplitMix64::new(seed);
    let options = ProgramOptions { target: target(seed), ..ProgramOptions::default() };
    let options = if seed % 4 < 2 { options } else { options.with_bitmaps(PORTS + 1 + 64 * (seed % 8) as u32) };
    // Codes change together with the entries that match them, which requires atomic writes.
    let writes =
        if has_codes(seed) || seed.is_multiple_of(2) { UpdateMode::Atomic } else { UpdateMode::PerMessageConsistent };
    let layout = order(&mut rng, read);
    let program = read.program(&layout, &options, change);
    let settings = subscribe::CompileOptions {
        target: options.target,
        update_mode: writes,
        ..subscribe::CompileOptions::default()
    };
    let installer = || {
        let of = Installer::new(&read.format, &read.rules, &layout, &options, CONTROLLER);
        if writes == UpdateMode::PerMessageConsistent { of.per_message_consistent() } else { of }
    };
    let compiler = || Subscriptions::new(read.rules.format.clone(), layout.clone(), settings);
    let mut all = compiler();
    let (mut told, mut switches) = (installer(), BOTH.map(|executor| TestSwitch::new(&program, executor)));
    let first = told.install(&all.tables()).expect("few groups");
    first.iter().for_each(|update| switches.iter_mut().for_each(|switch| switch.apply(update)));
    let mut rules: BTreeMap<RuleId, Rule> = BTreeMap::new();
    for step in 0..5 {
        let known: Vec<RuleId> = rules.keys().copied().collect();
        let gone: Vec<RuleId> = known.into_iter().filter(|_| step > 0 && rng.percent(25)).collect();
        let new: Vec<Rule> = (0..1 + rng.below(6)).map(|_| Rule::random(&mut rng, PORTS, CONTROLLER)).collect();
        let text: Vec<&str> = new.iter().map(|rule| rule.text.as_str()).collect();
        let applied = match all.change(&gone, read.parse(&text.join("\n"))) {
            Ok(applied) => applied,
            // Two rules may write different marks to one packet, and codes are few.
            Err(Refusal::Conflict { .. } | Refusal::Codes(..)) => {
                tally.refused += 1;
                continue;
            }
            Err(other) => return Err(format!("seed {seed}: {other:?}\n{}", text.join("\n"))),
        };
        let packets: Vec<Packet> = (0..30).map(|_| Packet::random(&mut rng)).collect();
        let before: Vec<_> = packets.iter().map(|packet| expected(&rules, packet)).collect();
        gone.iter().for_each(|id| drop(rules.remove(id)));
        rules.extend(applied.added.iter().copied().zip(new));
        let after: Vec<_> = packets.iter().map(|packet| expected(&rules, packet)).collect();
        let all_rules = || rules.values().map(|rule| rule.text.as_str()).collect::<Vec<_>>().join("\n");
        let wrong = |what: &str, at: usize, got: &[(u32, Vec<u8>)]| {
            format!(
                "seed {seed}, step {step}, {what}, {:?}: {:?} went\nto {got:?},\nnot {:?}\n{}",
                options.target,
                packets[at],
                after[at],
                all_rules()
            )
        };
        if after.contains(&None) {
            return Err(format!("seed {seed}: the compiler took rules that write different marks\n{}", all_rules()));
        }
        for (number, update) in told.steps(&applied.change).expect("few groups").all().iter().enumerate() {
            for (switch, executor) in switches.iter_mut().zip(BOTH) {
                switch.apply(update);
                let at = number % packets.len();
                if writes == UpdateMode::PerMessageConsistent && number % 3 == 0 {
                    let got = switch.packet(&packets[at].bytes, CONTROLLER);
                    tally.between += 1;
                    if before[at].as_ref() != Some(&got) && after[at].as_ref() != Some(&got) {
                        return Err(wrong(&format!("{executor:?} after {number} writes"), at, &got));
                    }
                }
            }
        }
        // The same rules, compiled from scratch.
        let mut anew = compiler();
        let own: Vec<subscribe::Rule> = all.rules().map(|(_, rule)| rule.clone()).collect();
        anew.change(&[], own).map_err(|error| format!("seed {seed}: {error:?}"))?;
        let mut fresh = TestSwitch::new(&program, Executor::Interpreter);
        let install = installer().install(&anew.tables()).expect("few groups");
        install.iter().for_each(|update| fresh.apply(update));
        for (at, packet) in packets.iter().enumerate() {
            let [interpreted, machine] = &mut switches;
            for (what, switch) in
                [("interpreted", interpreted), ("machine code", machine), ("from scratch", &mut fresh)]
            {
                let got = switch.packet(&packet.bytes, CONTROLLER);
                if Some(&got) != after[at].as_ref() {
                    return Err(wrong(what, at, &got));
                }
                tally.delivered += got.len();
            }
        }
        tally.changes += 1;
    }
    let ids: Vec<RuleId> = rules.into_keys().collect();
    let last = all.change(&ids, Vec::new()).expect("less always fits");
    let updates = told.steps(&last.change).expect("few groups").all();
    for switch in &mut switches {
        updates.iter().for_each(|update| switch.apply(update));
        if switch.entries() > 0 {
            return Err(format!("seed {seed}: {} entries are left without rules", switch.entries()));
        }
    }
    Ok(())
}

/// Returns the format of a seed's round. Half of them have no codes, so that writes one after the other are tested,
/// too.
fn read(seed: u64) -> Read {
    let bare = ["@query_codes(6) ", "@query_codes(7) ", "@query_codes(9) "];
    let without = || bare.iter().fold(KINDS.to_owned(), |text, codes| text.replace(codes, ""));
    if has_codes(seed) { Read::new(KINDS) } else { Read::new(&without()) }
}

fn has_codes(seed: u64) -> bool {
    seed % 4 < 2
}

#[test]
fn programs_do_with_packets_what_random_rules_say() {
    let (from, count) = (testing::number("SUBSCRIBE_FUZZ_FROM", 0u64), testing::number("SUBSCRIBE_FUZZ_COUNT", 12u64));
    let mut tally = Tally::default();
    for seed in from..from + count {
        round(&read(seed), seed, &mut tally, |program| program).unwrap_or_else(|wrong| panic!("{wrong}"));
    }
    let Tally { delivered, changes, refused, between } = tally;
    let each = |tried: usize, least: u64| assert!(tried as u64 >= least * count, "{tried} in {count} rounds");
    each(delivered, 100);
    each(changes, 2);
    each(between, 3);
    assert!(refused < changes, "{refused} changes were refused, {changes} made");
}

/// Possible bugs of a program, as text replacements.
const MISTAKES: [(&str, &str); 5] = [
    ("ipv4_valid: ternary", "ipv6_valid: ternary"),
    ("dst6_value = hdr.ipv6.dst;", "dst6_value = hdr.ipv6.src;"),
    ("shares_value = hdr.trade.shares;", ""),
    ("src4_value: lpm", "dst4_value: lpm"),
    ("hdr.kind.mark = value;", "hdr.kind.mark = value + 1;"),
];

#[test]
fn mistakes_in_a_program_are_found() {
    for (right, wrong) in MISTAKES {
        let found = (0..8).any(|seed| {
            let change = |program: String| program.replace(right, wrong);
            round(&read(seed), seed, &mut Tally::default(), change).is_err()
        });
        assert!(found, "`{wrong}` instead of `{right}` was not found");
    }
}
