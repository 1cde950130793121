//! Packets per second during updates.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use p4runtime_proto::v1;
use p4runtime_proto::v1::update::Type;
use switch::{Egress, HeadroomBuf, PortId};

use crate::program::{self, EXACT, LPM, TableFill};
use crate::rig::{Rig, Work, request, update};

/// Number of entries that packets hit. As many others come and go.
const ENTRIES: u64 = 100_000;
/// Updates per second.
const RATE: u64 = 10_000;
const BATCH: usize = 32;
/// Number of different batches.
const BATCHES: u64 = 512;
/// Duration of each measurement, alternately with and without updates.
const TURN: Duration = Duration::from_millis(500);
const TURNS: usize = 15;

/// Counters of the packet thread: packets, and its processor time in nanoseconds.
#[derive(Default)]
pub struct Counts {
    pub packets: AtomicU64,
    pub cpu_ns: AtomicU64,
}

impl Counts {
    /// Counts packets of a batch, and at times reads the processor time.
    pub fn add(&self, packets: u64) {
        /// Number of packets between two readings of the processor time.
        const LOOK: u64 = 8192;
        let before = self.packets.fetch_add(packets, Relaxed);
        if before / LOOK != (before + packets) / LOOK {
            self.cpu_ns.store(cpu_ns(), Relaxed);
        }
    }
}

/// Returns the processor time of the calling thread by the scheduler's count, in nanoseconds.
pub fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("this is Linux");
    text.split_whitespace().next().and_then(|ns| ns.parse().ok()).expect("schedstat has numbers")
}

/// Returns a frame for one of the entries.
fn frame(kind: &TableFill, number: u64) -> Vec<u8> {
    let mut data = vec![0; 60];
    if kind.name == EXACT.name {
        data[..6].copy_from_slice(&program::station(number).to_be_bytes()[2..]);
    }
    data[12..23].copy_from_slice(&[8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64]);
    data[30..34].copy_from_slice(&program::prefix(number).0.to_be_bytes());
    data
}

/// Returns batches of packets that hit entries in an order without locality.
pub fn batches(kind: &TableFill) -> Vec<Vec<HeadroomBuf>> {
    let roomy = |at: u64| HeadroomBuf::new(&frame(kind, at.wrapping_mul(7919) % ENTRIES), 128);
    (0..BATCHES).map(|batch| (0..BATCH as u64).map(|at| roomy(batch * BATCH as u64 + at)).collect()).collect()
}

/// Returns work that processes packets in place without end.
fn packets(kind: &TableFill, counts: Arc<Counts>) -> Work {
    let port = PortId(if kind.name == LPM.name { 1 } else { 0 });
    let fresh = batches(kind);
    let (mut batch, mut departed, mut at) = (fresh[0].clone(), Vec::<Egress>::new(), 0);
    Box::new(move |switch, now| {
        batch.clone_from_slice(&fresh[(at % BATCHES) as usize]);
        switch.step_in_place(now, port, &mut batch, &mut departed);
        assert_eq!(departed.len(), BATCH, "every packet hits an entry and is forwarded");
        departed.clear();
        counts.add(BATCH as u64);
        at += 1;
        true
    })
}

/// Sends updates at the rate for `length`. Of each four, two modify entries that packets hit, one inserts and one
/// deletes.
fn updates<S>(rig: &mut Rig<S>, kind: &TableFill, together: u64, next: &mut u64, length: Duration) -> u64 {
    let (begin, mut sent) = (Instant::now(), 0);
    rig.runtime.block_on(async {
        while begin.elapsed() < length {
            let due = Duration::from_nanos(sent * 1_000_000_000 / RATE);
            if let Some(early) = due.checked_sub(begin.elapsed()) {
                tokio::time::sleep(early).await;
            }
            let made = (0..together).map(|_| {
                *next += 1;
                let (four, number) = (*next / 4, *next * 13 % ENTRIES);
                match *next % 4 {
                    0 => update(Type::Delete, kind.entry(&rig.info, ENTRIES + (four - 1) % ENTRIES)),
                    1 => update(Type::Insert, kind.entry(&rig.info, ENTRIES + four % ENTRIES)),
                    _ => update(Type::Modify, kind.entry(&rig.info, number)),
                }
            });
            let request = request(made.collect::<Vec<v1::Update>>());
            rig.client.write(request).await.unwrap_or_else(|status| panic!("{status}"));
            sent += together;
        }
    });
    sent
}

/// Packets per second of the clock and of the thread's processor time, and updates per second.
struct Turn {
    wall: f64,
    cpu: f64,
    updates: f64,
}

/// Inserts the entries that packets hit.
pub fn fill<S>(rig: &mut Rig<S>, kind: &TableFill) {
    rig.runtime.block_on(async {
        for first in (0..ENTRIES).step_by(1_000) {
            let all = (first..first + 1_000).map(|number| update(Type::Insert, kind.entry(&rig.info, number)));
            rig.client.write(request(all.collect())).await.unwrap_or_else(|status| panic!("{status}"));
        }
    });
}

/// Measures packets that hit entries of a table, during writes of `together` updates and without.
pub fn measure(kind: &TableFill, together: u64) {
    let mut rig = Rig::new();
    fill(&mut rig, kind);
    let counts = Arc::new(Counts::default());
    rig.work(packets(kind, counts.clone()));
    compare(&mut rig, kind, kind.name, &counts, together);
}

/// Compares turns with and without updates of a switch that processes packets.
pub fn compare<S>(rig: &mut Rig<S>, kind: &TableFill, name: &str, counts: &Counts, together: u64) {
    std::thread::sleep(TURN);
    let mut next = 0;
    let mut turn = |busy: bool| {
        let look = || (counts.packets.load(Relaxed), counts.cpu_ns.load(Relaxed));
        let (before, begin) = (look(), Instant::now());
        let sent = if busy {
            updates(rig, kind, together, &mut next, TURN)
        } else {
            std::thread::sleep(TURN);
            0
        };
        let (after, seconds) = (look(), begin.elapsed().as_secs_f64());
        let packets = (after.0 - before.0) as f64;
        Turn {
            wall: packets / seconds,
            cpu: packets * 1e9 / (after.1 - before.1) as f64,
            updates: sent as f64 / seconds,
        }
    };
    let turns: Vec<(Turn, Turn)> = (0..TURNS).map(|_| (turn(false), turn(true))).collect();
    let median = |of: &dyn Fn(&(Turn, Turn)) -> f64| {
        let mut all: Vec<f64> = turns.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[TURNS / 2]
    };
    println!(
        "packets in memory, {ENTRIES} entries: {name:<5} {together:>3} a write, {:>6.0} updates/s: {:.2} to {:.2} Mpps, \
         {:.3} of the rate without, {:.3} by processor time",
        median(&|(_, busy)| busy.updates),
        median(&|(quiet, _)| quiet.wall) / 1e6,
        median(&|(_, busy)| busy.wall) / 1e6,
        median(&|(quiet, busy)| busy.wall / quiet.wall),
        median(&|(quiet, busy)| busy.cpu / quiet.cpu),
    );
}
