//! Writes and reads feeds in capture files, without a network.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::net::Ipv4Addr;
use std::path::Path;

use anyhow::Context;
use itch_feed::{BinaryFileError, DatagramSource, PORT, Pace, PublishLimit, Published, Subscriber};
use wire::ethernet::{self, Address};
use wire::pcap::{Reader, Writer};
use wire::{ipv4, udp};

use crate::output::Failure;

/// Source address and multicast group of a feed in a capture.
const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 1, 1);
const SOURCE_MAC: Address = Address([2, 0, 0, 0, 0, 1]);
/// MAC address of the group (RFC 1112, 6.4).
const GROUP_MAC: Address = Address([1, 0, 0x5e, 1, 1, 1]);

/// Builds the Ethernet frame of a datagram to the group.
pub fn frame(payload: &[u8]) -> Vec<u8> {
    let udp = udp::Repr { source_port: PORT, destination_port: PORT };
    let ip = ipv4::Repr::new(SOURCE, GROUP, ipv4::UDP);
    let ethernet = ethernet::Repr { destination: GROUP_MAC, source: SOURCE_MAC, ethertype: ethernet::IPV4 };
    ethernet.packet(&ip.packet(&udp.packet(ip.addresses(), payload)))
}

/// Returns the payload of a UDP datagram to `port`, or `None` for any other frame.
pub fn payload(frame: &[u8], port: u16) -> Option<Vec<u8>> {
    let frame = ethernet::Packet::new_checked(frame).ok()?;
    if frame.ethertype() != ethernet::IPV4 {
        return None;
    }
    let packet = ipv4::Packet::new_checked(frame.payload()).ok()?;
    if packet.protocol() != ipv4::UDP {
        return None;
    }
    let datagram = udp::Packet::new_checked(packet.payload()).ok()?;
    (datagram.destination_port() == port).then(|| datagram.payload().to_vec())
}

/// A feed that was written, and the error that ended it early.
pub type WrittenFeed = (Published, Option<BinaryFileError>);

/// Writes a feed to a capture, each datagram with its due time, and then the end of the session. Times begin at
/// midnight, or with a recorded feed when it begins.
pub fn write(
    path: &Path,
    feed: &mut impl DatagramSource,
    mut pace: Pace,
    limit: PublishLimit,
) -> Result<WrittenFeed, Failure> {
    let failed = || format!("cannot write {}", path.display());
    let file = File::create(path).with_context(failed)?;
    let mut writer = Writer::new(BufWriter::new(file)).with_context(failed)?;
    let (mut published, mut due) = (Published::default(), 0);
    let error = loop {
        let recorded_ns = match feed.prepare() {
            Ok(Some(recorded_ns)) => recorded_ns,
            Ok(None) => break None,
            Err(error) => break Some(error),
        };
        due = pace.due_ns(recorded_ns);
        if limit.is_reached(due, published.datagrams) {
            break None;
        }
        let time = feed.start_ns().saturating_add(due);
        let before = feed.next_sequence();
        let payload = feed.take(time % itch_feed::DAY_NS);
        let messages = feed.next_sequence() - before;
        writer.write(time, &frame(&payload)).with_context(failed)?;
        pace.sent(messages, due, due);
        published.datagrams += 1;
        published.messages += messages;
    };
    published.seconds = due as f64 / 1e9;
    let end = feed.start_ns().saturating_add(due);
    writer.write(end, &frame(&feed.end_of_session())).with_context(failed)?;
    writer.flush().with_context(failed)?;
    Ok((published, error))
}

/// Passes the datagrams of a capture to a subscriber. Returns the time from the first to the last, in seconds.
pub fn read(path: &Path, port: u16, subscriber: &mut Subscriber) -> Result<f64, Failure> {
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("cannot read {shown}"))?;
    let damaged = |error: wire::pcap::PcapError| Failure::Input(format!("{shown}: {error}"));
    let mut reader = Reader::new(BufReader::new(file)).map_err(damaged)?;
    let mut span: Option<(u64, u64)> = None;
    while let Some(captured) = reader.read().map_err(damaged)? {
        let Some(payload) = payload(&captured.data, port) else { continue };
        subscriber.take(&payload, captured.time_ns % itch_feed::DAY_NS);
        span = Some((span.map_or(captured.time_ns, |(first, _)| first), captured.time_ns));
    }
    Ok(span.map_or(0.0, |(first, last)| last.saturating_sub(first) as f64 / 1e9))
}
