//! More applications for the benchmark: their switches, and frames of 32 flows.

use std::fs::File;

use diagnostics::{Diagnostics, FileId};
use entries_file::StreamCheck;
use switch::HeadroomBuf;
use v1model::Switch;

use crate::BATCH;
use crate::replicated::{HEADROOM, switch};

/// A program of `examples` and the frames that pass it. All arrive at port 1.
pub struct BenchApplication {
    pub name: &'static str,
    /// The largest acceptable ratio.
    pub bound: &'static str,
    /// The program.
    path: &'static str,
    /// Its entries file, if it has one.
    entries: Option<&'static str>,
    /// Tables that stores fill.
    pub tables: &'static [&'static str],
    /// Batches that fetch the rows.
    pub warm_up: Vec<Vec<HeadroomBuf>>,
    /// The measured batch.
    pub frames: Vec<HeadroomBuf>,
}

macro_rules! example {
    ($path:literal) => {
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/", $path)
    };
}

/// Highest port of an entries file.
const MAX_PORT: u32 = 510;

const CLIENT: [u8; 4] = [10, 0, 1, 1];
const SERVER: [u8; 4] = [192, 0, 2, 1];
const SERVICE: [u8; 4] = [10, 0, 0, 100];

impl BenchApplication {
    /// Returns its switch, after a change of the program's text.
    pub fn switch(&self, change: impl Fn(&str) -> String) -> Switch {
        let mut switch = switch(self.path, change);
        let Some(path) = self.entries else { return switch };
        let mut diagnostics = Diagnostics::new();
        let input = Box::new(File::open(path).expect("the example has entries"));
        let program = std::sync::Arc::clone(switch.program());
        let checked = entries_file::check_stream(input, FileId(0), &program, MAX_PORT, &mut diagnostics);
        let Ok(StreamCheck::Entries(stream)) = checked else { panic!("the example's entries are right") };
        stream.apply(&mut switch, &mut diagnostics);
        assert!(diagnostics.is_empty(), "the example's entries fit");
        switch
    }
}

/// Returns the firewall, the load balancer, the gateway and the flow counter.
pub fn all() -> [BenchApplication; 4] {
    let (allowed, balanced) = (batch(|flow| datagram(flow, SERVER, &[])), batch(|flow| datagram(flow, SERVICE, &[])));
    let counted = batch(|flow| datagram(flow, SERVER, &[0, 0, 0, 0, 8, 0]));
    // Two of 32 packets are for signalling; in the paper one of 18 is.
    let tunnelled = batch(|flow| user(flow, flow.is_multiple_of(16)));
    [
        BenchApplication {
            name: "firewall, from inside",
            bound: "1.03",
            path: example!("connection-firewall/firewall.p4"),
            entries: Some(example!("connection-firewall/firewall.json")),
            tables: &["inside"],
            warm_up: vec![allowed.clone()],
            frames: allowed,
        },
        BenchApplication {
            name: "load balancer",
            bound: "1.03",
            path: example!("sticky-balancer/balancer.p4"),
            entries: Some(example!("sticky-balancer/balancer.json")),
            tables: &["flows"],
            warm_up: vec![balanced.clone()],
            frames: balanced,
        },
        BenchApplication {
            name: "EPC-SGW, 2 of 32 packets for signalling",
            bound: "1.11",
            path: example!("gateway/gateway.p4"),
            entries: None,
            tables: &[],
            warm_up: vec![batch(|flow| user(flow, true))],
            frames: tunnelled,
        },
        BenchApplication {
            name: "Sync-Counter",
            bound: "2.00",
            path: example!("flow-counter/counter.p4"),
            entries: Some(example!("flow-counter/counter.json")),
            tables: &[],
            warm_up: vec![counted.clone()],
            frames: counted,
        },
    ]
}

/// Returns a frame of 60 bytes for each flow.
fn batch(frame: impl Fn(u8) -> Vec<u8>) -> Vec<HeadroomBuf> {
    let padded = |flow| {
        let mut bytes = frame(flow);
        bytes.resize(60, 0);
        HeadroomBuf::new(&bytes, HEADROOM)
    };
    (0..BATCH as u8).map(padded).collect()
}

/// Returns a datagram of a flow in a frame, after this header if there is one.
fn datagram(flow: u8, to: [u8; 4], header: &[u8]) -> Vec<u8> {
    let ethertype: [u8; 2] = if header.is_empty() { [8, 0] } else { [0x88, 0xb5] };
    let udp = [&(40_000 + u16::from(flow)).to_be_bytes()[..], &[0, 80, 0, 12, 0, 0, 1, 2, 3, 4]].concat();
    let packet = wire::ipv4::Repr::new(CLIENT.into(), to.into(), wire::ipv4::UDP).packet(&udp);
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], &ethertype, header, &packet].concat()
}

/// Returns a packet of a user of the gateway.
fn user(number: u8, is_signalling: bool) -> Vec<u8> {
    let ethertype = [0x88, if is_signalling { 0xb6 } else { 0xb5 }];
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], &ethertype, &[0, number, 0, 0, 0, 0]].concat()
}
