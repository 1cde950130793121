//! Resolves IP addresses to Ethernet addresses (ARP, RFC 826).

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

use switch::Time;
use wire::arp;
use wire::ethernet::{self, Address};
use wire::ipv4;

use super::host::Host;

/// Maximum number of packets that wait for the resolution of one address; further ones are dropped.
const MAX_WAITING: usize = 128;

/// Interval between requests, and the number of requests (RFC 1122 section 2.3.2.1 asks for one a second).
const ASK_AGAIN_NS: u64 = 1_000_000_000;
const QUESTIONS: u32 = 3;

/// Neighbour cache of a host: the Ethernet addresses of others.
#[derive(Default)]
pub struct Neighbours {
    known: BTreeMap<Ipv4Addr, Address>,
    asked: BTreeMap<Ipv4Addr, Asked>,
}

/// Classification of a received frame.
pub enum Received {
    /// An IP packet for the host.
    Packet(Vec<u8>),
    /// A frame that needs no further processing.
    Nothing,
    /// Neither IP nor ARP.
    Other,
}

struct Asked {
    waiting: VecDeque<Vec<u8>>,
    again: Time,
    left: u32,
}

impl Neighbours {
    /// Creates a cache with the addresses that the host knows without ARP.
    pub fn new(host: &Host) -> Neighbours {
        Neighbours { known: host.neighbours.iter().copied().collect(), asked: BTreeMap::new() }
    }

    /// Processes a received frame.
    pub fn receive(&mut self, host: &mut Host, frame: &[u8]) -> Received {
        let Ok(packet) = ethernet::Packet::new_checked(frame) else { return Received::Nothing };
        match packet.ethertype() {
            ethernet::IPV4 if packet.destination() == host.mac || packet.destination().is_multicast() => {
                let Ok(ip) = ipv4::Packet::new_checked(packet.payload()) else { return Received::Nothing };
                // The padding of a short frame is not part of the packet.
                let len = ip.total_len().min(packet.payload().len());
                Received::Packet(packet.payload()[..len].to_vec())
            }
            ethernet::ARP => {
                if let Ok(message) = arp::Packet::new_checked(packet.payload()) {
                    self.hear(host, &arp::Repr::parse(&message));
                }
                Received::Nothing
            }
            ethernet::IPV4 => Received::Nothing,
            _ => Received::Other,
        }
    }

    fn hear(&mut self, host: &mut Host, message: &arp::Repr) {
        let mine = host.address.is_some_and(|(address, _)| address == message.target_ip);
        if mine || self.asked.contains_key(&message.sender_ip) {
            self.known.insert(message.sender_ip, message.sender);
        }
        if mine && message.operation == arp::Operation::Request {
            let reply = arp::Repr {
                operation: arp::Operation::Reply,
                sender: host.mac,
                sender_ip: message.target_ip,
                target: message.sender,
                target_ip: message.sender_ip,
            };
            frame(host, message.sender, ethernet::ARP, &reply.message());
        }
        for packet in self.asked.remove(&message.sender_ip).into_iter().flat_map(|asked| asked.waiting) {
            frame(host, message.sender, ethernet::IPV4, &packet);
        }
    }

    /// Sends an IP packet, now or as soon as the address of its next hop is resolved.
    pub fn send(&mut self, host: &mut Host, packet: Vec<u8>) {
        let Ok(ip) = ipv4::Packet::new_checked(&packet[..]) else { return };
        let to = ip.destination();
        if to.is_broadcast() || to.is_multicast() {
            return frame(host, Address::BROADCAST, ethernet::IPV4, &packet);
        }
        let Some(next) = next_hop(host, to) else { return };
        if let Some(mac) = self.known.get(&next) {
            return frame(host, *mac, ethernet::IPV4, &packet);
        }
        let again = host.now().after_ns(ASK_AGAIN_NS);
        let asked = self.asked.entry(next).or_insert_with(|| {
            ask(host, next);
            Asked { waiting: VecDeque::new(), again, left: QUESTIONS - 1 }
        });
        if asked.waiting.len() < MAX_WAITING {
            asked.waiting.push_back(packet);
        }
    }

    /// Repeats unanswered requests, and gives up those that stayed unanswered for long. Returns the time of the next
    /// call.
    pub fn poll(&mut self, host: &mut Host) -> Option<Time> {
        let now = host.now();
        self.asked.retain(|address, asked| {
            if asked.again <= now {
                if asked.left == 0 {
                    return false;
                }
                asked.left -= 1;
                asked.again = now.after_ns(ASK_AGAIN_NS);
                ask(host, *address);
            }
            true
        });
        self.asked.values().map(|asked| asked.again).min()
    }
}

/// Returns the next hop of a packet: its destination within the same network, else the gateway.
fn next_hop(host: &Host, to: Ipv4Addr) -> Option<Ipv4Addr> {
    let (address, bits) = host.address?;
    let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
    let near = address.to_bits() & mask == to.to_bits() & mask;
    if near { Some(to) } else { host.gateway }
}

fn ask(host: &mut Host, address: Ipv4Addr) {
    let Some((own, _)) = host.address else { return };
    let question = arp::Repr {
        operation: arp::Operation::Request,
        sender: host.mac,
        sender_ip: own,
        target: Address::default(),
        target_ip: address,
    };
    frame(host, Address::BROADCAST, ethernet::ARP, &question.message());
}

fn frame(host: &mut Host, destination: Address, ethertype: u16, payload: &[u8]) {
    let header = ethernet::Repr { destination, source: host.mac, ethertype };
    host.send(header.packet(payload));
}
