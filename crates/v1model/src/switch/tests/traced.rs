//! Traces compared to the files in `testdata/trace`; `UPDATE_EXPECT=1` regenerates them.

use std::path::PathBuf;
use std::sync::Arc;

use ::switch::trace::{PassOutcome, Trace};
use ::switch::{Device, Frame, MirrorSession, MulticastGroup, PortId, Time};
use bits::Bits;
use diagnostics::{Diagnostics, SourceMap};

use super::probe::{Do, frame};
use super::story::probe;
use crate::{Config, Switch};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/trace").join(name)
}

/// Compares a text to the file of this name.
fn expect(name: &str, text: &str) {
    testing::golden::assert_golden(path(name), text);
}

/// Returns the router of `router.ir`, with its text changed before it is parsed. Each statement that sets
/// `$drop_site` names its own place.
pub fn router(change: impl Fn(String) -> String) -> Switch {
    let mut map = SourceMap::new();
    let text = change(std::fs::read_to_string(path("router.ir")).expect("the program can be read"));
    let file = map.add("router.ir", text);
    let mut diagnostics = Diagnostics::new();
    let program = ir::parse(&map, file, &mut diagnostics);
    let mut program = program.unwrap_or_else(|| panic!("{}", diagnostics.render(&map, false)));
    let site = program.slot_named("$drop_site").expect("the router has drop sites");
    for block in program.bodies.values_mut().flat_map(|body| body.blocks.values_mut()) {
        for instr in &mut block.instrs {
            if let ir::Op::Assign(ir::LValue::Slot(slot), value) = &mut instr.op
                && *slot == site
            {
                *value = ir::Expr::Const(Bits::new(u128::from(instr.loc.as_u32()), 32));
            }
        }
    }
    ir::validate(&program).expect("the router is a valid program");
    Switch::new(Arc::new(program), Config::with_ports(4)).expect("the router fits the switch")
}

/// Returns the text unchanged.
fn same(text: String) -> String {
    text
}

/// Returns an Ethernet frame with an IPv4 header (checksum 0) to 10.0.`net`.1, and four bytes.
pub fn packet(net: u8) -> Vec<u8> {
    let mut data = vec![0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 2, 2, 8, 0];
    data.extend([0x45, 0, 0, 24, 0, 1, 0, 0, 64, 17, 0, 0, 10, 9, 8, 7, 10, 0, net, 1]);
    data.extend([1, 2, 3, 4]);
    data
}

fn trace(switch: &mut Switch, data: Vec<u8>) -> Trace {
    switch.trace(Time::from_us(1_500_042), Frame::new(3, data), &mut Vec::new())
}

#[test]
fn a_routed_packet() {
    let routed = trace(&mut router(same), packet(1));
    expect("routed.txt", &routed.render());
    expect("routed.json", &format!("{:#}\n", routed.to_json()));
}

#[test]
fn a_dropped_packet() {
    expect("dropped.txt", &trace(&mut router(same), packet(2)).render());
}

#[test]
fn a_packet_that_ends_within_a_header() {
    expect("short.txt", &trace(&mut router(same), packet(1)[..20].to_vec()).render());
}

#[test]
fn clones_and_copies_are_passes() {
    let mut switch = probe();
    switch.set_multicast_group(5, Some(MulticastGroup::of_ports([1, 2])));
    switch.set_mirror_session(5, Some(MirrorSession::to_port(3)));
    expect("clone.txt", &trace(&mut switch, frame(Do::CloneIngress, 2, 5, 3)).render());
    expect("multicast.txt", &trace(&mut switch, frame(Do::Multicast, 2, 5, 3)).render());
    expect("recirculate.txt", &trace(&mut switch, frame(Do::Recirculate, 2, 5, 3)).render());
}

#[test]
fn a_trace_does_what_a_step_does() {
    let (mut traced, mut stepped) = (router(same), router(same));
    for net in [1, 2, 1] {
        let mut from_trace = Vec::new();
        traced.trace(Time::ZERO, Frame::new(3, packet(net)), &mut from_trace);
        let mut from_step = Vec::new();
        stepped.step(Time::ZERO, &mut vec![Frame::new(3, packet(net))], &mut from_step);
        assert_eq!(from_trace, from_step);
    }
    assert_eq!(traced.registry().to_json(), stepped.registry().to_json());
}

#[test]
fn numbers_have_names() {
    let declared =
        "register MyIngress.r: 16 size 4\ncounter MyIngress.c: packets_and_bytes size 4\n\naction MyIngress.drop";
    let mut switch = router(|text| {
        text.replacen("action MyIngress.drop", declared, 1).replace(
            "    apply MyIngress.ipv4_lpm",
            "    write MyIngress.r[0x1:32] = 0x63:16\n    count MyIngress.c[0x2:32]\n    apply MyIngress.ipv4_lpm",
        )
    });
    trace(&mut switch, packet(1));
    for (name, number) in [
        ("table.MyIngress.ipv4_lpm.entries", Some(2)),
        ("register.MyIngress.r.1", Some(0x63)),
        ("register.MyIngress.r.4", None),
        ("counter.MyIngress.c.2.packets", Some(1)),
        ("counter.MyIngress.c.2.bytes", Some(38)),
        ("counter.MyIngress.c.2.colours", None),
        ("port.3.rx.packets", Some(1)),
        ("nothing", None),
        ("register..", None),
    ] {
        assert_eq!(switch.value(name), number, "{name}");
    }
    assert_eq!(switch.values_json()["table.MyIngress.ipv4_lpm.entries"], 2);
}

#[test]
fn a_trace_leaves_a_packet_in_its_queue_and_does_not_follow_others() {
    let mut switch = probe();
    switch.set_port_rate(PortId(2), Some(1));
    let first = trace(&mut switch, frame(Do::Unicast, 2, 0, 0));
    assert!(matches!(first.passes[0].outcome, PassOutcome::Sent { port: 2, .. }), "{}", first.render());
    let second = trace(&mut switch, frame(Do::Unicast, 2, 0, 0));
    assert_eq!(second.passes[0].outcome, PassOutcome::Queued { port: 2, priority: 0, depth: 1 });
    assert!(second.render().ends_with("waits for port 2 in queue 0, 1 packet deep\n"));
    // The second packet leaves while the third is traced, and is not part of that trace.
    let mut output = Vec::new();
    let third = switch.trace(Time::from_ms(5_000), Frame::new(0, frame(Do::Drop, 1, 0, 0)), &mut output);
    assert_eq!((third.passes.len(), output.len()), (1, 1));
}

#[test]
fn a_drop_at_a_port_names_the_port() {
    let mut switch = probe();
    let away = trace(&mut switch, frame(Do::Unicast, 9, 0, 0)).render();
    assert!(away.ends_with("dropped on sending: the switch has no such port (port 9)\n"), "{away}");
    switch.set_port_up(PortId(2), false);
    let down = trace(&mut switch, frame(Do::Unicast, 2, 0, 0)).render();
    assert!(down.ends_with("dropped on sending: the port is down (port 2)\n"), "{down}");
}

#[test]
fn a_trace_of_a_loop_is_bounded() {
    let looped = trace(&mut probe(), frame(Do::ResubmitAlways, 1, 0, 0));
    assert_eq!(looped.passes.len(), 256);
    assert!(matches!(looped.passes[255].outcome, PassOutcome::Dropped { reason: "loop-limit", .. }));
}
