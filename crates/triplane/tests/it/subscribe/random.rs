//! Random rules over a feed with several messages per packet: each port gets exactly the messages that its rules ask
//! for, in order.
//!
//! For more runs: `SUBSCRIBE_FUZZ_COUNT=200 SUBSCRIBE_FUZZ_FROM=5 cargo test -p triplane --test it subscribe::random`.

use std::collections::BTreeSet;

use itch_feed::{DatagramMessages, Filter, Mix, Receiver, Spec, Workload, messages};
use rng::SplitMix64;
use wire::itch::Message;

use crate::subscribe::tables::TABLES;
use crate::subscribe::{FORMAT, feed, payload, run_rules};
use crate::support::feed::frame;

/// Ports that rules deliver to.
const PORTS: [u32; 4] = [2, 3, 4, 5];

fn one<'a>(rng: &mut SplitMix64, list: &[&'a str]) -> &'a str {
    list[rng.below(list.len() as u64) as usize]
}

fn test(rng: &mut SplitMix64) -> String {
    let compare = |rng: &mut SplitMix64| one(rng, &["<", "<=", ">", ">=", "==", "!="]);
    match rng.below(7) {
        0 => format!("stock {} \"{}\"", one(rng, &["==", "!="]), one(rng, &["GOOGL", "S0001", "S0002"])),
        1 => format!("stock {} {{\"GOOGL\", \"S0003\"}}", one(rng, &["in", "not in"])),
        2 => format!("side == \"{}\"", one(rng, &["B", "S"])),
        3 => format!(
            "kind {} {{\"{}\", \"{}\"}}",
            one(rng, &["in", "not in"]),
            one(rng, &["A", "E"]),
            one(rng, &["D", "P"])
        ),
        4 => format!("price {} {}", compare(rng), rng.below(10_000_000)),
        5 => format!("shares in {}..{}", rng.below(500), 500 + rng.below(1000)),
        _ => format!("{} {} shares", 100 * rng.below(20), compare(rng)),
    }
}

fn condition(rng: &mut SplitMix64, depth: u32) -> String {
    match rng.below(5) {
        0 if depth > 0 => format!("not ({})", condition(rng, depth - 1)),
        1 | 2 if depth > 0 => format!("({}) and ({})", condition(rng, depth - 1), condition(rng, depth - 1)),
        3 if depth > 0 => format!("({}) or ({})", condition(rng, depth - 1), condition(rng, depth - 1)),
        _ => test(rng),
    }
}

#[test]
fn each_port_gets_just_the_messages_that_random_rules_ask_for() {
    let (from, count) = (testing::number("SUBSCRIBE_FUZZ_FROM", 0u64), testing::number("SUBSCRIBE_FUZZ_COUNT", 4u64));
    let mut delivered = 0;
    for seed in from..from + count {
        let mut rng = SplitMix64::new(seed);
        let rules: Vec<(String, BTreeSet<u32>)> = (0..1 + rng.below(5))
            .map(|_| (condition(&mut rng, 2), (0..1 + rng.below(2)).map(|_| PORTS[rng.below(4) as usize]).collect()))
            .collect();
        let to = |ports: &BTreeSet<u32>| ports.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let text: String =
            rules.iter().map(|(condition, ports)| format!("{condition} : fwd({})\n", to(ports))).collect();
        let filters: Vec<(Filter, &BTreeSet<u32>)> =
            rules.iter().map(|(condition, ports)| (Filter::parse(condition).expect("a condition"), ports)).collect();
        let counts = if seed % 2 == 0 {
            DatagramMessages::Exactly(1 + rng.below(20) as u16)
        } else {
            Workload::Synthetic.spec(seed).counts
        };
        let payloads =
            feed(Spec { share: 0.2, others: 4, mix: Mix::BOOK, counts, ..Workload::Synthetic.spec(seed) }, 60);
        let frames: Vec<Vec<u8>> = payloads.iter().map(|payload| frame(payload)).collect();
        let order: &[&str] = if rng.percent(50) { &["--order", "price,stock"] } else { &[] };
        let passes: &[&str] = if rng.percent(30) { &["--messages-per-pass", "3"] } else { &[] };
        let bitmaps: &[&str] = [&[][..], &["--bitmaps", "60"], &["--bitmaps", "300"]][rng.below(3) as usize];
        let shape = [TABLES[seed as usize % TABLES.len()], order, passes, bitmaps].concat();
        let got = run_rules(FORMAT, &text, &shape, &frames, &PORTS);
        let all: Vec<Message> = payloads.iter().flat_map(|payload| messages(payload).unwrap()).collect();
        for (port, frames) in PORTS.iter().zip(got) {
            let wants =
                |message: &&Message| filters.iter().any(|(filter, to)| to.contains(port) && filter.wants(message));
            let asked: Vec<&Message> = all.iter().filter(wants).collect();
            let mut receiver = Receiver::from_start();
            let arrivals: Vec<Message> = frames
                .iter()
                .flat_map(|frame| receiver.receive(&payload(frame), 0).unwrap())
                .map(|arrival| arrival.message)
                .collect();
            assert_eq!(arrivals.len(), asked.len(), "seed {seed}, port {port}, {shape:?}\n{text}");
            assert!(
                arrivals.iter().eq(asked),
                "seed {seed}, port {port}, {shape:?}: others, or in another order\n{text}"
            );
            let totals = receiver.totals();
            assert_eq!((totals.missing, totals.repeated), (0, 0), "seed {seed}, port {port}, {shape:?}\n{text}");
            delivered += arrivals.len() as u64;
        }
    }
    assert!(delivered > 100 * count, "{delivered} messages were delivered");
}
