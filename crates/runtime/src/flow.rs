//! Hashes a frame's flow, so that all frames of a flow reach the same worker.

/// Returns a hash that all frames of a flow share, in both directions: of addresses, protocol and ports of IPv4 and
/// IPv6, of the MAC addresses of everything else. Fragments after the first are hashed without ports.
pub fn flow_hash(frame: &[u8]) -> u64 {
    let mut at = 12;
    while matches!(frame.get(at..at + 2), Some([0x81, 0x00] | [0x88, 0xa8])) && at < 20 {
        at += 4;
    }
    let found = match frame.get(at..at + 2) {
        Some([0x08, 0x00]) => ipv4(&frame[at + 2..]),
        Some([0x86, 0xdd]) => ipv6(&frame[at + 2..]),
        _ => None,
    };
    found.unwrap_or_else(|| match (frame.get(..6), frame.get(6..12)) {
        (Some(to), Some(from)) => symmetric(number(to), number(from)),
        _ => 0,
    })
}

fn ipv4(packet: &[u8]) -> Option<u64> {
    let header = packet.get(..20)?;
    let first_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff == 0;
    let words = usize::from(header[0] & 15);
    let ports = if first_fragment { packet.get(words * 4..) } else { None };
    Some(transport(number(&header[12..16]), number(&header[16..20]), header[9], ports))
}

fn ipv6(packet: &[u8]) -> Option<u64> {
    let header = packet.get(..40)?;
    let address = |at: usize| number(&header[at..at + 8]).rotate_left(1) ^ number(&header[at + 8..at + 16]);
    Some(transport(address(8), address(24), header[6], packet.get(40..)))
}

fn transport(from: u64, to: u64, protocol: u8, segment: Option<&[u8]>) -> u64 {
    // The headers of TCP, UDP, DCCP, SCTP and UDP-Lite begin with their ports.
    let ports = segment.filter(|_| matches!(protocol, 6 | 17 | 33 | 132 | 136)).and_then(|segment| segment.get(..4));
    let (from_port, to_port) = ports.map_or((0, 0), |ports| (number(&ports[..2]), number(&ports[2..])));
    symmetric(mix(from) ^ from_port, mix(to) ^ to_port) ^ u64::from(protocol)
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Returns the same hash for both orders of its arguments.
fn symmetric(one: u64, other: u64) -> u64 {
    mix(mix(one).wrapping_add(mix(other)))
}

/// The finalizer of SplitMix64: every bit of the input affects every bit of the result.
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn udp(from: (u8, u16), to: (u8, u16), tags: usize) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, to.0, 2, 0, 0, 0, 0, from.0];
        (0..tags).for_each(|tag| frame.extend([0x81, 0, 0, tag as u8]));
        frame.extend([8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, from.0, 10, 0, 0, to.0]);
        frame.extend(from.1.to_be_bytes());
        frame.extend(to.1.to_be_bytes());
        frame.extend([0, 8, 0, 0]);
        frame
    }

    #[test]
    fn both_directions_are_one_flow_and_flows_spread() {
        for tags in 0..2 {
            let there = udp((1, 1000), (2, 53), tags);
            assert_eq!(flow_hash(&there), flow_hash(&udp((2, 53), (1, 1000), tags)));
            assert_ne!(flow_hash(&there), flow_hash(&udp((1, 1001), (2, 53), tags)));
        }
        for workers in [2u64, 3, 4] {
            let mut counts = vec![0; workers as usize];
            (0..1000).for_each(|port| counts[(flow_hash(&udp((1, port), (2, 53), 0)) % workers) as usize] += 1);
            let fair = 1000 / workers as usize;
            assert!(counts.iter().all(|count| (fair * 8 / 10..fair * 12 / 10).contains(count)), "{counts:?}");
        }
    }

    #[test]
    fn no_frame_is_too_short() {
        let whole = udp((1, 1000), (2, 53), 1);
        (0..whole.len()).for_each(|len| _ = flow_hash(&whole[..len]));
        let mut six = vec![0; 12];
        six.extend([0x86, 0xdd]);
        six.resize(60, 7);
        (0..six.len()).for_each(|len| _ = flow_hash(&six[..len]));
        // Without a known network header the MAC addresses are hashed, in either order.
        assert_eq!(
            flow_hash(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 9]),
            flow_hash(&[7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6])
        );
    }
}
