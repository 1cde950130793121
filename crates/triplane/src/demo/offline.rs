//! The demo without namespaces: the same packets from capture files.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use ports::{PcapPort, Port};
use switch::PortId;

use super::account::{Account, Mode};
use super::network::{GATEWAY_MAC, H1, H1_MAC, H2, H2_MAC, NOWHERE};
use super::traffic::{Pings, echo_request};
use super::witness::{Memory, Witness};
use crate::forward::Forwarder;
use crate::output::{Failure, Output};

const PINGS: u16 = 5;
const LOST: u16 = 3;

/// Packets of the stretch that shows the rate.
const MANY: u32 = 100_000;

/// The time between two packets, in nanoseconds.
const GAP_NS: u64 = 10_000;

/// Runs the demo over files; `reason` says why.
pub fn offline(reason: &str, output: &Output) -> Result<Account, Failure> {
    let directory = Directory::new()?;
    let [h1_in, h2_in] = ["h1.pcap", "h2.pcap"].map(|name| directory.0.join(name));
    let [h1_out, h2_out] = ["to-h1.pcap", "to-h2.pcap"].map(|name| directory.0.join(name));
    let gateway_2 = [2, 0, 0, 0, 2, 0xfe];
    let mut from_h1 = vec![arp_request(H1_MAC, H1.octets(), [10, 0, 1, 254])];
    let mut from_h2 = vec![arp_request(H2_MAC, H2.octets(), [10, 0, 2, 254])];
    for sequence in 1..=PINGS {
        from_h1.push(ping(GATEWAY_MAC, H1_MAC, H1.octets(), H2.octets(), sequence, false));
        from_h2.push(ping(gateway_2, H2_MAC, H2.octets(), H1.octets(), sequence, true));
    }
    for sequence in 1..=LOST {
        from_h1.push(ping(GATEWAY_MAC, H1_MAC, H1.octets(), NOWHERE.octets(), sequence, false));
    }
    let bulk = ping(GATEWAY_MAC, H1_MAC, H1.octets(), H2.octets(), 0, false);
    write(&h1_in, 0, from_h1.iter().chain(std::iter::repeat_n(&bulk, MANY as usize)))?;
    write(&h2_in, GAP_NS / 2, from_h2.iter())?;

    let memory = Memory::default();
    let mut drivers = Vec::new();
    for (port, input, out) in [(1, &h1_in, &h1_out), (2, &h2_in, &h2_out)] {
        let driver: Box<dyn Port> = Box::new(PcapPort::open(Some(input), Some(out))?);
        let witness = Witness { driver, port, memory: memory.clone() };
        drivers.push((PortId(port), Box::new(witness) as Box<dyn Port>));
    }
    let mut forwarder = Forwarder::new(super::switch(output)?, drivers);
    let start = Instant::now();
    forwarder.run_offline();
    let elapsed = start.elapsed();
    let answered = answers(&h1_out)?;
    let pings = Pings { sent: u32::from(PINGS), received: answered.0, median: Duration::ZERO, ttl: answered.1 };
    let mode = Mode::Offline(reason.to_owned());
    Account::new(mode, pings, None, u32::from(LOST), &memory.frames(), &forwarder, elapsed, output)
}

/// A directory that is removed with everything in it.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Result<Directory, Failure> {
        let path = std::env::temp_dir().join(format!("triplane-demo-{}", std::process::id()));
        std::fs::create_dir(&path).with_context(|| format!("cannot make the directory {}", path.display()))?;
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

/// Echo replies in a capture, and the time to live of the last.
fn answers(path: &Path) -> Result<(u32, u8), Failure> {
    let shown = path.display();
    let file = std::fs::File::open(path).with_context(|| format!("cannot read {shown}"))?;
    let mut reader = wire::pcap::Reader::new(std::io::BufReader::new(file)).with_context(|| format!("{shown}"))?;
    let (mut count, mut ttl) = (0, 0);
    while let Some(captured) = reader.read().with_context(|| format!("{shown}"))? {
        let frame = captured.data;
        if frame.get(12..14) == Some(&[8, 0]) && frame.get(34) == Some(&0) {
            count += 1;
            ttl = frame[22];
        }
    }
    Ok((count, ttl))
}

fn ethernet(to: [u8; 6], from: [u8; 6], kind: u16) -> Vec<u8> {
    [to.as_slice(), &from, &kind.to_be_bytes()].concat()
}

fn arp_request(mac: [u8; 6], own: [u8; 4], asked: [u8; 4]) -> Vec<u8> {
    let mut frame = ethernet([0xff; 6], mac, 0x0806);
    frame.extend([0, 1, 8, 0, 6, 4, 0, 1]);
    frame.extend(mac);
    frame.extend(own);
    frame.extend([0; 6]);
    frame.extend(asked);
    frame
}

fn ping(to: [u8; 6], from: [u8; 6], source: [u8; 4], target: [u8; 4], sequence: u16, reply: bool) -> Vec<u8> {
    let mut icmp = echo_request(7, sequence);
    if reply {
        icmp[0] = 0;
        icmp[2..4].fill(0);
        let checksum = wire::checksum::checksum(&icmp);
        icmp[2..4].copy_from_slice(&checksum.to_be_bytes());
    }
    let mut header = vec![0x45, 0];
    header.extend((20 + icmp.len() as u16).to_be_bytes());
    header.extend([0, 0, 0x40, 0, 64, 1, 0, 0]);
    header.extend(source);
    header.extend(target);
    let checksum = wire::checksum::checksum(&header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    let mut frame = ethernet(to, from, 0x0800);
    frame.extend(header);
    frame.extend(icmp);
    frame
}
