//! Copies of a packet pass egress in its buffer as they do each in a buffer of its own, in both executors.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use compiler::Source;
use rng::SplitMix64;
use switch::{
    Device, DropSite, Egress, Frame, HeadroomBuf, MirrorSession, MulticastGroup, Notification, PortId, Replica, Time,
};
use v1model::{Config, Executor, Switch, V1Model};

/// A variant of the program.
#[derive(Default)]
struct Variant {
    /// Number of further headers.
    headers: usize,
    /// The expression that egress reports as length.
    length: &'static str,
    /// What egress requests.
    asks: &'static str,
    /// What the deparser does at its end.
    at_end: &'static str,
}

/// Compiles a variant of `testdata/copies_differ.p4`.
fn compile(variant: &Variant) -> Arc<ir::Program> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/copies_differ.p4");
    let text = std::fs::read_to_string(path).expect("the program can be read");
    let (mut declared, mut emitted) = (String::new(), String::new());
    for number in 0..variant.headers {
        writeln!(declared, "more_h more{number};").expect("strings take all text");
        writeln!(emitted, "packet.emit(hdr.more{number});").expect("strings take all text");
    }
    let text = text
        .replace("    MORE\n", &declared)
        .replace("EMITS", &(emitted + variant.at_end))
        .replace("LENGTH", variant.length);
    let text = text.replace("ASKS", variant.asks);
    Arc::new(compiler::expect_program(&Source::new("copies_differ.p4", &text), &V1Model).ir)
}

/// Returns a switch with a group of five replicas and two sessions.
fn switch(program: &Arc<ir::Program>, executor: Executor) -> Switch {
    let config = Config { executor, cpu_port: Some(PortId(5)), ..Config::with_ports(5) };
    let mut switch = Switch::new(program.clone(), config).expect("the program fits the switch");
    let replicas = [(1, 1), (2, 2), (3, 3), (5, 4), (2, 5)].map(|(port, rid)| Replica::new(port, rid));
    switch.set_multicast_group(1, Some(MulticastGroup { replicas: replicas.to_vec() }));
    switch.set_mirror_session(1, Some(MirrorSession::to_port(4)));
    let all = MirrorSession { replicas: vec![Replica::new(3, 6)], ..MirrorSession::to_group(1) };
    switch.set_mirror_session(2, Some(all.truncated(20)));
    switch
}

/// Returns a frame that asks for random copies.
fn frame(rng: &mut SplitMix64) -> Vec<u8> {
    let mut byte = || rng.below(256) as u8;
    let ways = [0x01, 0x01, 0x02, 0x04, 0x05, 0x06, 0x09, 0x12, 0x13, 0x21, 0x00, 0x40, 0x40, 0x41, 0x42, 0x48, 0xc0];
    let mut data = vec![ways[byte() as usize % ways.len()], byte(), byte(), byte(), byte() & 0x83];
    let length = byte() % 60;
    data.extend((0..length).map(|_| byte()));
    data
}

/// Returns everything else that can be observed of a switch.
fn observed(switch: &mut Switch) -> (String, Vec<DropSite>, Vec<Notification>) {
    (switch.values_json().to_string(), switch.drop_sites(), switch.take_notifications())
}

fn copies_in_place_are_those_of_other_paths(variant: &Variant) {
    let program = compile(variant);
    let mut interpreted = switch(&program, Executor::Interpreter);
    let [mut copied, mut in_place] = [(); 2].map(|()| switch(&program, Executor::Jit));
    let locks: Arc<Vec<AtomicU64>> = Arc::new([0; 3].map(AtomicU64::new).into());
    for (at, switch) in [&mut interpreted, &mut copied, &mut in_place].into_iter().enumerate() {
        assert!(switch.objects_mut().share_atomic_lock(Arc::<Vec<AtomicU64>>::clone(&locks), at));
    }
    let mut rng = SplitMix64::new(variant.headers as u64 + 1);
    let mut copies = 0;
    for sent in 0..400 {
        let now = Time::from_us(sent as u64 * 10);
        let frames: Vec<Vec<u8>> = (0..1 + rng.below(32)).map(|_| frame(&mut rng)).collect();
        let step = |switch: &mut Switch| {
            let mut output = Vec::new();
            switch.step(now, &mut frames.iter().map(|data| Frame::new(1, data.clone())).collect(), &mut output);
            output
        };
        let expected = step(&mut interpreted);
        assert_eq!(step(&mut copied), expected, "batch {sent}");
        let room = [0, 4, 256][sent % 3];
        let mut batch: Vec<HeadroomBuf> = frames.iter().map(|data| HeadroomBuf::new(data, room)).collect();
        let mut left = Vec::new();
        in_place.step_in_place(now, PortId(1), &mut batch, &mut left);
        copies += left.iter().filter(|left| matches!(left, Egress::Owned(_))).count();
        let left = left.into_iter().map(|left| match left {
            Egress::Owned(frame) => frame,
            Egress::InPlace { index, port } => Frame { port, data: batch[index].bytes().to_vec() },
        });
        let left: Vec<Frame> = left.collect();
        let first = left.iter().zip(&expected).position(|(ours, theirs)| ours != theirs);
        let differing = first.map(|at| (&left[at], &expected[at]));
        assert_eq!(differing, None, "batch {sent}, frame {first:?}, with {room} bytes of room");
        assert_eq!(left.len(), expected.len(), "batch {sent}, with {room} bytes of room");
        let expected = observed(&mut interpreted);
        assert_eq!(observed(&mut copied), expected, "batch {sent}");
        assert_eq!(observed(&mut in_place), expected, "batch {sent}");
        // Other workers wait for a section that is left open.
        assert!(locks.iter().all(|lock| lock.load(Ordering::Relaxed) == 0), "batch {sent}: {locks:?}");
    }
    assert!(copies > 5_000, "{copies} copies were made");
}

