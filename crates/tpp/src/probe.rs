//! Sends programs as datagrams, and matches the echoes that return (paper, section 4.4).
//!
//! [`Prober`] is the sender's side and [`echo`] the receiver's. Datagrams are the payloads of UDP: a program,
//! followed by 16 bytes that name the probe. A receiver sends a program back from [`UDP_PORT`], so that no switch
//! executes it a second time.

use std::collections::BTreeMap;

use wire::tpp::{Packet, Status, UDP_PORT};

use crate::asm::TinyProgram;

/// Maximum number of probes that wait for their echoes.
pub const MAX_WAITING: usize = 4096;

/// The first port that is not one of well-known services.
const FIRST_CLIENT_PORT: u16 = 1024;

/// Length of the name of a probe: a nonce and a sequence number.
const NAME_LEN: usize = 16;

/// A probe that came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Its sequence number, from 1.
    pub sequence: u64,
    /// Time from sending to the arrival of the echo, in nanoseconds.
    pub rtt_ns: u64,
    /// The program with the words that the switches wrote.
    pub program: TinyProgram,
}

/// Counts of datagrams that were not taken for echoes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedEchoes {
    /// Malformed ones, and those with a wrong checksum.
    pub damaged: u64,
    /// Ones with another nonce, with an unknown sequence number, or that came twice or too late.
    pub unmatched: u64,
    /// Ones with other instructions than those that were sent.
    pub altered: u64,
}

/// The sender of probes: copies of one program to one destination.
#[derive(Clone, Debug)]
pub struct Prober {
    program: TinyProgram,
    nonce: u64,
    timeout_ns: u64,
    last: u64,
    /// The time at which each was sent, in nanoseconds.
    waiting: BTreeMap<u64, u64>,
    refused: RefusedEchoes,
}

impl Prober {
    /// Creates the sender of a program. `nonce` is random; probes are lost after `timeout_ns` nanoseconds.
    pub fn new(program: TinyProgram, nonce: u64, timeout_ns: u64) -> Prober {
        Prober { program, nonce, timeout_ns, last: 0, waiting: BTreeMap::new(), refused: RefusedEchoes::default() }
    }

    /// Returns the payload of the next datagram; `None` while [`MAX_WAITING`] wait.
    pub fn send(&mut self, now_ns: u64) -> Option<Vec<u8>> {
        if self.waiting.len() >= MAX_WAITING {
            return None;
        }
        self.last += 1;
        self.waiting.insert(self.last, now_ns);
        let name = [self.nonce.to_be_bytes(), self.last.to_be_bytes()].concat();
        Some(self.program.packet(&name))
    }

    /// Returns the echo in the payload of a datagram, if it is one.
    pub fn receive(&mut self, now_ns: u64, datagram: &[u8]) -> Option<Echo> {
        let packet = Packet::new_checked(datagram).ok().filter(|packet| packet.is_checksum_right());
        let Some(packet) = packet else {
            self.refused.damaged += 1;
            return None;
        };
        let name: Option<&[u8; NAME_LEN]> = packet.payload().first_chunk();
        let sequence = name.map(|name| u128::from_be_bytes(*name));
        let sequence = sequence.filter(|name| (name >> 64) as u64 == self.nonce).map(|name| name as u64);
        let Some((sequence, sent_ns)) = sequence.and_then(|sequence| self.waiting.get_key_value(&sequence)) else {
            self.refused.unmatched += 1;
            return None;
        };
        let (sequence, rtt_ns) = (*sequence, now_ns.saturating_sub(*sent_ns));
        let program = TinyProgram::decode(&packet);
        if program.instructions != self.program.instructions || program.memory.len() != self.program.memory.len() {
            self.refused.altered += 1;
            return None;
        }
        self.waiting.remove(&sequence);
        Some(Echo { sequence, rtt_ns, program })
    }

    /// Returns the sequence numbers of the probes that are lost, and forgets them.
    pub fn expire(&mut self, now_ns: u64) -> Vec<u64> {
        // All wait equally long, so the oldest are the first.
        let is_lost = |sent_ns: &u64| sent_ns.saturating_add(self.timeout_ns) <= now_ns;
        let lost: Vec<u64> = self.waiting.iter().take_while(|(_, at)| is_lost(at)).map(|(number, _)| *number).collect();
        lost.iter().for_each(|sequence| _ = self.waiting.remove(sequence));
        lost
    }

    /// Returns the time at which the next probe is lost, in nanoseconds.
    pub fn next_deadline(&self) -> Option<u64> {
        self.waiting.values().next().map(|sent_ns| sent_ns.saturating_add(self.timeout_ns))
    }

    /// Returns the counts of datagrams that were not taken for echoes.
    pub fn refused(&self) -> RefusedEchoes {
        self.refused
    }
}

/// Turns the payload of a datagram into its echo, and returns whether to send it back: it must have a program that is
/// not done, and the source port of a client. So two receivers, or a receiver and an echo service, do
/// not exchange it for ever. The echo is marked as done, and must be sent from [`UDP_PORT`].
pub fn echo(source_port: u16, datagram: &mut [u8]) -> bool {
    let Ok(mut packet) = Packet::new_checked(datagram) else { return false };
    let is_program = packet.is_checksum_right() && !packet.status().contains(Status::DONE);
    let is_echoed = is_program && source_port >= FIRST_CLIENT_PORT && source_port != UDP_PORT;
    if is_echoed {
        packet.add_status(Status::DONE);
        packet.fill_checksum();
    }
    is_echoed
}
