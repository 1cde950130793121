//! Runs the demo without namespaces: the same packets, from capture files.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use ports::{PcapPort, Port};
use runtime::{PortDrivers, RunConfig};
use switch::PortId;
use wire::ethernet::{self, Address};
use wire::{arp, icmpv4, ipv4};

use super::network::{GATEWAY_MACS, H1, H1_MAC, H2, H2_MAC, UNREACHABLE};
use super::pings::Pings;
use super::recording::{RecordedFrames, RecordingPort};
use super::report::{DemoReport, Mode};
use crate::output::{Failure, Output};

const PINGS: u16 = 5;
/// Number of pings to an address without a route.
const UNROUTABLE_PINGS: u16 = 3;

/// Number of packets in the part that measures the rate.
const BULK_PACKETS: u32 = 100_000;

/// Time between two packets, in nanoseconds.
const GAP_NS: u64 = 10_000;

/// Runs the demo on capture files. `reason` is why the live demo is not possible; the report shows it.
pub fn offline(reason: &str, output: &Output) -> Result<DemoReport, Failure> {
    let directory = Directory::new()?;
    let [h1_in, h2_in] = ["h1.pcap", "h2.pcap"].map(|name| directory.0.join(name));
    let [h1_out, h2_out] = ["to-h1.pcap", "to-h2.pcap"].map(|name| directory.0.join(name));
    let identifier = 7;
    let mut from_h1 = vec![arp_request(H1_MAC, H1, Ipv4Addr::new(10, 0, 1, 254))];
    let mut from_h2 = vec![arp_request(H2_MAC, H2, Ipv4Addr::new(10, 0, 2, 254))];
    let [gateway_1, gateway_2] = GATEWAY_MACS;
    for sequence in 1..=PINGS {
        let (request, reply) =
            (icmpv4::Repr::EchoRequest { identifier, sequence }, icmpv4::Repr::EchoReply { identifier, sequence });
        from_h1.push(ping(gateway_1, H1_MAC, H1, H2, request));
        from_h2.push(ping(gateway_2, H2_MAC, H2, H1, reply));
    }
    for sequence in 1..=UNROUTABLE_PINGS {
        from_h1.push(ping(gateway_1, H1_MAC, H1, UNREACHABLE, icmpv4::Repr::EchoRequest { identifier, sequence }));
    }
    let bulk = ping(gateway_1, H1_MAC, H1, H2, icmpv4::Repr::EchoRequest { identifier, sequence: 0 });
    write(&h1_in, 0, from_h1.iter().chain(std::iter::repeat_n(&bulk, BULK_PACKETS as usize)))?;
    // Half a gap later, so each reply comes after its request.
    write(&h2_in, GAP_NS / 2, from_h2.iter())?;

    let memory = RecordedFrames::default();
    let mut ports = Vec::new();
    for (port, input, out) in [(1, &h1_in, &h1_out), (2, &h2_in, &h2_out)] {
        let driver: Box<dyn Port> = Box::new(PcapPort::open(Some(input), Some(out))?);
        let recording_port = RecordingPort { driver, port, memory: memory.clone() };
        ports.push(PortDrivers::single(PortId(port), recording_port));
    }
    let report = v1model_runtime::run_offline(RunConfig::new(super::switch(output)?, ports));
    let answered = count_echo_replies(&h1_out)?;
    let pings = Pings { sent: u32::from(PINGS), received: answered.0, median: Duration::ZERO, ttl: answered.1 };
    let mode = Mode::Offline(reason.to_owned());
    DemoReport::new(mode, pings, None, u32::from(UNROUTABLE_PINGS), &memory.frames(), &report, output)
}

/// A directory that is removed with everything in it.
pub(super) struct Directory(pub(super) PathBuf);

impl Directory {
    /// Creates an empty directory.
    pub(super) fn new() -> Result<Directory, Failure> {
        let path = std::env::temp_dir().join(format!("triplane-demo-{}", std::process::id()));
        std::fs::create_dir(&path).with_context(|| format!("cannot create the directory {}", path.display()))?;
        Ok(Directory(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn write<'a>(path: &Path, start_ns: u64, frames: impl Iterator<Item = &'a Vec<u8>>) -> Result<(), Failure> {
    let shown = path.display();
    let file = std::fs::File::create(path).with_context(|| format!("cannot write {shown}"))?;
    let mut writer = wire::pcap::Writer::new(std::io::BufWriter::new(file)).with_context(|| format!("{shown}"))?;
    for (at, frame) in frames.enumerate() {
        writer.write(start_ns + at as u64 * GAP_NS, frame).with_context(|| format!("{shown}"))?;
    }
    writer.flush().with_context(|| format!("{shown}"))?;
    Ok(())
}

/// Counts the echo replies in a capture. Returns their number and the time to live of the last.
fn count_echo_replies(path: &Path) -> Result<(u32, u8), Failure> {
    let shown = path.display();
    let file = std::fs::File::open(path).with_context(|| format!("cannot read {shown}"))?;
    let mut reader = wire::pcap::Reader::new(std::io::BufReader::new(file)).with_context(|| format!("{shown}"))?;
    let (mut count, mut ttl) = (0, 0);
    while let Some(captured) = reader.read().with_context(|| format!("{shown}"))? {
        if let Some((icmpv4::Repr::EchoReply { .. }, seen)) = super::echo(&captured.data) {
            count += 1;
            ttl = seen;
        }
    }
    Ok((count, ttl))
}

fn arp_request(sender_mac: Address, sender_ip: Ipv4Addr, target_ip: Ipv4Addr) -> Vec<u8> {
    let request = arp::Repr {
        operation: arp::Operation::Request,
        sender: sender_mac,
        sender_ip,
        target: Address([0; 6]),
        target_ip,
    };
    let frame = ethernet::Repr { destination: Address::BROADCAST, source: sender_mac, ethertype: ethernet::ARP };
    frame.packet(&request.message())
}

fn ping(to: Address, from: Address, source: Ipv4Addr, target: Ipv4Addr, message: icmpv4::Repr) -> Vec<u8> {
    let packet = ipv4::Repr::new(source, target, ipv4::ICMP).packet(&message.packet(&[b'p'; 56]));
    ethernet::Repr { destination: to, source: from, ethertype: ethernet::IPV4 }.packet(&packet)
}
