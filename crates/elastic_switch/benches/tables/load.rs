//! Load of several servers, and the time in which an empty one is filled.

use std::time::Instant;

use rng::SplitMix64;

use crate::bench::{BATCH, ElasticBench, elastic, insert, packet, plain};
use crate::median;

/// Draws connections with a Zipf distribution.
struct Zipf {
    sums: Vec<f64>,
}

impl Zipf {
    fn new(connections: u32, exponent: f64) -> Zipf {
        let mut sum = 0.0;
        let add = |rank: u32| {
            sum += f64::from(rank).powf(-exponent);
            sum
        };
        Zipf { sums: (1..=connections).map(add).collect() }
    }

    fn draw(&self, random: &mut SplitMix64) -> u32 {
        let unit = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let at = unit * self.sums.last().expect("there are connections");
        self.sums.partition_point(|sum| *sum <= at) as u32
    }
}

/// Measures how evenly READs of eight servers are distributed: what they serve together is a server's rate, times all
/// READs over those of the busiest one.
pub fn servers() {
    const CONNECTIONS: u32 = 1_000_000;
    const WARM_UP: usize = 1 << 14;
    const BATCHES: usize = 1 << 15;
    for (exponent, cache) in [(0.99, 1024), (0.99, 0), (0.95, 1024), (0.90, 1024)] {
        let mut inner = plain(&elastic(8, cache), CONNECTIONS);
        insert(&mut inner, 0..CONNECTIONS);
        let mut bench = ElasticBench::new(inner, 8, 2);
        let (zipf, mut random) = (Zipf::new(CONNECTIONS, exponent), SplitMix64::new(1));
        let mut send = |bench: &mut ElasticBench, batches: usize| {
            for _ in 0..batches {
                let mut batch: Vec<_> = (0..BATCH).map(|_| packet(zipf.draw(&mut random))).collect();
                bench.send(&mut batch);
            }
        };
        send(&mut bench, WARM_UP);
        let (before, left) = (bench.nodes.reads(), bench.left);
        send(&mut bench, BATCHES);
        assert_eq!(bench.left - left, BATCHES * BATCH, "every packet leaves");
        let after = bench.nodes.reads();
        let reads: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
        let (all, busiest) = (reads.iter().sum::<u64>() as f64, *reads.iter().max().expect("there are servers") as f64);
        println!(
            "servers   Zipf {exponent}, cache of {cache}: {:.1} % of packets need no READ; busiest {:.3} of the mean, \
             so 8 servers serve {:.2} times what one does",
            100.0 * (1.0 - all / (BATCHES * BATCH) as f64),
            busiest * 8.0 / all,
            all / busiest,
        );
    }
}

/// Measures entries a second while an empty server is filled. The time includes the server's work.
pub fn rebuild() {
    const CONNECTIONS: u32 = 1_000_000;
    let mut inner = plain(&elastic(8, 1024), CONNECTIONS);
    insert(&mut inner, 0..CONNECTIONS);
    let mut bench = ElasticBench::new(inner, 2, 2);
    let mut rates: Vec<f64> = (0..7)
        .map(|round| {
            bench.nodes.restart(round % 2);
            let begin = Instant::now();
            bench.refill();
            f64::from(CONNECTIONS) / begin.elapsed().as_secs_f64()
        })
        .collect();
    let rate = median(&mut rates);
    println!("rebuild   {rate:.0} entries/s are written to a server that restarted empty");
}
