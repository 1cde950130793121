//! A scraper over the loopback interface, and a switch that is polled for its numbers.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use runtime::{Hook, HookContext};
use switch::{Device, Frame, PortId, Time};
use v1model::{Config, Executor, Switch};

use super::listen;
use crate::output::{Color, Output};

/// Sends a request, and returns the head and the body of the answer.
fn ask(address: SocketAddr, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("the listener takes connections");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("HTTP has a head");
    (head.to_owned(), body.to_owned())
}

/// Parses samples by metric and labels. A line of another form fails the test.
fn samples(body: &str) -> BTreeMap<&str, u64> {
    let lines = body.lines().filter(|line| !line.starts_with("# "));
    lines.map(|line| line.rsplit_once(' ').map(|(name, value)| (name, value.parse().unwrap())).unwrap()).collect()
}

#[test]
fn scraped_metrics_are_the_counts_of_the_switch() {
    let mut loader = crate::load::Loader::builtin("router.p4", include_str!("../../../../examples/router/router.p4"));
    let program = loader.program(&Output::new(Color::Never)).expect("the router is right");
    let ports = (1..=2).map(PortId).collect();
    let config = Config { ports, executor: Executor::Interpreter, ..Config::default() };
    let mut switch = Switch::new(program, config).expect("the switch runs it");
    let mut frames: Vec<Frame> = (0..5).map(|_| Frame::new(1, [0; 64])).collect();
    frames.push(Frame::new(9, [0; 64]));
    switch.step(Time::ZERO, &mut frames, &mut Vec::new());

    let (server, mut hook) = listen("127.0.0.1:0".parse().unwrap()).expect("there is a port");
    let address = server.address();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let packets = std::thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            let (output, injected) = (&mut Vec::new(), &mut Vec::new());
            let (now, switch) = (Time::ZERO, &mut switch);
            hook.poll(&mut HookContext { now, switch, output, injected, stop_others: &|| () });
            std::thread::yield_now();
        }
        switch
    });
    let (head, body) = ask(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    stop.store(true, Ordering::Relaxed);
    let switch = packets.join().expect("packets ran");

    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
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
