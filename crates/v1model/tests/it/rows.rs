//! Tests that packets that wait for rows of resilient state have the same effects, once, as without waiting.

use std::path::PathBuf;
use std::sync::Arc;

use compiler::Source;
use engine::{RowState, StateRow};
use rng::SplitMix64;
use switch::{
    Device, DropReason, Egress, Frame, HeadroomBuf, MirrorSession, MulticastGroup, Notification, Output, PortId,
    Replica, RowSwitch, Time,
};
use v1model::{Config, Executor, Switch, V1Model};

/// The last way: a row of another group.
const SECOND_ROW: u8 = 0x80;

/// The mode in which a switch runs packets: the executor, and whether frames are in the driver's memory.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub executor: Executor,
    pub in_place: bool,
}

pub const WAYS: [Way; 3] = [
    Way { executor: Executor::Interpreter, in_place: false },
    Way { executor: Executor::Jit, in_place: false },
    Way { executor: Executor::Jit, in_place: true },
];

fn switch(way: Way) -> Switch {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/rows.p4");
    let text = std::fs::read_to_string(path).expect("the program can be read");
    let program = Arc::new(compiler::expect_program(&Source::new("rows.p4", &text), &V1Model).ir);
    let config = Config { executor: way.executor, cpu_port: Some(PortId(5)), ..Config::with_ports(5) };
    let mut switch = Switch::new(program, config).expect("the program fits the switch");
    let replicas = [(1, 1), (2, 2), (3, 3), (5, 4)].map(|(port, rid)| Replica::new(port, rid));
    switch.set_multicast_group(1, Some(MulticastGroup { replicas: replicas.to_vec() }));
    switch.set_mirror_session(1, Some(MirrorSession::to_port(4)));
    switch
}

fn frame(ways: u8, row: u8) -> Frame {
    Frame::new(1, [&[ways, row][..], &[0; 30]].concat())
}

/// Runs frames, all of one port, or what waits. Returns what leaves.
pub fn step(switch: &mut Switch, way: Way, frames: impl IntoIterator<Item = Frame>) -> Vec<Frame> {
    step_at(switch, way, Time::from_us(1), frames)
}

/// Runs frames at a time.
pub fn step_at(switch: &mut Switch, way: Way, now: Time, frames: impl IntoIterator<Item = Frame>) -> Vec<Frame> {
    let mut frames: Vec<Frame> = frames.into_iter().collect();
    let mut output = Vec::new();
    if !way.in_place {
        switch.step(now, &mut frames, &mut output);
        return output;
    }
    let mut batch: Vec<HeadroomBuf> = frames.iter().map(|frame| HeadroomBuf::new(&frame.data, 64)).collect();
    let mut left = Vec::new();
    let port = frames.first().map_or(PortId(1), |frame| frame.port);
    switch.step_in_place(now, port, &mut batch, &mut left);
    let frame = |egress| match egress {
        Egress::Owned(frame) => frame,
        Egress::InPlace { index, port } => Frame { port, data: batch[index].bytes().to_vec() },
    };
    left.into_iter().map(frame).collect()
}

/// Sorts what left, since what waited leaves later.
fn sorted(mut frames: Vec<Frame>, notifications: Vec<Notification>) -> Vec<String> {
    let mut all: Vec<String> = frames.drain(..).map(|frame| format!("{frame:?}")).collect();
    all.extend(notifications.iter().map(|notification| format!("{notification:?}")));
    all.sort();
    all
}

#[test]
fn a_packet_that_waited_does_once_what_one_does_that_did_not_wait() {
    WAYS.into_iter().for_each(waits);
}

