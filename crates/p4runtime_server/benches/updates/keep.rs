//! Packets per second while the elements of arrays are kept in a state directory.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use p4runtime_server::KeptArrays;
use p4runtime_server::store::DiskStore;
use switch::{Egress, HeadroomBuf, PortId};

use crate::plane::{Counts, cpu_ns};
use crate::rig::{Rig, Work};

/// Elements of the register array and of the counter array.
const ELEMENTS: u64 = 1 << 20;
const BATCH: usize = 32;
/// Number of different batches of packets.
const BATCHES: u64 = 1 << 12;
/// Duration of each measurement.
const TURN: Duration = Duration::from_secs(4);
const TURNS: usize = 5;

/// Each packet increments one element of each array.
const SOURCE: &str = r#"
#include <core.p4>
#include <v1model.p4>
header packet_t { bit<32> index; }
struct headers { packet_t h; }
struct metadata {}
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply {} }
control C(inout headers hdr, inout metadata meta) { apply {} }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    register<bit<32>>(1048576) seen;
    counter(1048576, CounterType.packets_and_bytes) packets;
    apply {
        bit<32> value;
        seen.read(value, hdr.h.index);
        seen.write(hdr.h.index, value + 1);
        packets.count(hdr.h.index);
        std.egress_spec = 1;
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply {} }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

/// Returns work that processes packets with scattered indices in place without end.
fn packets(counts: Arc<Counts>) -> Work {
    /// Number of batches between two readings of the processor time.
    const LOOK: u64 = 256;
    let frame = |number: u64| {
        let mut data = vec![0; 60];
        let index = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44;
        data[..4].copy_from_slice(&(index as u32).to_be_bytes());
        HeadroomBuf::new(&data, 128)
    };
    let fresh: Vec<Vec<HeadroomBuf>> =
        (0..BATCHES).map(|batch| (0..BATCH as u64).map(|at| frame(batch * BATCH as u64 + at)).collect()).collect();
    let (mut batch, mut departed, mut at) = (fresh[0].clone(), Vec::<Egress>::new(), 0);
    Box::new(move |switch, now| {
        batch.clone_from_slice(&fresh[(at % BATCHES) as usize]);
        switch.step_in_place(now, PortId(0), &mut batch, &mut departed);
        assert_eq!(departed.len(), BATCH, "every packet is forwarded");
        departed.clear();
        counts.packets.fetch_add(BATCH as u64, Relaxed);
        at += 1;
        if at % LOOK == 0 {
            counts.cpu_ns.store(cpu_ns(), Relaxed);
        }
        true
    })
}

/// Packets per second of the clock and of the packet thread's processor time, and the size of the state directory.
struct Turn {
    wall: f64,
    cpu: f64,
    bytes: u64,
}

/// Measures packets with a state directory and these arrays kept in it.
fn turn(kept: KeptArrays, interval: Duration) -> Turn {
    let directory = std::env::temp_dir().join(format!("triplane-keep-{}", std::process::id()));
    let store = DiskStore::open(&directory).expect("a directory can be made");
    let rig = Rig::of(SOURCE, Some((store, kept, interval)));
    let counts = Arc::new(Counts::default());
    rig.work(packets(counts.clone()));
    std::thread::sleep(TURN / 4);
    let look = || (counts.packets.load(Relaxed), counts.cpu_ns.load(Relaxed));
    let (before, begin) = (look(), Instant::now());
    std::thread::sleep(TURN);
    let (after, seconds) = (look(), begin.elapsed().as_secs_f64());
    drop(rig);
    let files = std::fs::read_dir(&directory).expect("it is there").map(|file| file.and_then(|file| file.metadata()));
    let bytes = files.map(|file| file.map_or(0, |file| file.len())).sum();
    std::fs::remove_dir_all(&directory).expect("it is there");
    let packets = (after.0 - before.0) as f64;
    Turn { wall: packets / seconds, cpu: packets * 1e9 / (after.1 - before.1) as f64, bytes }
}

pub fn measure() {
    let (nothing, both) = (KeptArrays::default(), KeptArrays { registers: true, counters: true });
    let registers = KeptArrays { registers: true, counters: false };
    let second = Duration::from_secs(1);
    for (what, kept, interval) in [
        ("registers, every second", registers, second),
        ("registers and counters, every second", both, second),
        ("registers and counters, every 0.1 s", both, second / 10),
    ] {
        let turns: Vec<(Turn, Turn)> = (0..TURNS).map(|_| (turn(nothing, second), turn(kept, interval))).collect();
        let median = |of: &dyn Fn(&(Turn, Turn)) -> f64| {
            let mut all: Vec<f64> = turns.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all[TURNS / 2]
        };
        println!(
            "packets in memory, {ELEMENTS} elements of each array, kept: {what}: {:.2} to {:.2} Mpps, {:.3} of the \
             rate without, {:.3} by processor time; file of {:.0} MB",
            median(&|(without, _)| without.wall) / 1e6,
            median(&|(_, with)| with.wall) / 1e6,
            median(&|(without, with)| with.wall / without.wall),
            median(&|(without, with)| with.cpu / without.cpu),
            median(&|(_, with)| with.bytes as f64) / 1e6,
        );
    }
}
