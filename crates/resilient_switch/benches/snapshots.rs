//! Measures the cost of snapshots in memory: `examples/heavy-hitters` without its annotations, and with them at a
//! switch that owns all rows, without changes and with a snapshot each millisecond. Batches of 32 frames in place; both
//! alternate, and the ratio is the median of the ratios of a turn. Then the time of the steps between packets while a
//! row of 1 MiB is copied and sent, without sealing.
//!
//! `cargo bench -p resilient_switch --bench snapshots`

#[allow(dead_code, reason = "another benchmark uses the rest")]
mod replicated;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use bits::Bits;
use engine::TableEntry;
use ir::KeyValue;
use switch::{Device, Egress, HeadroomBuf, PacketSwitch, PortId, SwitchControl, Time};
use v1model::Switch;

use replicated::{HEADROOM, Replicated, restore, switch, without_annotations};

const TURNS: usize = 101;
const BATCHES: usize = 256;
const BATCH: usize = 32;
/// Time of a batch at about 5 million packets a second.
const BATCH_NS: u64 = 6_400;
const START: Time = Time::from_us(1);

const HITTERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/heavy-hitters/hitters.p4");

/// Returns a switch of the example that sends from port 1 to port 2, after a change of its text.
fn hitters(change: impl Fn(&str) -> String) -> Switch {
    let mut hitters = switch(HITTERS, change);
    let program = Arc::clone(hitters.program());
    let (table, crossings) = program.tables.iter().next().expect("it has a table");
    let key = vec![KeyValue::Exact(Bits::new(1, 9))];
    let entry = TableEntry::new(key, 0, crossings.actions[0].action, vec![Bits::new(2, 9)]);
    hitters.objects_mut().insert(table, entry).expect("the entry is right");
    hitters
}

/// Returns frames of 32 flows in one VLAN.
fn frames() -> Vec<HeadroomBuf> {
    let frame = |flow: u8| {
        let ethernet = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x81, 0, 0xa0, 7, 8, 0];
        let ip = [0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, flow, 10, 0, 1, 1];
        let mut frame = [&ethernet[..], &ip, &[0x13, 0x89, 0x13, 0x8a]].concat();
        frame.resize(60, 0);
        HeadroomBuf::new(&frame, HEADROOM)
    };
    (0..BATCH as u8).map(frame).collect()
}

/// Runs a batch. Returns the number of frames that left.
fn step(replicated: &mut Replicated, now: Time, batch: &mut [HeadroomBuf], left: &mut Vec<Egress>) -> usize {
    replicated.switch.step_in_place(now, PortId(1), batch, left);
    replicated.exchange(now) + black_box(&left).len()
}

/// Returns nanoseconds a packet of one turn.
fn turn(mut work: impl FnMut() -> usize) -> f64 {
    let begin = Instant::now();
    let frames: usize = (0..BATCHES).map(|_| work()).sum();
    assert_eq!(frames, BATCH * BATCHES);
    begin.elapsed().as_nanos() as f64 / (BATCH * BATCHES) as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Compares batches of both switches, with this time between two of them.
fn compare(name: &str, plain: &mut Switch, replicated: &mut Replicated, now: &mut Time, batch_ns: u64) {
    let fresh = frames();
    let (mut batch, mut left): (_, Vec<Egress>) = (fresh.clone(), Vec::new());
    let mut figures: [Vec<f64>; 3] = Default::default();
    for _ in 0..TURNS {
        let one = turn(|| {
            restore(&mut batch, &fresh);
            left.clear();
            plain.step_in_place(START, PortId(1), &mut batch, &mut left);
            black_box(&left).len()
        });
        let other = turn(|| {
            restore(&mut batch, &fresh);
            left.clear();
            *now = now.after_ns(batch_ns);
            step(replicated, *now, &mut batch, &mut left)
        });
        figures.iter_mut().zip([one, other, other / one]).for_each(|(list, value)| list.push(value));
    }
    let [plain_ns, resilient_ns, ratio] = figures.map(median);
    println!("| {name} | {plain_ns:.1} | {resilient_ns:.1} | **{ratio:.2}** |");
}

/// Measures steps without packets, while snapshots of a row of 1 MiB are made after changes in all pages.
fn pauses() {
    const PAGES: u64 = 1024;
    let row = |text: &str| {
        let text = text.replace("row = \"64\", ", "").replace("VLANS * COUNTERS", "262144");
        let text = text.replace("group = \"sketch\", every", "every");
        // Only one of the three arrays stays: 262,144 elements of 4 bytes.
        let (before, rest) = text.split_once("SKETCHES first;").expect("the example has it");
        without_annotations(rest).lines().fold(format!("{before}SKETCHES first;\n"), |text, line| text + line + "\n")
    };
    let mut replicated = Replicated::new(hitters(row));
    let mut now = START;
    assert_eq!(step(&mut replicated, now, &mut frames(), &mut Vec::new()), BATCH);
    let (register, _) =
        replicated.switch.program().registers.iter().find(|(_, it)| it.name.ends_with("first")).unwrap();
    let mut pauses = Vec::new();
    for value in 1..=20u32 {
        let objects = replicated.switch.objects_mut();
        objects.begin_pass(None);
        for page in 0..PAGES {
            objects.write_word_in_pass(register, page * 256, u64::from(value)).expect("the switch owns the row");
        }
        objects.end_pass();
        let before = replicated.switch.snapshot_counts().snapshots;
        while replicated.switch.snapshot_counts().snapshots == before {
            now = now.after_ns(100_000);
            let begin = Instant::now();
            replicated.switch.step(now, &mut Vec::new(), &mut Vec::new());
            pauses.push(begin.elapsed().as_nanos() as f64 / 1000.0);
            replicated.exchange(now);
        }
    }
    pauses.sort_by(f64::total_cmp);
    let [half, most] = [0.5, 0.99].map(|share| pauses[(share * pauses.len() as f64) as usize]);
    println!("1 MiB: {} steps for 20 snapshots; median {half:.1} us, 99 % within {most:.1} us", pauses.len());
}

fn main() {
    println!("| | plain, ns | resilient, ns | ratio |\n|---|---|---|---|");
    let mut plain = hitters(without_annotations);
    let mut replicated = Replicated::new(hitters(str::to_owned));
    let mut now = START;
    assert_eq!(step(&mut replicated, now, &mut frames(), &mut Vec::new()), BATCH);
    compare("no snapshot is due", &mut plain, &mut replicated, &mut now, 0);
    compare("a snapshot each ms", &mut plain, &mut replicated, &mut now, BATCH_NS);
    println!("{:?}", replicated.switch.snapshot_counts());
    pauses();
}