fn waits(way: Way) {
    let (mut plain, mut owning) = (switch(way), switch(way));
    owning.own_rows(8);
    let mut rng = SplitMix64::new(1);
    let mut waited = 0;
    for _ in 0..2_000 {
        let frame = frame(rng.below(0x80) as u8, rng.below(18) as u8);
        let mut left = step(&mut owning, way, [frame.clone()]);
        let mut notifications = owning.take_notifications();
        loop {
            let awaited = owning.take_awaited();
            for row in &awaited {
                waited += 1;
                assert!(owning.parked(*row) > 0);
                owning.objects_mut().set_row_state(*row, RowState::Owned);
                owning.resume(*row);
            }
            left.extend(step(&mut owning, way, []));
            notifications.extend(owning.take_notifications());
            for held in owning.take_held() {
                match held.output {
                    Output::Frame(frame) => left.push(frame),
                    Output::Notification(notification) => notifications.push(notification),
                }
            }
            if awaited.is_empty() {
                break;
            }
        }
        // The next packet finds its row absent again, or owned with unacknowledged writes.
        for write in owning.objects_mut().take_row_writes() {
            let state = [RowState::Absent, RowState::Owned, RowState::Unacknowledged][rng.below(3) as usize];
            owning.objects_mut().set_row_state(write.row, state);
        }
        let expected = step(&mut plain, way, [frame]);
        assert_eq!(sorted(left, notifications), sorted(expected, plain.take_notifications()));
    }
    assert!(waited > 200, "{waited}");
    assert_eq!(owning.registry().to_json(), plain.registry().to_json());
    assert_eq!(format!("{:?}", owning.objects()), format!("{:?}", plain.objects()));
}

#[test]
fn batches_in_which_packets_write_rows_do_what_batches_without_owners_do() {
    WAYS.into_iter().for_each(runs_batches);
}

fn runs_batches(way: Way) {
    let (mut plain, mut owning) = (switch(way), switch(way));
    owning.own_rows(8);
    let mut rng = SplitMix64::new(2);
    let mut held = 0;
    for _ in 0..200 {
        for index in 0..16 {
            let state = [RowState::Owned, RowState::Unacknowledged][rng.below(2) as usize];
            owning.objects_mut().set_row_state(StateRow { group: 0, index }, state);
        }
        let frames: Vec<Frame> = (0..32).map(|_| frame(rng.below(0x80) as u8, rng.below(16) as u8)).collect();
        let mut left = step(&mut owning, way, frames.clone());
        let mut notifications = owning.take_notifications();
        for output in owning.take_held() {
            held += 1;
            match output.output {
                Output::Frame(frame) => left.push(frame),
                Output::Notification(notification) => notifications.push(notification),
            }
        }
        let expected = step(&mut plain, way, frames);
        assert_eq!(sorted(left, notifications), sorted(expected, plain.take_notifications()));
    }
    assert!(held > 1_000, "{held}");
    assert_eq!(owning.take_awaited(), []);
    assert_eq!(owning.registry().to_json(), plain.registry().to_json());
    assert_eq!(format!("{:?}", owning.objects()), format!("{:?}", plain.objects()));
}

#[test]
fn everything_that_a_writer_sends_is_held_until_its_write_is_acknowledged() {
    WAYS.into_iter().for_each(holds);
}

fn holds(way: Way) {
    let mut switch = switch(way);
    switch.own_rows(8);
    let row = StateRow { group: 0, index: 3 };
    switch.objects_mut().set_row_state(row, RowState::Owned);
    // A clone, replicas, a digest, and a packet-in among the replicas.
    assert_eq!(step(&mut switch, way, [frame(0x0f, 3)]), []);
    assert_eq!(switch.take_notifications(), []);
    let held = switch.take_held();
    assert!(held.iter().all(|held| (held.dependency.row, held.dependency.writes) == (row, 1)));
    let frames = held.iter().filter(|held| matches!(held.output, Output::Frame(_))).count();
    assert_eq!((frames, held.len() - frames), (4, 2));
    // A read after it is held, too; a packet of another row is not.
    assert_eq!(step(&mut switch, way, [frame(0x01, 3)]), []);
    assert_eq!(switch.take_held().len(), 2);
    switch.objects_mut().set_row_state(StateRow { group: 0, index: 4 }, RowState::Owned);
    assert_eq!(step(&mut switch, way, [frame(0x01, 4)]).len(), 1);
    // A packet that recirculates depends on its writes in earlier passes.
    assert_eq!(step(&mut switch, way, [frame(0x40, 4)]), []);
    assert_eq!(switch.take_held().len(), 1);
    // Frames that wait in a queue leave with their dependency.
    switch.objects_mut().set_row_state(row, RowState::Owned);
    switch.set_port_rate(PortId(2), Some(1));
    for _ in 0..3 {
        step(&mut switch, way, [frame(0x03, 3)]);
    }
    let mut left = Vec::new();
    switch.step(Time::from_ms(10_000), &mut Vec::new(), &mut left);
    let writes: Vec<u64> = switch.take_held().iter().map(|held| held.dependency.writes).collect();
    assert_eq!((left, writes.len()), (vec![], 3 + 3), "digests and frames: {writes:?}");
}

