//! Benchmark of matching on one core: the generated program as machine code, a hand-written index, and a
//! general-purpose matcher.
//!
//! `cargo bench -p subscribe_p4 --features peers --bench matching`; without `peers` there is no general-purpose
//! matcher. The rules are the paper's workload (`stock == S and price > P : fwd(H)`, 100 symbols, thresholds to 1000,
//! 200 hosts, seeded). All three matchers receive the bytes of the same ITCH Add Order messages, one in ten of a symbol
//! without rules, and return a number for the port set: in the switch, the multicast group or port that it would copy
//! the message to. No figure includes copying. The benchmark first asserts that switch and index agree on the ports of
//! every message, and that the general-purpose matcher agrees on the first 50.
//!
//! The program runs from the parser to the end of ingress, in batches of 32, as in the switch. The matchers alternate
//! in turns of 8,192 messages, and all messages of a turn are read once before each matcher's turn. Figures are
//! medians: on a machine with other load, the median excludes interrupted turns. A second table has rules with ranges
//! over three fields and no field that separates them by value.
//!
//! Arguments after `--` select a part: numbers of rules, and `crossing`.

#[path = "../../tests/it/support/checked.rs"]
mod checked;
#[path = "../../tests/it/support/entry.rs"]
mod entry;
#[cfg_attr(not(feature = "peers"), path = "no_general.rs")]
mod general;
mod index;
mod state_explosion;
mod switch;

use std::hint::black_box;
use std::time::{Duration, Instant};

use general::General;
use index::Index;
use rng::SplitMix64;
use subscribe::workload;
use switch::{BATCH, Case, RuleSwitch};

/// Number of distinct messages.
const MESSAGES: usize = 1 << 14;
/// Number of messages per turn.
const TURN: usize = 1 << 13;
/// Maximum number of rules for the general-purpose matcher, which would not finish with more.
const GENERAL_MOST: usize = 100_000;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let asked: Vec<usize> = words.iter().filter_map(|argument| argument.parse().ok()).collect();
    let counts = if words.is_empty() { vec![1_000, 10_000, 100_000, 1_000_000] } else { asked };
    paper(counts);
    if words.is_empty() || words.iter().any(|word| word == "crossing") {
        println!(
            "\n{:>9} {:>8} {:>8} {:>9} {:>8} {:>9} {:>9} {:>11} {:>12}",
            "rules", "a range", "nodes", "entries", "leaves", "compiled", "switch", "million/s", "a-tree /s"
        );
        for (count, part) in [(1_000, 1000), (10_000, 1000), (3_000, 100)] {
            state_explosion::row(count, part);
        }
    }
}

fn paper(counts: Vec<usize>) {
    println!(
        "{:>9} {:>8} {:>8} {:>11} {:>8} {:>11} {:>6} {:>12}",
        "rules", "entries", "switch", "million/s", "index", "million/s", "ratio", "a-tree /s"
    );
    for count in counts {
        row(count);
    }
}

fn row(count: usize) {
    let case = Case::new(include_str!("order.p4"));
    let of = workload::paper(1, count);
    let rules = case.compile(&of.text);
    let index = Index::new(rules.rules().map(|(_, rule)| rule));
    let mut switch = case.switch(&rules);
    let mut messages = messages();
    let general = (count <= GENERAL_MOST).then(|| General::new(&of.text, &["stock", "price"])).flatten();
    check(&mut switch, &index, &general, &mut messages);
    let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut answers = [0; BATCH];
    for turn in 0..rounds() {
        let first = turn * TURN % MESSAGES;
        let batches = &mut messages[first..first + TURN];
        look_at(batches);
        let our = timed(batches, |batch| {
            switch.run(batch, &mut answers);
            black_box(&answers);
        });
        look_at(batches);
        let their = timed(batches, |batch| {
            index.run(batch, &mut answers);
            black_box(&answers);
        });
        ours.push(our);
        theirs.push(their);
        ratios.push(our / their);
    }
    let [our, their, ratio] = [ours, theirs, ratios].map(median);
    let general = rate_of(general, |general, at| drop(black_box(ask(general, &messages[at % MESSAGES]))));
    println!(
        "{count:>9} {:>8} {our:>5.1} ns {:>11.2} {their:>5.1} ns {:>11.2} {ratio:>6.2} {general:>12}",
        rules.stats().entries(),
        1e3 / our,
        1e3 / their
    );
}

