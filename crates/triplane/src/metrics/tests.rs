//! The snapshot of a switch, in the text format.

use std::collections::BTreeMap;

use switch::{Device, Frame, PortId, Time};
use v1model::{Config, Executor, Switch};

use super::snapshot;
use crate::output::{Color, Output};

/// Parses samples by metric and labels. A line of another form fails the test.
fn samples(body: &str) -> BTreeMap<&str, u64> {
    let lines = body.lines().filter(|line| !line.starts_with("# "));
    lines.map(|line| line.rsplit_once(' ').map(|(name, value)| (name, value.parse().unwrap())).unwrap()).collect()
}

#[test]
fn a_snapshot_has_the_counts_of_the_switch() {
    let mut loader = crate::load::Loader::builtin("router.p4", include_str!("../../../../examples/router/router.p4"));
    let program = loader.program(&Output::new(Color::Never)).expect("the router is right");
    let ports = (1..=2).map(PortId).collect();
    let config = Config { ports, executor: Executor::Interpreter, ..Config::default() };
    let mut switch = Switch::new(program, config).expect("the switch runs it");
    let mut frames: Vec<Frame> = (0..5).map(|_| Frame::new(1, [0; 64])).collect();
    frames.push(Frame::new(9, [0; 64]));
    switch.step(Time::ZERO, &mut frames, &mut Vec::new());

    let body = snapshot(&switch).emit();
    let samples = samples(&body);
    assert_eq!(samples[r#"triplane_port_rx_packets_total{port="1"}"#], 5);
    assert_eq!(samples[r#"triplane_port_rx_bytes_total{port="1"}"#], 5 * 64);
    assert_eq!(samples[r#"triplane_drops_total{reason="rx.no-such-port"}"#], 1);
    assert_eq!(samples[r#"triplane_table_entries{table="RouterIngress.ipv4_lpm"}"#], 0);
    // Every drop reason of the summary is there.
    for reason in switch::DropReason::ALL.iter().map(|reason| reason.name()) {
        let counted = switch.registry().get(&format!("drop.{reason}")).expect("every reason is registered");
        assert_eq!(samples[&*format!("triplane_drops_total{{reason=\"{reason}\"}}")], counted);
    }
    let placed: u64 =
        samples.iter().filter(|(name, _)| name.starts_with("triplane_program_drops")).map(|(_, n)| n).sum();
    assert_eq!(placed, 5, "{body}");
}
