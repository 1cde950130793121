//! Measures the cost of a sealed datagram, from messages to messages, compared with an unsealed one.
//!
//! ```text
//! cargo bench -p resilient --bench sealed
//! ```
//!
//! Both alternate; the figures are medians, and the ratio is the median of the ratios of a turn. The last columns are
//! the differences: the costs of the seal and of the check.

use std::hint::black_box;
use std::time::Instant;

use resilient::message::{Request, RequestBody};
use resilient::sealed::{HEADER_BYTES, TAG_BYTES};
use resilient::{
    ClusterFingerprint, ClusterKey, DatagramSealer, NodeId, OwnerId, Peer, RowId, RowValues, StoreMessage, SwitchId,
    wire_form,
};
use switch::Time;

const TURNS: usize = 101;
const DATAGRAMS: u32 = 2_000;
const SWITCH: Peer = Peer::Switch(SwitchId(1));
const STORE: Peer = Peer::Node(NodeId(1));

/// Returns a write of a row with values of this length.
fn write(length: usize) -> StoreMessage {
    let values = RowValues::new(&vec![7; length]);
    let body = RequestBody::Write { row: RowId::of_index(1, 5), epoch: 3, seq: 9, values, outputs: None };
    StoreMessage::Request(Request { layout: 1, owner: OwnerId { switch: SwitchId(1), incarnation: 1 }, body })
}

/// Returns the switch that the header of a datagram names.
fn at_end(_: Peer) -> Option<OwnerId> {
    Some(OwnerId { switch: SwitchId(1), incarnation: 1 })
}

fn sealer(me: Peer, start: u64) -> DatagramSealer {
    let (key, fingerprint) = (ClusterKey::public(), ClusterFingerprint::new(b""));
    DatagramSealer::new(me, start, key, fingerprint, [SWITCH, STORE])
}

/// Delivers the messages of both, and returns their number.
fn exchange(switch: &mut DatagramSealer, store: &mut DatagramSealer) -> usize {
    let up: Vec<_> = switch.take_outgoing().collect();
    let mut messages = 0;
    up.iter().for_each(|(_, datagram)| messages += store.open(Time::ZERO, SWITCH, datagram).len());
    let down: Vec<_> = store.take_outgoing().collect();
    down.iter().for_each(|(_, datagram)| messages += switch.open(Time::ZERO, STORE, datagram).len());
    messages
}

fn turn(mut work: impl FnMut()) -> f64 {
    let begin = Instant::now();
    (0..DATAGRAMS).for_each(|_| work());
    begin.elapsed().as_nanos() as f64 / f64::from(DATAGRAMS)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let (mut switch, mut store) = (sealer(SWITCH, 1), sealer(STORE, 2));
    switch.send(Time::ZERO, &[(STORE, write(8))]);
    let exchanged: usize = (0..3).map(|_| exchange(&mut switch, &mut store)).sum();
    assert_eq!(exchanged, 1, "the pair knows each other");
    println!("| bytes, sealed | without, ns | sealed, ns | ratio | seal and check, ns |\n|---|---|---|---|---|");
    for (values, count) in [(8, 1), (64, 10)] {
        let messages: Vec<_> = (0..count).map(|_| (STORE, write(values))).collect();
        let bytes = wire_form::datagrams(&messages, at_end)[0].1.len() + TAG_BYTES;
        let mut figures: [Vec<f64>; 4] = Default::default();
        for _ in 0..TURNS {
            let plain = turn(|| {
                for (_, datagram) in wire_form::datagrams(black_box(&messages), at_end) {
                    let read = wire_form::read_messages(&datagram[HEADER_BYTES..], at_end(STORE))
                        .expect("it was just written");
                    assert_eq!(black_box(read).len(), count);
                }
            });
            let sealed = turn(|| {
                switch.send(Time::ZERO, black_box(&messages));
                assert_eq!(exchange(&mut switch, &mut store), count);
            });
            let all = [plain, sealed, sealed / plain, sealed - plain];
            figures.iter_mut().zip(all).for_each(|(list, value)| list.push(value));
        }
        let [plain, sealed, ratio, seal] = figures.each_mut().map(|list| median(list));
        println!("| {bytes} | {plain:.0} | {sealed:.0} | **{ratio:.2}** | {seal:.0} |");
    }
}
