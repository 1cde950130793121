//! Completes partial checksums that a local stack has left to a network card.
//!
//! A stack behind a veth passes on TCP and UDP packets whose checksum field holds only the sum of the pseudo-header,
//! for the card to complete. The kernel knows which packets these are, but AF_XDP does not pass this information on.
//! The field identifies them: it holds exactly that sum. In a finished packet this happens once in 65,536, and then the
//! checksum is correct as well, which is verified before the packet is changed.
//!
//! Checksums that cannot be identified this way stay incomplete: those inside tunnels, and those of SCTP.

use wire::checksum;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// A transport header: start and end including its payload, protocol, and sum of its pseudo-header.
struct Transport {
    start: usize,
    end: usize,
    protocol: u8,
    pseudo: u64,
}

/// Completes the frame's TCP or UDP checksum if it is partial. Returns whether it was.
pub(super) fn complete(frame: &mut [u8]) -> bool {
    let Some(transport) = transport(frame) else { return false };
    let offset = if transport.protocol == TCP { 16 } else { 6 };
    let Some(packet) = frame.get_mut(transport.start..transport.end) else { return false };
    let Some(field) = packet.get(offset..offset + 2) else { return false };
    let field = u16::from_be_bytes([field[0], field[1]]);
    if field != checksum::fold(transport.pseudo) {
        return false;
    }
    if checksum::finish(transport.pseudo + checksum::sum(packet)) == 0 {
        return false;
    }
    checksum::complete(packet, 0, offset)
}

/// Finds the transport header of a complete IPv4 or IPv6 packet.
fn transport(frame: &[u8]) -> Option<Transport> {
    let half = |at: usize| Some(usize::from(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?])));
    let mut at = 12;
    while matches!(half(at)?, 0x8100 | 0x88a8) {
        at += 4;
    }
    let network = at + 2;
    let first = *frame.get(network)?;
    let (addresses, protocol, start, end) = match (half(at)?, first >> 4) {
        (0x0800, 4) => {
            // A fragment has no transport header of its own, or not all data that its checksum covers.
            if half(network + 6)? & 0x3fff != 0 {
                return None;
            }
            let start = network + usize::from(first & 0xf) * 4;
            (network + 12..network + 20, *frame.get(network + 9)?, start, network + half(network + 2)?)
        }
        (0x86dd, 6) => {
            let (mut next, mut start) = (*frame.get(network + 6)?, network + 40);
            while matches!(next, 0 | 43 | 60) {
                next = *frame.get(start)?;
                start += (usize::from(*frame.get(start + 1)?) + 1) * 8;
            }
            (network + 8..network + 40, next, start, network + 40 + half(network + 4)?)
        }
        _ => return None,
    };
    if !matches!(protocol, TCP | UDP) || end > frame.len() {
        return None;
    }
    let len = end.checked_sub(start)?;
    let pseudo = checksum::sum(frame.get(addresses)?) + u64::from(protocol) + len as u64;
    Some(Transport { start, end, protocol, pseudo })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds an IPv4 UDP frame with `payload` bytes, padded by two, whose checksum field holds the pseudo-header's
    /// sum.
    fn unfinished(payload: usize, tagged: bool) -> Vec<u8> {
        let mut frame = vec![2; 12];
        if tagged {
            frame.extend([0x81, 0, 0, 5]);
        }
        let len = (20 + 8 + payload) as u16;
        frame.extend([0x08, 0, 0x45, 0]);
        frame.extend(len.to_be_bytes());
        frame.extend([0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        let udp_len = (8 + payload) as u16;
        let pseudo = checksum::sum(&[10, 0, 0, 1, 10, 0, 0, 2]) + 17 + u64::from(udp_len);
        frame.extend([0x13, 0x88, 0x13, 0x89]);
        frame.extend(udp_len.to_be_bytes());
        frame.extend(checksum::fold(pseudo).to_be_bytes());
        frame.extend((0..payload).map(|byte| byte as u8));
        frame.extend([0xee, 0xee]);
        frame
    }

    fn is_right(frame: &[u8]) -> bool {
        let transport = transport(frame).unwrap();
        checksum::finish(transport.pseudo + checksum::sum(&frame[transport.start..transport.end])) == 0
    }

    #[test]
    fn unfinished_checksums_are_finished_once() {
        for (payload, tagged) in [(0, false), (1, true), (999, false), (1000, true)] {
            let mut frame = unfinished(payload, tagged);
            assert!(!is_right(&frame));
            assert!(complete(&mut frame), "payload {payload}");
            assert!(is_right(&frame) && frame.ends_with(&[0xee, 0xee]));
            assert!(!complete(&mut frame), "a finished one is left alone");
        }
    }

    #[test]
    fn a_wrong_checksum_stays_wrong() {
        let mut frame = unfinished(10, false);
        frame[40] ^= 1;
        let before = frame.clone();
        assert!(!complete(&mut frame));
        assert_eq!(frame, before);
    }

    #[test]
    fn a_right_checksum_that_looks_unfinished_is_left_alone() {
        // Ports for which the correct checksum equals the pseudo-header's sum.
        let mut frame = unfinished(0, false);
        let field = checksum::fold(checksum::sum(&[10, 0, 0, 1, 10, 0, 0, 2]) + 17 + 8);
        let other = !checksum::fold(u64::from(field) * 2 + 8);
        frame[34..36].copy_from_slice(&other.to_be_bytes());
        frame[36..38].fill(0);
        assert!(is_right(&frame));
        let before = frame.clone();
        assert!(!complete(&mut frame));
        assert_eq!(frame, before);
    }

    #[test]
    fn cut_frames_and_fragments_are_left_alone() {
        let frame = unfinished(10, false);
        for len in 0..frame.len() - 2 {
            assert!(!complete(&mut frame[..len].to_vec()), "length {len}");
        }
        let mut fragment = frame;
        fragment[20] = 0x20;
        assert!(!complete(&mut fragment));
    }

    #[test]
    fn tcp_over_ipv6_behind_options_is_found() {
        let mut frame = vec![2; 12];
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 28, 0, 64]);
        frame.extend([1; 32]);
        frame.extend([6, 0, 1, 4, 0, 0, 0, 0]);
        let mut tcp = [3; 20];
        let pseudo = checksum::sum(&[1; 32]) + 6 + 20;
        tcp[16..18].copy_from_slice(&checksum::fold(pseudo).to_be_bytes());
        frame.extend(tcp);
        assert!(complete(&mut frame));
        assert!(is_right(&frame));
    }
}
