//! Ends of connections, and numbers that identify them across restarts.

use wire::roce::{Psn, QP_BITS};

use crate::random::NumberSource;

/// Number of lower bits of a queue pair number, and of a memory key, that are its index in a list.
const SLOT_BITS: u32 = 10;

/// Maximum number of queue pairs, and of memory regions, of an end.
pub const MAX_SLOTS: usize = 1 << SLOT_BITS;

/// Number of a queue pair: 24 bits. The lower ten are its index in a list, the others are random, so that a late packet
/// does not match another queue pair with the same index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QpNumber(pub u32);

impl QpNumber {
    pub(crate) fn slot(self) -> usize {
        slot(self.0)
    }
}

/// One end of a connection: the values that the other end needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpEndpoint {
    /// Number of its queue pair.
    pub number: QpNumber,
    /// Sequence number of the first packet that it sends of its own accord.
    pub psn: Psn,
    /// Number of READs and atomic operations that it can have outstanding, as requester or as responder. The smaller
    /// number of both ends counts.
    pub max_reads: u16,
}

/// Returns the index that a number contains.
pub fn slot(number: u32) -> usize {
    number as usize & (MAX_SLOTS - 1)
}

/// Draws a number of `bits` bits for an index. Its random part is neither all zeros nor all ones: queue pair numbers
/// like these are reserved (volume 1, section 3.5.10), and a key of zeros is easily sent by mistake.
pub fn draw(rng: &mut dyn NumberSource, slot: usize, bits: u32) -> u32 {
    let parts = (1u64 << (bits - SLOT_BITS)) - 2;
    let random = 1 + rng.below(parts) as u32;
    random << SLOT_BITS | slot as u32
}

/// Draws a queue pair number for an index.
pub fn draw_number(rng: &mut dyn NumberSource, slot: usize) -> QpNumber {
    QpNumber(draw(rng, slot, QP_BITS))
}

/// Draws the first sequence number of a connection.
pub fn draw_psn(rng: &mut dyn NumberSource) -> Psn {
    Psn::new(rng.next_u64() as u32)
}

/// Returns the first free place of a list, which grows as long as there may be more.
pub fn free_slot<T>(slots: &mut Vec<Option<T>>) -> Option<usize> {
    if let Some(free) = slots.iter().position(Option::is_none) {
        return Some(free);
    }
    if slots.len() == MAX_SLOTS {
        return None;
    }
    slots.push(None);
    Some(slots.len() - 1)
}

#[cfg(test)]
mod tests {
    use rng::SplitMix64;

    use super::*;

    #[test]
    fn numbers_name_their_place_and_differ_between_incarnations() {
        let mut rng = SplitMix64::new(1);
        for place in [0, 5, MAX_SLOTS - 1] {
            let numbers: Vec<_> = (0..1000).map(|_| draw_number(&mut rng, place)).collect();
            assert!(numbers.iter().all(|number| number.slot() == place && number.0 < 1 << 24));
            assert!(numbers.iter().all(|number| !matches!(number.0 >> SLOT_BITS, 0 | 0x3fff)));
            let same = numbers.windows(2).filter(|pair| pair[0] == pair[1]).count();
            assert!(same < 3, "{same} of 1000");
        }
        assert_eq!(slot(draw(&mut rng, 7, 32)), 7);
    }

    #[test]
    fn places_are_used_again_and_bounded() {
        let mut slots: Vec<Option<u8>> = Vec::new();
        for expected in 0..MAX_SLOTS {
            assert_eq!(free_slot(&mut slots), Some(expected));
            slots[expected] = Some(1);
        }
        assert_eq!(free_slot(&mut slots), None);
        slots[3] = None;
        assert_eq!(free_slot(&mut slots), Some(3));
    }
}
