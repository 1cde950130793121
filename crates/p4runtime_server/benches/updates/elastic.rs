//! A table in the memory of a server beside the same table in the switch: insertions per second, and packets per second
//! during updates. The server is in the packet thread and answers at once, so that its work counts as the switch's.

use std::sync::{Arc, Mutex};

use elastic_switch::{ElasticConfig, ElasticSwitch};
use rng::SplitMix64;
use switch::{Device, Egress, Frame, PacketSwitch, PortId, Time};
use v1model::Switch;

use crate::inserts::insert;
use crate::nodes::MemoryNodes;
use crate::plane::{self, Counts};
use crate::program::{self, EXACT};
use crate::rig::{Rig, Work, config};

/// Number of entries inserted in a round.
const ENTRIES: u64 = 100_000;
/// Number of updates in a write.
const BATCH: u64 = 1_000;
const ROUNDS: usize = 7;
/// Port of the memory server.
const SERVER: u32 = 3;

type Remote = ElasticSwitch<Switch>;

/// Gives frames to the switch, and carries those between it and its server. Returns how many others left.
fn step(switch: &mut Remote, nodes: &mut MemoryNodes, now: Time) -> (usize, bool) {
    let mut output: Vec<Frame> = Vec::new();
    switch.step(now, &mut Vec::new(), &mut output);
    let is_busy = !output.is_empty() || switch.next_event() == Some(Time::ZERO);
    (nodes.carry(now, switch, output), is_busy)
}

/// Starts a switch whose exact table is in the memory of a server, without a cache.
fn remote() -> (Rig<Remote>, MemoryNodes) {
    let text = program::UPDATES.replace("table exact_table", "@elastic[cache = \"0\"]\n    table exact_table");
    let (program, info) = program::compile(&text);
    let inner = Switch::new(Arc::new(program), config()).expect("the switch runs the program");
    let mut nodes = MemoryNodes::new(SERVER, 1);
    let config = ElasticConfig::new(MemoryNodes::switch_address(), nodes.places());
    let random = Box::new(SplitMix64::new(1));
    let mut switch = ElasticSwitch::new(inner, &config, [2, 3], random).expect("the program has a table");
    let mut now = Time::from_us(1);
    while !switch.counts()[0].is_settled {
        step(&mut switch, &mut nodes, now);
        now = now.after_ns(1_000_000);
    }
    (Rig::start(switch, info, None), nodes)
}

/// Compares insertions, and packets during updates.
pub fn measure(entries: u64, together: &[u64]) {
    println!("elastic: a table in the memory of a server, which is in the packet thread");
    compare_inserts(ENTRIES.min(entries), ROUNDS);
    if entries > ENTRIES {
        compare_inserts(entries, 1);
    }
    for together in together {
        let (mut rig, nodes) = remote();
        let counts = Arc::new(Counts::default());
        let nodes = Arc::new(Mutex::new(nodes));
        let of_fill = nodes.clone();
        rig.work(Box::new(move |switch, now| step(switch, &mut of_fill.lock().expect("nobody panics"), now).1));
        plane::fill(&mut rig, &EXACT);
        rig.work(packets(nodes, counts.clone()));
        plane::compare(&mut rig, &EXACT, "@elastic", &counts, *together);
    }
}

/// Compares insertions into tables that are filled in turn.
fn compare_inserts(entries: u64, rounds: usize) {
    let rate = |seconds: f64| entries as f64 / seconds;
    let mut figures: [Vec<f64>; 3] = Default::default();
    for _ in 0..rounds {
        let local = insert(&mut Rig::new(), &EXACT, 0..entries, BATCH).as_secs_f64();
        let (mut rig, mut nodes) = remote();
        rig.work(Box::new(move |switch, now| step(switch, &mut nodes, now).1));
        let remote = insert(&mut rig, &EXACT, 0..entries, BATCH).as_secs_f64();
        for (list, value) in figures.iter_mut().zip([rate(remote), rate(local), local / remote]) {
            list.push(value);
        }
    }
    let [remote, local, ratio] = figures.map(|mut list| {
        list.sort_by(f64::total_cmp);
        list[rounds / 2]
    });
    println!(
        "  batches of {BATCH}     {remote:>9.0} inserts/s to {entries} entries, {local:.0} of a local table, ratio \
         {ratio:.3}, medians of {rounds}"
    );
}

/// Returns work that processes packets without end. Each of them waits for its entry.
fn packets(nodes: Arc<Mutex<MemoryNodes>>, counts: Arc<Counts>) -> Work<Remote> {
    let fresh = plane::batches(&EXACT);
    let (mut batch, mut at) = (fresh[0].clone(), 0);
    Box::new(move |switch, now| {
        batch.clone_from_slice(&fresh[at % fresh.len()]);
        let mut output = Vec::new();
        switch.step_in_place(now, PortId(0), &mut batch, &mut output);
        let mut left = 0;
        let mut frames = Vec::new();
        for egress in output {
            match egress {
                Egress::Owned(frame) => frames.push(frame),
                Egress::InPlace { .. } => left += 1,
            }
        }
        left += nodes.lock().expect("nobody panics").carry(now, switch, frames);
        assert_eq!(left, batch.len(), "every packet hits an entry and is forwarded");
        counts.add(left as u64);
        at += 1;
        true
    })
}