#[test]
fn a_packet_with_two_rows_is_dropped_and_changes_nothing() {
    WAYS.into_iter().for_each(uses_two_rows);
}

fn uses_two_rows(way: Way) {
    let mut switch = switch(way);
    switch.own_rows(8);
    for row in [StateRow { group: 0, index: 3 }, StateRow { group: 1, index: 3 }] {
        switch.objects_mut().set_row_state(row, RowState::Owned);
    }
    // An array that was written once takes memory.
    step(&mut switch, way, [frame(3, 3)]);
    switch.take_held();
    switch.objects_mut().take_row_writes();
    let before = format!("{:?}", switch.objects());
    assert_eq!(step(&mut switch, way, [frame(SECOND_ROW | 3, 3)]), []);
    assert_eq!(format!("{:?}", switch.objects()), before);
    assert_eq!((switch.take_held(), switch.take_notifications()), (vec![], vec![]));
    assert_eq!(switch.registry().get("drop.resilient.two-rows"), Some(1));
}

#[test]
fn packets_beyond_the_limit_and_of_unavailable_rows_are_counted() {
    WAYS.into_iter().for_each(is_refused);
}

fn is_refused(way: Way) {
    let mut switch = switch(way);
    switch.own_rows(2);
    for _ in 0..3 {
        step(&mut switch, way, [frame(0x03, 3)]);
    }
    let row = StateRow { group: 0, index: 3 };
    assert_eq!((switch.take_awaited(), switch.parked(row)), (vec![row], 2));
    assert_eq!(switch.registry().get("drop.resilient.hold-full"), Some(1));
    switch.drop_parked(row, DropReason::RowUnavailable);
    assert_eq!((switch.registry().get("drop.resilient.unavailable"), switch.parked(row)), (Some(2), 0));
    step(&mut switch, way, [frame(0x03, 3)]);
    assert_eq!(switch.take_awaited(), [row]);
}

#[test]
fn a_row_that_is_lost_while_its_packet_waits_in_a_queue_is_awaited_again() {
    WAYS.into_iter().for_each(loses_its_row);
}

fn loses_its_row(way: Way) {
    let mut switch = switch(way);
    switch.own_rows(8);
    let row = StateRow { group: 0, index: 3 };
    switch.objects_mut().set_row_state(row, RowState::Owned);
    switch.set_port_rate(PortId(2), Some(1));
    // They read the row in ingress, are in the queue when it is lost, and need it in egress.
    step(&mut switch, way, [frame(0x41, 3), frame(0x41, 3)]);
    assert_eq!((switch.waiting(), switch.take_awaited()), (2, vec![]));
    switch.take_held();
    switch.objects_mut().set_row_state(row, RowState::Absent);
    let mut left = Vec::new();
    switch.step(Time::from_ms(10_000), &mut Vec::new(), &mut left);
    assert_eq!((left, switch.take_held(), switch.take_awaited(), switch.parked(row)), (vec![], vec![], vec![row], 2));
}

#[test]
fn held_notifications_have_a_maximum() {
    let mut switch = Switch::new(
        Arc::clone(switch(WAYS[0]).program()),
        Config { max_notifications: 2, cpu_port: Some(PortId(5)), ..Config::with_ports(5) },
    )
    .expect("the program fits the switch");
    for byte in 0..3 {
        switch.release_notification(Notification::PacketIn { port: PortId(5), data: vec![byte], time: Time::ZERO });
    }
    switch.count_lost_notification();
    assert_eq!((switch.take_notifications().len(), switch.registry().get("notification.lost")), (2, Some(2)));
}
