//! Behaviour of the switch: each test says which frames leave, when, and what the switch counted.

use std::sync::Arc;

use ::switch::{Backup, Device, DropReason, Frame, MirrorSession, MulticastGroup, Notification, PortId, Replica, Time};
use bits::Bits;

use super::probe::{Do, frame, program, report};
use crate::{Config, Switch};

/// Returns a probe with ports 0 to 3.
pub fn probe() -> Switch {
    let program = program();
    ir::validate(&program).expect("the probe is a valid program");
    Switch::new(Arc::new(program), Config::with_ports(4)).expect("the probe fits the switch")
}

/// Sends frames into port 0 at a time and returns what leaves: `port: report`.
fn send(switch: &mut Switch, now_us: u64, frames: &[Vec<u8>]) -> Vec<String> {
    let mut input: Vec<Frame> = frames.iter().map(|data| Frame::new(0, data.clone())).collect();
    let mut output = Vec::new();
    switch.step(Time::from_us(now_us), &mut input, &mut output);
    output.iter().map(|frame| format!("{}: {}", frame.port, report(&frame.data))).collect()
}

fn drops(switch: &Switch, reason: DropReason) -> u64 {
    switch.registry().get(&format!("drop.{}", reason.name())).expect("every reason is registered")
}

#[test]
fn a_packet_leaves_by_the_port_that_ingress_chose() {
    let mut switch = probe();
    let left = send(&mut switch, 12, &[frame(Do::Unicast, 2, 0, 10)]);
    assert_eq!(left, ["2: op=0 kept=7 length=15 in_us=12 out_us=12 port=2 payload=10"]);
    assert_eq!(switch.registry().get("port.0.rx.bytes"), Some(15));
    assert_eq!(switch.registry().get("port.2.tx.bytes"), Some(15 + 25));
    assert_eq!(switch.registry().get("queue.2.0.packets"), Some(1));
}

#[test]
fn drops_are_counted_at_the_statement_that_asked() {
    let mut switch = probe();
    let frames = [Do::Drop, Do::Drop, Do::DropWithoutSite, Do::DropInEgress, Do::AssertInIngress];
    let left = send(&mut switch, 0, &frames.map(|op| frame(op, 1, 0, 0)));
    assert_eq!(left, [""; 0]);
    let sites: Vec<String> = switch.drop_sites().iter().map(ToString::to_string).collect();
    assert_eq!(
        sites,
        [
            "2 dropped in ingress by the program at probe.p4:101:9 (ProbeIngress)",
            "1 dropped in ingress by the program",
            "1 dropped in ingress: an assertion of the program failed at probe.p4:108:9 (ProbeIngress)",
            "1 dropped in egress by the program",
        ]
    );
}

#[test]
fn frames_the_switch_cannot_take_or_send_are_counted() {
    let mut switch = probe();
    let long = vec![0; switch.config().max_frame + 1];
    assert_eq!(send(&mut switch, 0, &[vec![], long, frame(Do::Unicast, 100, 0, 0)]), [""; 0]);
    let mut input = vec![Frame::new(77, frame(Do::Unicast, 1, 0, 0)), Frame::new(3, frame(Do::Unicast, 1, 0, 0))];
    assert!(switch.set_port_up(PortId(3), false));
    switch.step(Time::ZERO, &mut input, &mut Vec::new());
    assert_eq!(send(&mut switch, 0, &[frame(Do::Unicast, 3, 0, 0)]), [""; 0]);
    for reason in [
        DropReason::Runt,
        DropReason::Oversized,
        DropReason::NoEgressPort,
        DropReason::NoIngressPort,
        DropReason::IngressPortDown,
        DropReason::EgressPortDown,
    ] {
        assert_eq!(drops(&switch, reason), 1, "{reason:?}");
    }
}

#[test]
fn a_packet_too_short_for_the_parser_goes_on_with_an_error() {
    let mut switch = probe();
    assert_eq!(send(&mut switch, 0, &[vec![0, 0]]), ["0: 27 bytes"]);
    assert_eq!(switch.registry().get("parser.errors"), Some(1));
}

