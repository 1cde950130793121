//! Nanoseconds a packet: of cached entries, of entries that are read, and of waiting.

use std::hint::black_box;
use std::time::Instant;

use rng::SplitMix64;
use switch::{Egress, HeadroomBuf, PacketSwitch, PortId, RowSwitch, Time};
use v1model::Switch;

use crate::bench::{BATCH, ElasticBench, elastic, insert, packet, plain, restore};
use crate::median;

const TURNS: usize = 101;
/// Batches of a turn, so that it is shorter than a time slice of the scheduler.
const BATCHES: usize = 256;

/// Batches of packets, and one that is processed.
struct Load {
    fresh: Vec<Vec<HeadroomBuf>>,
    batch: Vec<HeadroomBuf>,
    next: usize,
}

impl Load {
    /// Makes batches of packets of these connections.
    fn new(numbers: impl Iterator<Item = u32>) -> Load {
        let packets: Vec<HeadroomBuf> = numbers.map(packet).collect();
        let fresh: Vec<Vec<HeadroomBuf>> = packets.chunks_exact(BATCH).map(<[HeadroomBuf]>::to_vec).collect();
        Load { batch: fresh[0].clone(), fresh, next: 0 }
    }

    /// Returns the next batch, as a driver receives it.
    fn batch(&mut self) -> &mut [HeadroomBuf] {
        restore(&mut self.batch, &self.fresh[self.next]);
        self.next = (self.next + 1) % self.fresh.len();
        &mut self.batch
    }
}

/// Returns nanoseconds a packet of a turn of this many batches.
fn turn(batches: usize, mut work: impl FnMut()) -> f64 {
    let begin = Instant::now();
    (0..batches).for_each(|_| work());
    begin.elapsed().as_nanos() as f64 / (BATCH * batches) as f64
}

/// Processes a batch in a switch, from which all packets leave.
fn step<S: PacketSwitch>(switch: &mut S, load: &mut Load, left: &mut Vec<Egress>) {
    left.clear();
    switch.step_in_place(Time::from_us(1), PortId(1), load.batch(), left);
    assert_eq!(black_box(&left).len(), BATCH);
}

/// Compares a table with 512 entries, each of them cached, with the same table in the switch.
pub fn hits() {
    const CONNECTIONS: u32 = 512;
    let numbers = || (0..CONNECTIONS).map(|at| at.wrapping_mul(7919) % CONNECTIONS);
    let [mut local, mut alone, mut inner] =
        [String::new(), elastic(8, 1024), elastic(8, 1024)].map(|annotation| plain(&annotation, 100_000));
    for switch in [&mut local, &mut alone, &mut inner] {
        insert(switch, 0..CONNECTIONS);
    }
    let mut bench = ElasticBench::new(inner, 2, 2);
    let mut loads = [Load::new(numbers()), Load::new(numbers()), Load::new(numbers())];
    // Each key becomes popular.
    (0..64 * CONNECTIONS as usize / BATCH).for_each(|_| bench.send(loads[2].batch()));
    assert_eq!(bench.switch.residents(), CONNECTIONS as usize);
    let (reads, mut left) = (bench.nodes.reads(), Vec::new());
    let mut figures: [Vec<f64>; 5] = Default::default();
    for _ in 0..TURNS {
        let [local_load, alone_load, remote_load] = &mut loads;
        let one = turn(BATCHES, || step(&mut local, local_load, &mut left));
        let other = turn(BATCHES, || step(&mut bench.switch, remote_load, &mut left));
        let unused = turn(BATCHES, || step(&mut alone, alone_load, &mut left));
        for (list, value) in figures.iter_mut().zip([one, other, unused, other / one, unused / one]) {
            list.push(value);
        }
    }
    assert_eq!(bench.nodes.reads(), reads, "every packet is answered by the cache");
    let [local, cached, unused, ratio, unused_ratio] = figures.each_mut().map(|list| median(list));
    println!("hits      local table {local:.1} ns a packet, cached entries {cached:.1} ns, ratio {ratio:.3}");
    println!("          @elastic without servers {unused:.1} ns, ratio {unused_ratio:.3}");
}

/// Measures packets whose entries are read: the switch, its server, and the frames between them in one thread.
pub fn misses() {
    const CONNECTIONS: u32 = 100_000;
    let mut inner = plain(&elastic(8, 0), CONNECTIONS);
    insert(&mut inner, 0..CONNECTIONS);
    let mut bench = ElasticBench::new(inner, 1, 1);
    let mut random = SplitMix64::new(1);
    let mut load = Load::new((0..1 << 15).map(|_| random.below(u64::from(CONNECTIONS)) as u32));
    let mut times: Vec<f64> = (0..TURNS)
        .map(|_| {
            let begin = bench.left;
            let ns = turn(BATCHES / 8, || bench.send(load.batch()));
            assert_eq!(bench.left - begin, BATCH * BATCHES / 8, "every packet leaves");
            ns
        })
        .collect();
    let ns = median(&mut times);
    println!("misses    {ns:.0} ns a packet with its READ and the server's work: {:.2} M/s", 1000.0 / ns);
}

/// Measures the cost of waiting: a pass that ends with a miss and parks its packet, and a second pass that runs it with
/// a miss, beside one pass that finds the entry. The lists of awaited rows are kept outside the clock, and the second
/// pass drops its packet, so the difference is a lower bound.
pub fn parking() {
    let own = |mut switch: Switch| {
        switch.own_rows(4096);
        switch
    };
    let mut local = plain("", 1024);
    insert(&mut local, 0..BATCH as u32);
    let mut waiting = own(plain(&elastic(8, 0), 1024));
    let numbers = || 0..BATCH as u32;
    let (mut one, mut other) = (Load::new(numbers()), Load::new(numbers()));
    let (mut left, mut figures): (Vec<Egress>, [Vec<f64>; 3]) = Default::default();
    for _ in 0..TURNS {
        let hit = turn(BATCHES, || step(&mut local, &mut one, &mut left));
        let (mut park, mut unpark) = (0.0, 0.0);
        for _ in 0..BATCHES / 8 {
            left.clear();
            park += turn(1, || waiting.step_in_place(Time::from_us(1), PortId(1), other.batch(), &mut left));
            assert_eq!((left.len(), waiting.all_parked()), (0, BATCH));
            let rows = waiting.take_awaited();
            // The answer is a miss, so that the entry's own cost is not part of this.
            unpark += turn(1, || {
                for row in &rows {
                    waiting.objects_mut().set_row_answer(*row, None);
                    waiting.resume(*row);
                }
                waiting.step_in_place::<HeadroomBuf>(Time::from_us(1), PortId(1), &mut [], &mut left);
            });
            assert_eq!(waiting.all_parked(), 0);
            rows.iter().for_each(|row| waiting.objects_mut().forget_row(*row));
        }
        let turns = (BATCHES / 8) as f64;
        for (list, value) in figures.iter_mut().zip([hit, park / turns, unpark / turns]) {
            list.push(value);
        }
    }
    let [hit, park, unpark] = figures.each_mut().map(|list| median(list));
    println!("parking   pass that parks {park:.0} ns, second pass {unpark:.0} ns, pass of a local table {hit:.0} ns");
    println!("          waiting costs {:.0} ns", park + unpark - hit);
}
