//! The same feed handler in hand-written Rust.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use switch::{Egress, Frame, HeadroomBuf, PortId};

use crate::feed::{Feed, HEADERS, MESSAGE, STOCK, checksum, name};

/// A set of up to 256 ports.
type Ports = [u64; 4];

pub struct ByHand {
    wanted: HashMap<[u8; 8], Ports, FixedState>,
    /// The session, the number that is due, and the number of messages that never arrived.
    session: [u8; 10],
    due: u64,
    missed: u64,
    /// Messages sent to each port, and numbers shown as missing.
    sent: Vec<[u64; 2]>,
}

impl ByHand {
    pub fn new(feed: &Feed) -> ByHand {
        let mut wanted = HashMap::default();
        for (stock, ports) in feed.wanted.iter().enumerate() {
            let set: &mut Ports = wanted.entry(name(stock)).or_default();
            ports.iter().for_each(|port| set[*port as usize / 64] |= 1 << (port % 64));
        }
        ByHand { wanted, session: [0; 10], due: 0, missed: 0, sent: vec![[0; 2]; 256] }
    }

    pub fn run(&mut self, batch: &mut [HeadroomBuf], left: &mut Vec<Egress>) {
        for frame in batch {
            self.datagram(frame.bytes(), left);
        }
    }

    fn datagram(&mut self, frame: &[u8], left: &mut Vec<Egress>) {
        let Some((head, mut rest)) = frame.split_first_chunk::<HEADERS>() else { return };
        if head[12..14] != [8, 0] || head[14] != 0x45 || head[23] != 17 || head[36..38] != [0x67, 0x20] {
            return;
        }
        let session: [u8; 10] = head[42..52].try_into().expect("ten bytes");
        if session != self.session {
            (self.session, self.due, self.missed) = (session, 0, 0);
            self.sent.fill([0; 2]);
        }
        let first = u64::from_be_bytes(head[52..60].try_into().expect("eight bytes"));
        let count = u16::from_be_bytes([head[60], head[61]]);
        if self.due != 0 && first > self.due {
            self.missed += first - self.due;
        }
        self.due = self.due.max(first + u64::from(count));
        let mut messages: [(&[u8], Ports); 12] = [(&[], [0; 4]); 12];
        let (mut taken, mut all) = (0, [0; 4]);
        while taken < usize::from(count) {
            let [high, low, ..] = *rest else { return };
            let length = 2 + (usize::from(high) << 8 | usize::from(low));
            let Some((message, behind)) = rest.split_at_checked(length) else { return };
            rest = behind;
            if length == MESSAGE && message[2] == b'A' {
                let stock: [u8; 8] = message[STOCK..STOCK + 8].try_into().expect("eight bytes");
                let ports = self.wanted.get(&stock).copied().unwrap_or_default();
                messages[taken] = (message, ports);
                all.iter_mut().zip(ports).for_each(|(all, ports)| *all |= ports);
            }
            taken += 1;
        }
        for (word, set) in all.into_iter().enumerate() {
            let mut set = set;
            while set != 0 {
                let port = word as u32 * 64 + set.trailing_zeros();
                set &= set - 1;
                let data = self.copy(head, &messages[..taken], port);
                left.push(Egress::Owned(Frame { port: PortId(port), data }));
            }
        }
    }

    /// Returns the datagram of the messages that a port wants.
    fn copy(&mut self, head: &[u8; HEADERS], messages: &[(&[u8], Ports)], port: u32) -> Vec<u8> {
        let is_wanted = |ports: &Ports| ports[port as usize / 64] >> (port % 64) & 1 == 1;
        let mut data = Vec::with_capacity(HEADERS + messages.len() * MESSAGE);
        data.extend_from_slice(head);
        let mut count = 0u16;
        for (message, _) in messages.iter().filter(|(_, ports)| is_wanted(ports)) {
            data.extend_from_slice(message);
            count += 1;
        }
        let length = data.len() as u16;
        data[16..18].copy_from_slice(&(length - 14).to_be_bytes());
        data[24..26].fill(0);
        let sum = checksum(&data[14..34]);
        data[24..26].copy_from_slice(&sum.to_be_bytes());
        data[38..40].copy_from_slice(&(length - 34).to_be_bytes());
        data[40..42].fill(0);
        let [sent, gap] = &mut self.sent[port as usize];
        *gap = self.missed.max(*gap);
        data[52..60].copy_from_slice(&(*sent + *gap + 1).to_be_bytes());
        *sent += u64::from(count);
        data[60..62].copy_from_slice(&count.to_be_bytes());
        data
    }
}