#[test]
fn multicast_copies_carry_their_replica_ids() {
    let mut switch = probe();
    let replicas = vec![Replica::new(1, 10), Replica::new(2, 20), Replica::new(2, 21)];
    assert!(switch.set_multicast_group(5, Some(MulticastGroup { replicas })));
    let left = send(&mut switch, 0, &[frame(Do::Multicast, 3, 5, 1)]);
    assert_eq!(
        left,
        [
            "1: op=3 type=5 rid=10 kept=7 length=6 port=1 payload=1",
            "2: op=3 type=5 rid=20 kept=7 length=6 port=2 payload=1",
            "2: op=3 type=5 rid=21 kept=7 length=6 port=2 payload=1",
        ]
    );
    assert_eq!(send(&mut switch, 0, &[frame(Do::Multicast, 3, 6, 1)]), [""; 0]);
    assert_eq!(drops(&switch, DropReason::NoGroup), 1);
}

#[test]
fn a_backup_carries_the_replica_id_that_it_was_given() {
    let mut switch = probe();
    let backups = vec![Backup { port: PortId(3), rid: 30 }];
    let replicas = vec![Replica::new(1, 10), Replica { backups, ..Replica::new(2, 20) }];
    assert!(switch.set_multicast_group(5, Some(MulticastGroup { replicas })));
    switch.set_port_up(PortId(2), false);
    let left = send(&mut switch, 0, &[frame(Do::Multicast, 3, 5, 1)]);
    assert_eq!(
        left,
        [
            "1: op=3 type=5 rid=10 kept=7 length=6 port=1 payload=1",
            "3: op=3 type=5 rid=30 kept=7 length=6 port=3 payload=1",
        ]
    );
}

#[test]
fn clones_wait_in_the_queue_of_their_class_of_service() {
    let mut switch = probe();
    let session = MirrorSession { class_of_service: 6, ..MirrorSession::to_port(3) };
    assert!(switch.set_mirror_session(9, Some(session)));
    assert_eq!(send(&mut switch, 1, &[frame(Do::CloneIngress, 1, 9, 2)]).len(), 2);
    assert_eq!(send(&mut switch, 1, &[frame(Do::CloneEgress, 1, 9, 2)]).len(), 2);
    let waited = |name: &str| switch.registry().get(name);
    assert_eq!((waited("queue.3.6.packets"), waited("queue.3.0.packets")), (Some(2), Some(0)));
    assert_eq!(waited("queue.1.0.packets"), Some(2), "the packets themselves wait where they would have");
}

#[test]
fn an_ingress_clone_is_the_packet_as_it_came_with_the_kept_fields() {
    let mut switch = probe();
    assert!(switch.set_mirror_session(9, Some(MirrorSession::to_port(3))));
    let left = send(&mut switch, 1, &[frame(Do::CloneIngress, 1, 9, 2)]);
    assert_eq!(
        left,
        [
            "3: op=4 type=1 kept=7 length=7 out_us=1 port=3 payload=2",
            "1: op=255 kept=7 length=7 in_us=1 out_us=1 port=1 payload=2",
        ]
    );
    assert_eq!(send(&mut switch, 1, &[frame(Do::CloneIngress, 1, 8, 2)]).len(), 1);
    assert_eq!(drops(&switch, DropReason::NoMirrorSession), 1);
}

#[test]
fn a_mirror_session_cuts_its_copies_and_may_name_a_group() {
    let mut switch = probe();
    assert!(switch.set_multicast_group(1, Some(MulticastGroup::of_ports([2, 3]))));
    assert!(switch.set_mirror_session(9, Some(MirrorSession::to_group(1).truncated(26))));
    let left = send(&mut switch, 0, &[frame(Do::CloneIngress, 1, 9, 2)]);
    assert_eq!(left[..2], ["2: 26 bytes", "3: 26 bytes"]);
    assert_eq!(left.len(), 3);
}

#[test]
fn an_egress_clone_is_the_packet_as_it_was_and_goes_through_egress() {
    let mut switch = probe();
    assert!(switch.set_mirror_session(9, Some(MirrorSession::to_port(3))));
    let left = send(&mut switch, 0, &[frame(Do::CloneEgress, 1, 9, 2)]);
    // The report header was valid when the clone was made, and counts for its length.
    assert_eq!(left, ["1: op=9 kept=7 length=7 port=1 payload=2", "3: op=9 type=2 kept=7 length=32 port=3 payload=2"]);
}

#[test]
fn resubmission_starts_over_with_the_packet_as_it_came_and_the_kept_fields() {
    let mut switch = probe();
    let left = send(&mut switch, 3, &[frame(Do::ResubmitOnce, 1, 0, 0)]);
    assert_eq!(left, ["1: op=5 kept=14 length=5 in_us=3 out_us=3 port=1 payload=0"]);
    assert_eq!(switch.registry().get("resubmit.packets"), Some(1));
}

