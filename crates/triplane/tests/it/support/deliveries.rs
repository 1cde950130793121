//! A feed of messages through a switch, and the ports that got each message.

// Not every test uses all of these items.
#![allow(dead_code)]

use std::collections::{BTreeMap, HashMap};

use itch_feed::{DatagramMessages, Filter, Mix, Receiver, Spec, Workload};
use wire::ethernet;

pub fn payload(frame: &[u8]) -> &[u8] {
    &frame[ethernet::HEADER_LEN + 20 + 8..]
}

pub fn spec() -> Spec {
    Spec { share: 0.3, others: 4, mix: Mix::BOOK, counts: DatagramMessages::Exactly(4), ..Workload::Synthetic.spec(7) }
}

pub fn bytes(message: &wire::itch::Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.emit(&mut bytes);
    bytes
}

/// Returns the ports that want a message, according to rules.
pub fn wanted(rules: &[String], message: &wire::itch::Message) -> Vec<u32> {
    let mut ports = Vec::new();
    if !rules.is_empty() {
        for rule in Filter::parse_rules("rules", &rules.join("\n")).unwrap_or_else(|wrong| panic!("{wrong}")) {
            ports.extend(rule.ports.iter().filter(|_| rule.filter.wants(message)));
        }
    }
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// Returns the ports at which each message left, keyed by its bytes. The numbers of a port must have no gaps.
pub fn delivered(left: &BTreeMap<u32, Vec<Vec<u8>>>) -> HashMap<Vec<u8>, Vec<u32>> {
    let mut delivered: HashMap<Vec<u8>, Vec<u32>> = HashMap::new();
    for (port, frames) in left {
        let mut receiver = Receiver::from_start();
        for frame in frames {
            for arrival in receiver.receive(payload(frame), 0).expect("well-formed") {
                delivered.entry(bytes(&arrival.message)).or_default().push(*port);
            }
        }
        let totals = receiver.totals();
        assert_eq!((totals.missing, totals.repeated), (0, 0), "port {port} has gaps in {} messages", totals.messages);
    }
    delivered
}
