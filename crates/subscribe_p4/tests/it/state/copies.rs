//! Maximum number of packets that one packet may cause, each to all ports of a switch.

use switch::{Device, Frame, Time};
use v1model::Executor;

use crate::state::workers::{numbered, prepared};

const PORTS: u32 = 510;
/// Maximum number of packets caused by one packet.
const PACKETS: usize = 33;
const MESSAGES: u8 = 40;

#[test]
fn no_copy_is_lost_of_as_many_packets_as_come_of_one() {
    let ports = |end: u32| (0..end).map(|port| port.to_string()).collect::<Vec<_>>().join(", ");
    let rules = format!("key == 0 : fwd({})\nkey == 1 : fwd({})", ports(PORTS), ports(PORTS - 1));
    let made = numbered(PORTS, |program| program);
    let mut switch = prepared(&made, &rules, Executor::Interpreter).workers(1).remove(0);
    let mut send = |number: u8, messages: u8| {
        let head = [0, 7 + 2 * messages, messages, 0, 0, 0, number];
        let items = (0..messages).flat_map(|at| [at % 2, 0]);
        let packet: Vec<u8> = head.into_iter().chain(items).collect();
        let mut out = Vec::new();
        switch.step(Time::ZERO, &mut vec![Frame::new(0u32, packet)], &mut out);
        out
    };
    let out = send(1, MESSAGES);
    for (port, expected) in [(0, PACKETS), (PORTS - 2, PACKETS), (PORTS - 1, PACKETS.div_ceil(2))] {
        assert_eq!(out.iter().filter(|frame| frame.port.0 == port).count(), expected, "port {port}");
    }
    // The rest is a gap that the next packet reveals.
    let end = send(MESSAGES + 1, 0);
    let first = end.iter().find(|frame| frame.port.0 == 0).expect("everyone gets it");
    assert_eq!(first.data[3..7], [0, 0, 0, MESSAGES + 1]);
}
