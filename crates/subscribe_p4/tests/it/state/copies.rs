//! Maximum number of packets that one packet may cause, and of their copies.

use subscribe_p4::ProgramOptions;
use switch::{Device, Frame, Time};
use v1model::Executor;

use crate::state::switch::{Made, TestSwitch};
use crate::state::workers::{numbered, prepared};

/// Sends a packet of messages with alternating keys to the switch, and returns what leaves.
fn send(switch: &mut TestSwitch, number: u8, messages: u8) -> Vec<Frame> {
    let mut worker = switch.workers(1).remove(0);
    let [high, low] = (7 + 2 * u16::from(messages)).to_be_bytes();
    let items = (0..messages).flat_map(|at| [at % 2, 0]);
    let packet: Vec<u8> = [high, low, messages, 0, 0, 0, number].into_iter().chain(items).collect();
    let mut out = Vec::new();
    worker.step(Time::ZERO, &mut vec![Frame::new(0u32, packet)], &mut out);
    out
}

/// Returns the number of packets that left by a port.
fn leaving(out: &[Frame], port: u32) -> usize {
    out.iter().filter(|frame| frame.port.0 == port).count()
}

/// 38 new orders with alternating subscribers are a frame of 1,506 bytes.
#[test]
fn no_copy_of_a_frame_of_ordinary_size_is_lost() {
    const ALL: u32 = 510;
    const MESSAGES: u8 = 38;
    let ports = |end: u32| (0..end).map(|port| port.to_string()).collect::<Vec<_>>().join(", ");
    let rules = format!("key == 0 : fwd({})\nkey == 1 : fwd({})", ports(ALL), ports(ALL - 1));
    let mut switch = prepared(&numbered(ALL, |program| program), &rules, Executor::Interpreter);
    let out = send(&mut switch, 1, MESSAGES);
    for (port, expected) in [(0, MESSAGES), (ALL - 2, MESSAGES), (ALL - 1, MESSAGES / 2)] {
        assert_eq!(leaving(&out, port), usize::from(expected), "port {port}");
    }
}

#[test]
fn messages_beyond_the_limit_of_passes_are_a_gap() {
    /// Maximum number of packets caused by one packet: 255 passes, two for each packet after the first.
    const PACKETS: usize = 128;
    const MESSAGES: u8 = 200;
    let rules = "key == 0 : fwd(0)\nkey == 1 : fwd(1)";
    let mut switch = prepared(&numbered(2, |program| program), rules, Executor::Interpreter);
    let out = send(&mut switch, 1, MESSAGES);
    assert_eq!((leaving(&out, 0), leaving(&out, 1)), (PACKETS / 2, PACKETS / 2));
    // The next packet reveals the gap: its number counts the lost messages.
    let end = send(&mut switch, MESSAGES + 1, 0);
    let first = end.iter().find(|frame| frame.port.0 == 0).expect("everyone gets it");
    let lost = usize::from(MESSAGES) - PACKETS;
    let next = u32::try_from(PACKETS / 2 + lost + 1).expect("small");
    assert_eq!(first.data[3..7], next.to_be_bytes());
}

#[test]
fn packets_without_messages_go_to_everyone_also_without_sequence_numbers() {
    const BATCH: &str = include_str!("../../../testdata/batch.p4");
    for options in [ProgramOptions::default(), ProgramOptions::default().with_bitmaps(3)] {
        let made = Made::with(BATCH, 3, options, |program| program);
        let mut switch = prepared(&made, "key == 0 : fwd(0)\nkey == 1 : fwd(2)", Executor::Interpreter);
        for count in [0, 0xff] {
            let packet = vec![0, 3, count];
            let mut out = Vec::new();
            let mut worker = switch.workers(1).remove(0);
            worker.step(Time::ZERO, &mut vec![Frame::new(0u32, packet.clone())], &mut out);
            let got: Vec<(u32, &[u8])> = out.iter().map(|frame| (frame.port.0, &frame.data[..])).collect();
            assert_eq!(got, [(0, &packet[..]), (2, &packet[..])], "{options:?}");
        }
    }
}
