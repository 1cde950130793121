//! Takes programs out of the packets that leave the network at an edge switch (paper, section 4.2), for hosts without a
//! shim.

use wire::tpp::{ETHERTYPE, Packet, Status, place_among_tags};

use crate::shim::is_intact;

/// The reason why programs cannot be taken out of a frame. Its host would not understand it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StripError {
    /// The end of a program is unknown.
    #[error("a program is malformed")]
    Malformed,
    /// The checksum of a program is wrong, and no packet that proves its own begin follows it.
    #[error("a program is damaged, and perhaps its length")]
    Damaged,
    /// A switch sent the packet back, so it is not for the host that receives it.
    #[error("a program is done")]
    Done,
    /// No packet follows a program.
    #[error("a program has no packet")]
    Empty,
}

/// Takes all transparent programs out of a frame, also one in front of another, and returns their number. The frame is
/// then the one into which they were inserted, byte by byte. Standalone programs stay: they are payload for the host.
///
/// # Errors
/// Returns an error if a program cannot be taken out. The frame is then unspecified.
pub fn strip(frame: &mut Vec<u8>) -> Result<usize, StripError> {
    let mut count = 0;
    while let Some((ETHERTYPE, start)) = place_among_tags(frame, 0) {
        // The bytes behind move once, however many programs there are. Tags between programs are at most four.
        let (mut inner, mut end) = (ETHERTYPE, start);
        while inner == ETHERTYPE {
            let len;
            (inner, len) = removable(&frame[end..])?;
            end += len;
            count += 1;
        }
        frame[start - 2..start].copy_from_slice(&inner.to_be_bytes());
        frame.drain(start..end);
    }
    Ok(count)
}

/// Returns the EtherType of what follows a program, and the program's length in bytes, if it can be taken out.
fn removable(bytes: &[u8]) -> Result<(u16, usize), StripError> {
    let program = Packet::new_checked(bytes).map_err(|_| StripError::Malformed)?;
    let inner = program.encapsulated();
    if inner == 0 {
        return Err(StripError::Empty);
    }
    if program.is_checksum_right() {
        if program.status().contains(Status::DONE) {
            return Err(StripError::Done);
        }
    } else if !is_intact(inner, program.payload()) {
        return Err(StripError::Damaged);
    }
    Ok((inner, program.length()))
}

#[cfg(test)]
mod tests {
    use wire::tpp::{Addressing, Instruction, Operation, Repr, WordSize};
    use wire::{ethernet, ipv4, udp};

    use super::*;
    use crate::asm::TinyProgram;

    fn packet() -> Vec<u8> {
        let udp = udp::Repr { source_port: 4000, destination_port: 53 };
        let ip = ipv4::Repr::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), ipv4::UDP);
        ip.packet(&udp.packet(ip.addresses(), b"payload"))
    }

    fn frame(tags: usize, ethertype: u16, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![7; 12];
        (0..tags).for_each(|tag| frame.extend([0x81, 0, 0, tag as u8]));
        frame.extend(ethertype.to_be_bytes());
        frame.extend(payload);
        frame
    }

    /// Returns a program before a payload of this type.
    fn program(inner: u16, status: Status, payload: &[u8]) -> Vec<u8> {
        let repr = Repr::new(WordSize::Bits32, Addressing::Stack { pointer: 0 }, 0);
        let repr = Repr { encapsulated: inner, status, ..repr };
        let instructions = vec![Instruction::new(Operation::Push, 0, 0, 0)];
        TinyProgram { repr, instructions, memory: vec![0; 8], hops: 0, spans: Vec::new() }.packet(payload)
    }

    #[test]
    fn the_frame_is_the_one_before_the_insertion() {
        for tags in 0..5 {
            let original = frame(tags, ethernet::IPV4, &packet());
            let one = program(ethernet::IPV4, Status::NONE, &packet());
            let two = program(ETHERTYPE, Status::NONE, &one);
            // Tags may also be behind a program.
            let mut behind = 5u16.to_be_bytes().to_vec();
            behind.extend(ethernet::IPV4.to_be_bytes());
            let tagged = program(ethernet::VLAN, Status::NONE, &[&behind[..], &packet()].concat());
            let many = (0..99).fold(one.clone(), |rest, _| program(ETHERTYPE, Status::NONE, &rest));
            for (payload, count) in [(&one, 1), (&two, 2), (&many, 100)] {
                let mut stripped = frame(tags, ETHERTYPE, payload);
                assert_eq!((strip(&mut stripped), &stripped), (Ok(count), &original), "{tags} tags");
            }
            let mut stripped = frame(tags, ETHERTYPE, &tagged);
            let rest = [&behind[..], &packet()].concat();
            assert_eq!((strip(&mut stripped), stripped), (Ok(1), frame(tags, ethernet::VLAN, &rest)));
            // Tags between programs.
            let between = [&[0, 5], &ETHERTYPE.to_be_bytes()[..], &two].concat();
            let mut stripped = frame(tags, ETHERTYPE, &program(ethernet::VLAN, Status::NONE, &between));
            let rest = [&[0, 5], &ethernet::IPV4.to_be_bytes()[..], &packet()].concat();
            let (count, expected) = if tags < 4 { (3, frame(tags, ethernet::VLAN, &rest)) } else { (1, Vec::new()) };
            assert_eq!(strip(&mut stripped), Ok(count), "{tags} tags");
            assert!(tags == 4 || stripped == expected, "{tags} tags");
            let mut untouched = original.clone();
            assert_eq!((strip(&mut untouched), untouched), (Ok(0), original));
        }
    }

    #[test]
    fn what_cannot_be_taken_out_is_an_error() {
        let right = program(ethernet::IPV4, Status::NONE, &packet());
        let stripped = |payload: &[u8]| {
            let mut frame = frame(1, ETHERTYPE, payload);
            strip(&mut frame).map(|_| frame)
        };
        let (mut damaged, mut shorter, mut longer) = (right.clone(), right.clone(), right.clone());
        damaged[20] ^= 1;
        assert_eq!(stripped(&damaged), Ok(frame(1, ethernet::IPV4, &packet())), "the packet begins where it seems to");
        // Two bytes less of memory.
        (shorter[2], shorter[3]) = (shorter[2] - 1, shorter[3] - 1);
        assert_eq!(stripped(&shorter), Err(StripError::Damaged));
        longer[2] = 0xff;
        assert_eq!(stripped(&longer), Err(StripError::Malformed));
        assert_eq!(stripped(&program(ethernet::IPV4, Status::DONE, &packet())), Err(StripError::Done));
        assert_eq!(stripped(&program(0, Status::NONE, b"")), Err(StripError::Empty));
        for end in 0..24 {
            assert_eq!(stripped(&right[..end]), Err(StripError::Malformed), "{end} bytes");
        }
    }

    #[test]
    fn standalone_programs_stay() {
        let udp = udp::Repr { source_port: 4000, destination_port: wire::tpp::UDP_PORT };
        let ip = ipv4::Repr::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), ipv4::UDP);
        let payload = ip.packet(&udp.packet(ip.addresses(), &program(0, Status::NONE, b"")));
        let original = frame(0, ethernet::IPV4, &payload);
        let mut stripped = original.clone();
        assert_eq!((strip(&mut stripped), stripped), (Ok(0), original));
    }
}