#[test]
fn recirculation_starts_over_with_the_packet_as_it_leaves() {
    let mut switch = probe();
    let left = send(&mut switch, 3, &[frame(Do::Recirculate, 1, 0, 0)]);
    assert_eq!(left, ["1: op=11 kept=14 length=30 in_us=3 out_us=3 port=1 payload=25"]);
    assert_eq!(switch.registry().get("recirculate.packets"), Some(1));
}

#[test]
fn no_packet_loops_for_ever() {
    for op in [Do::ResubmitAlways, Do::RecirculateAlways] {
        let mut switch = probe();
        assert_eq!(send(&mut switch, 0, &[frame(op, 1, 0, 0)]), [""; 0], "{op:?}");
        assert_eq!(drops(&switch, DropReason::LoopLimit), 1, "{op:?}");
    }
    // Clones of clones, to a hundred ports each time, end at the limit on work.
    let mut switch = probe();
    let ports = (0..100).map(|_| 1);
    assert!(switch.set_multicast_group(1, Some(MulticastGroup::of_ports(ports))));
    assert!(switch.set_mirror_session(1, Some(MirrorSession::to_group(1))));
    let left = send(&mut switch, 0, &[frame(Do::CloneEgressAlways, 1, 1, 0)]);
    assert!(left.len() <= switch.config().max_work as usize, "{} frames left", left.len());
    assert!(drops(&switch, DropReason::LoopLimit) > 0);
}

#[test]
fn truncation_cuts_what_leaves() {
    let mut switch = probe();
    let left = send(&mut switch, 0, &[frame(Do::Truncate, 1, 9, 100), frame(Do::Truncate, 1, 9000, 1)]);
    assert_eq!(left[0], "1: 9 bytes");
    assert!(left[1].ends_with("payload=1"));
}

#[test]
fn digests_and_packets_for_the_control_plane_come_out_as_values() {
    let mut switch = probe();
    let left = send(&mut switch, 4, &[frame(Do::Digest, 1, 77, 0), frame(Do::Unicast, 510, 0, 0)]);
    assert_eq!(left.len(), 1);
    let notifications = switch.take_notifications();
    let [Notification::Digest { values, time, .. }, Notification::PacketIn { port, data, .. }] =
        notifications.as_slice()
    else {
        panic!("{notifications:?}");
    };
    assert_eq!(values, &[Bits::new(1, 16), Bits::new(77, 16)]);
    assert_eq!((*time, *port, data.len()), (Time::from_us(4), PortId(510), 30));
    assert_eq!(switch.take_notifications(), []);
    // A packet from the control plane arrives on the CPU port.
    let mut output = Vec::new();
    switch.step(Time::from_us(5), &mut vec![Frame::new(510, frame(Do::Unicast, 2, 0, 0))], &mut output);
    assert_eq!(output.len(), 1);
}

#[test]
fn unread_notifications_are_bounded_and_losses_are_counted() {
    let config = Config { max_notifications: 2, ..Config::with_ports(4) };
    let mut switch = Switch::new(Arc::new(program()), config).expect("the probe fits the switch");
    let frames: Vec<_> = (0..5).map(|arg| frame(Do::Digest, 1, arg, 0)).collect();
    send(&mut switch, 0, &frames);
    assert_eq!(switch.take_notifications().len(), 2);
    assert_eq!(switch.registry().get("notification.lost"), Some(3));
}

#[test]
fn queued_packets_leave_when_a_switch_is_drained_at_workers_too() {
    let frames = || [1, 1, 1, 2, 2].map(|port| frame(Do::Unicast, port, 0, 0));
    let mut switch = probe();
    switch.set_port_rate(PortId(1), Some(1));
    switch.set_port_bandwidth(PortId(2), Some(8));
    let mut workers = switch.workers(2);
    let drained = |switch: &mut Switch| {
        let left = send(switch, 10, &frames()).len();
        let waiting = switch.waiting();
        let mut output = Vec::new();
        switch.drain(Time::from_us(10), &mut output);
        assert_eq!((left + output.len(), output.len(), switch.waiting()), (5, waiting, 0));
        waiting
    };
    assert!(drained(&mut workers[1]) > 0);
    assert!(drained(&mut switch) > 0);
}

