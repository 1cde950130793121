//! Reads the metrics of a process.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;

use super::Running;

/// Returns the address of a process's metrics, once it runs.
pub fn metrics_address(running: &mut Running) -> String {
    let line = running.wait_for("metrics on http://");
    running.wait_for("press Ctrl-C to stop");
    let rest = line.split_once("http://").and_then(|(_, rest)| rest.split_once("/metrics"));
    rest.expect("an address").0.to_owned()
}

/// Returns the samples of a metrics server.
pub fn samples(address: &str) -> BTreeMap<String, f64> {
    let mut peer = TcpStream::connect(address).expect("it serves metrics");
    peer.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("it takes a request");
    let mut answer = String::new();
    peer.read_to_string(&mut answer).expect("it answers");
    let lines = answer.lines().filter(|line| line.starts_with("triplane_"));
    let sample =
        |line: &str| line.rsplit_once(' ').map(|(name, value)| (name.to_owned(), value.parse().expect("a number")));
    lines.filter_map(sample).collect()
}