/// Number of measured turns per matcher: `ROUNDS`, or 301.
fn rounds() -> usize {
    std::env::var("ROUNDS").ok().and_then(|value| value.parse().ok()).unwrap_or(301)
}

/// Returns nanoseconds per message.
fn timed(messages: &mut [Vec<u8>], mut work: impl FnMut(&mut [Vec<u8>])) -> f64 {
    let begin = Instant::now();
    messages.chunks_mut(BATCH).for_each(&mut work);
    begin.elapsed().as_nanos() as f64 / messages.len() as f64
}

/// Reads all bytes of the messages, so that no matcher finds a warmer cache than another.
fn look_at(messages: &[Vec<u8>]) {
    black_box(messages.iter().flatten().map(|byte| u64::from(*byte)).sum::<u64>());
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Returns the answer of the general-purpose matcher for a message.
fn ask(general: &General, message: &[u8]) -> Vec<u32> {
    let price = u32::from_be_bytes(message[34..38].try_into().expect("four bytes"));
    general.ports(Some(&message[26..34]), &[("price", price)])
}

/// Formats a rate of the general-purpose matcher, if it is present.
fn rate_of(general: Option<General>, mut work: impl FnMut(&General, usize)) -> String {
    general.map_or("-".to_owned(), |general| format!("{:.0}", rate(|at| work(&general, at))))
}

/// Formats a rate with a precision that suits the column.
fn rate(mut work: impl FnMut(usize)) -> f64 {
    let begin = Instant::now();
    let mut done = 0;
    while begin.elapsed() < Duration::from_secs(1) {
        work(done);
        done += 1;
    }
    done as f64 / begin.elapsed().as_secs_f64()
}

/// Returns messages as bytes: of the 100 symbols of the rules, and one in ten of another symbol.
fn messages() -> Vec<Vec<u8>> {
    let mut rng = SplitMix64::new(2);
    let one = |_| {
        let stock = rng.below(workload::SYMBOLS) + if rng.percent(10) { workload::SYMBOLS } else { 0 };
        let price = rng.below(workload::THRESHOLDS + workload::THRESHOLDS / 10) as u32;
        let mut message = vec![0, 36, b'A'];
        message.extend((0..18).map(|_| rng.next_u64() as u8));
        message.push(b'B');
        message.extend(((1 + rng.below(1000)) as u32).to_be_bytes());
        message.extend(format!("{:<8}", format!("SYM{stock:03}")).bytes());
        message.extend(price.to_be_bytes());
        assert_eq!(message.len(), 38);
        message
    };
    (0..MESSAGES).map(one).collect()
}

/// Panics unless switch and index agree on the ports of every message, and the slow general-purpose matcher on the
/// first ones.
fn check(switch: &mut RuleSwitch, index: &Index, general: &Option<General>, messages: &mut [Vec<u8>]) {
    let (mut ours, mut theirs, mut delivered) = ([0; BATCH], [0; BATCH], 0);
    for batch in messages.chunks_mut(BATCH) {
        switch.run(batch, &mut ours);
        index.run(batch, &mut theirs);
        for (our, their) in ours.iter().zip(&theirs) {
            assert_eq!(switch.ports(*our), index.ports(*their));
            delivered += usize::from(!index.ports(*their).is_empty());
        }
    }
    assert!(delivered > messages.len() / 2, "most messages are for someone");
    for message in messages.iter().take(50) {
        let mut answer = [0];
        index.run(&mut [message.clone()], &mut answer);
        assert!(general.as_ref().is_none_or(|general| ask(general, message) == index.ports(answer[0])));
    }
}