#[test]
fn a_rated_port_sends_by_priority_when_its_time_has_come() {
    let mut switch = probe();
    switch.set_port_rate(PortId(1), Some(1_000_000));
    let frames = [0, 0, 5].map(|priority| frame(Do::SecondByteIsPriority, 1, priority, 0));
    let left = send(&mut switch, 10, &frames);
    assert_eq!(left, ["1: op=15 kept=7 length=5 in_us=10 out_us=10 port=1 payload=0"]);
    assert_eq!(switch.registry().get("queue.1.0.depth"), Some(1));
    assert_eq!(switch.next_event(), Some(Time::from_us(11)));
    let left = send(&mut switch, 12, &[]);
    assert_eq!(
        left,
        [
            "1: op=15 kept=7 length=5 in_us=10 out_us=11 waited=1 port=1 payload=0",
            "1: op=15 kept=7 length=5 in_us=10 out_us=12 waited=2 port=1 payload=0",
        ]
    );
    assert_eq!(switch.next_event(), None);
    assert_eq!(switch.registry().get("queue.1.0.depth"), Some(0));
}

#[test]
fn a_queue_holds_as_many_packets_as_it_may() {
    let mut switch = probe();
    switch.set_port_rate(PortId(1), Some(1));
    switch.set_queue_depth(PortId(1), None, 2);
    let frames: Vec<_> = (0..5).map(|_| frame(Do::Unicast, 1, 0, 0)).collect();
    assert_eq!(send(&mut switch, 0, &frames).len(), 1);
    assert_eq!(drops(&switch, DropReason::QueueFull), 2);
    assert_eq!(switch.registry().get("queue.1.0.dropped"), Some(2));
    let left = send(&mut switch, 2_000_000, &[]);
    assert_eq!(
        left,
        [
            "1: op=0 kept=7 length=5 out_us=1000000 waited=1000000 deq_depth=1 port=1 payload=0",
            "1: op=0 kept=7 length=5 out_us=2000000 waited=2000000 enq_depth=1 port=1 payload=0",
        ]
    );
}

#[test]
fn the_summary_has_received_sent_and_dropped_packets() {
    let mut switch = probe();
    switch.set_multicast_group(5, Some(MulticastGroup::of_ports([1, 2])));
    let frames = [Do::Unicast, Do::Drop, Do::Drop, Do::Multicast, Do::ResubmitOnce].map(|op| frame(op, 2, 5, 59));
    send(&mut switch, 0, &frames);
    let expected = "\
port  rx packets  rx bytes  tx packets  tx bytes
   0           5       320           0         0
   1           0         0           1        89
   2           0         0           3       267

2 dropped in ingress by the program at probe.p4:101:9 (ProbeIngress)

multicast.packets   1
multicast.replicas  2
resubmit.packets    1
";
    assert_eq!(switch.summary(), expected);
}

#[test]
fn the_same_frames_give_the_same_output() {
    let run = || {
        let mut switch = probe();
        switch.set_multicast_group(5, Some(MulticastGroup::of_ports([1, 2, 3])));
        let all: Vec<_> = (0..50).map(|n| frame(Do::Multicast, 2, 5, n)).collect();
        (send(&mut switch, 1, &all), switch.registry().to_json())
    };
    assert_eq!(run(), run());
}

#[test]
fn a_switch_can_be_handed_to_a_thread() {
    fn is_send<T: Send>(_: &T) {}
    is_send(&probe());
}

#[test]
fn programs_that_are_not_v1model_are_refused() {
    let refuse = |change: &dyn Fn(&mut ir::Program), ports: &[u32]| {
        let mut program = program();
        change(&mut program);
        let config = Config { ports: ports.iter().map(|port| PortId(*port)).collect(), ..Config::default() };
        Switch::new(Arc::new(program), config).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(refuse(&|program| program.arch = "psa".into(), &[]).contains("`psa`"));
    assert!(refuse(&|program| program.blocks.retain(|role, _| role != "egress"), &[]).contains("`egress`"));
    assert!(refuse(&|_| (), &[1, 1]).contains("port 1"));
    let rename = |program: &mut ir::Program| {
        for slot in program.slots.values_mut() {
            slot.name = slot.name.replace("egress_spec", "other");
        }
    };
    assert!(refuse(&rename, &[]).contains("standard_metadata.egress_spec"));
}