#[test]
fn copies_of_few_headers_are_those_of_other_paths() {
    copies_in_place_are_those_of_other_paths(&Variant { length: "0", ..Variant::default() });
}

#[test]
fn copies_that_read_their_length_are_those_of_other_paths() {
    copies_in_place_are_those_of_other_paths(&Variant {
        headers: 1,
        length: "standard.packet_length",
        ..Variant::default()
    });
}

#[test]
fn copies_of_many_headers_are_those_of_other_paths() {
    copies_in_place_are_those_of_other_paths(&Variant { headers: 40, length: "0", ..Variant::default() });
}

/// Requests by some of the copies: truncation, a digest, a clone, another pass.
const REQUESTS: &str = "
    if (hdr.command.todo[6:6] == 1 && standard.egress_rid == 2) { truncate(7); }
    if (hdr.command.todo[1:1] == 1 && standard.egress_rid == 1) { digest(1, hdr.command); }
    if (hdr.command.todo[4:4] == 1 && standard.egress_rid == 1 && standard.instance_type == 5) {
        clone_preserving_field_list(CloneType.E2E, 2, 1);
    }
    if (hdr.command.todo[2:2] == 1 && standard.egress_rid >= 3 && standard.instance_type == 5) {
        hdr.command.way = 0;
        recirculate_preserving_field_list(1);
    }
";

#[test]
fn copies_that_request_something_are_those_of_other_paths() {
    let length = "standard.packet_length";
    copies_in_place_are_those_of_other_paths(&Variant { length, asks: REQUESTS, ..Variant::default() });
    copies_in_place_are_those_of_other_paths(&Variant {
        headers: 40,
        length: "0",
        asks: REQUESTS,
        ..Variant::default()
    });
}

#[test]
fn copies_that_are_truncated_are_those_of_other_paths() {
    let asks = "if (standard.egress_rid != 1) { truncate((bit<32>) hdr.command.value[4:0]); }";
    copies_in_place_are_those_of_other_paths(&Variant { length: "0", asks, ..Variant::default() });
}

/// Copies, and packets that are not copied, that fail after they requested a digest.
#[test]
fn copies_that_fail_after_requests_are_those_of_other_paths() {
    let asks = "digest(1, hdr.command); assert(hdr.command.value[1:0] != standard.egress_rid[1:0]);";
    copies_in_place_are_those_of_other_paths(&Variant { length: "0", asks, ..Variant::default() });
    copies_in_place_are_those_of_other_paths(&Variant { headers: 40, length: "0", asks, ..Variant::default() });
}

#[test]
fn copies_that_fail_in_the_deparser_are_those_of_other_paths() {
    let asks = "digest(1, hdr.command); truncate(9);";
    let at_end = "assert(hdr.command.value[1:0] != 2);";
    copies_in_place_are_those_of_other_paths(&Variant { length: "0", asks, at_end, ..Variant::default() });
    copies_in_place_are_those_of_other_paths(&Variant { length: "0", at_end, ..Variant::default() });
    copies_in_place_are_those_of_other_paths(&Variant { headers: 40, length: "0", asks, at_end });
}

/// An action that exits leaves the section, and what follows egress runs nevertheless.
#[test]
fn copies_that_exit_in_an_atomic_section_leave_it() {
    let asks = "@atomic { hdr.command.tags = hdr.command.tags ^ 0x40; marks.apply(); }";
    copies_in_place_are_those_of_other_paths(&Variant { length: "0", asks, ..Variant::default() });
    copies_in_place_are_those_of_other_paths(&Variant { headers: 40, length: "0", asks, ..Variant::default() });
}
