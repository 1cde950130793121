//! Packets from the switch to the controller.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use switch::{Device, Frame};

use crate::rig::Rig;

/// Maximum number of packets in flight. It is below the server's queue for a client, so that none is dropped.
const ON_THE_WAY: i64 = 512;
const BATCH: i64 = 32;
const LENGTH: Duration = Duration::from_secs(3);
const ROUNDS: usize = 5;

/// Returns a frame that the program sends to the controller.
fn frame(length: usize) -> Frame {
    let mut data = vec![0x5a; length];
    data[12..14].copy_from_slice(&[0x88, 0xb5]);
    Frame::new(1, data)
}

pub fn measure() {
    println!("packets to the controller, {ON_THE_WAY} on their way at most");
    for length in [64, 1500] {
        let mut rates: Vec<f64> = (0..ROUNDS).map(|_| round(length)).collect();
        rates.sort_by(f64::total_cmp);
        let [least, .., most] = rates[..] else { unreachable!("there are several rounds") };
        println!("  {length:>4} bytes          {:>9.0} packets/s ({least:.0} to {most:.0})", rates[ROUNDS / 2]);
    }
}

fn round(length: usize) -> f64 {
    let mut rig = Rig::new();
    let (sent, taken) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
    let refused = Arc::new(AtomicU64::new(0));
    let (count, seen, lost) = (sent.clone(), taken.clone(), refused.clone());
    rig.work(Box::new(move |switch, now| {
        if count.load(Relaxed) - seen.load(Relaxed) + BATCH > ON_THE_WAY {
            std::thread::yield_now();
            return true;
        }
        let mut output = Vec::new();
        switch.step(now, &mut (0..BATCH).map(|_| frame(length)).collect(), &mut output);
        lost.fetch_add(output.len() as u64, Relaxed);
        count.fetch_add(BATCH, Relaxed);
        true
    }));
    let begin = Instant::now();
    let mut received = 0i64;
    rig.runtime.block_on(async {
        while begin.elapsed() < LENGTH {
            rig.messages.message().await.expect("the stream goes on").expect("the stream goes on");
            received += 1;
            taken.store(received, Relaxed);
        }
    });
    let rate = received as f64 / begin.elapsed().as_secs_f64();
    assert_eq!((refused.load(Relaxed), rig.listening.dropped()), (0, 0), "no packet goes elsewhere");
    rate
}
