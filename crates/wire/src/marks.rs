//! Recognizes frames that carry neither tiny packet programs nor INT by a few bytes.

use crate::int::Marker;
use crate::{ethernet, ipv4, ipv6, tpp};

/// The marks of frames that a switch searches. It asks for each frame, so the answer is one comparison of fixed places
/// for IP without tags, options and extension headers, and "perhaps" for all other frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameMarks {
    /// UDP destination ports; more than 16 bits for none.
    ports: [u32; 2],
    /// The DSCP; more than 6 bits for none.
    dscp: u8,
}

impl FrameMarks {
    /// Creates the marks of programs, if the switch executes them, and of INT with this marker.
    pub fn new(programs: bool, int: Option<Marker>) -> FrameMarks {
        let mut marks = FrameMarks { ports: [u32::MAX; 2], dscp: u8::MAX };
        if programs {
            marks.ports[0] = tpp::UDP_PORT.into();
        }
        match int {
            Some(Marker::UdpPort(port)) => marks.ports[1] = port.into(),
            Some(Marker::Dscp(value)) => marks.dscp = value,
            None => {}
        }
        marks
    }

    /// Whether a frame may have a program that [`tpp::find`] or [`tpp::may_carry`] finds, INT that [`crate::int::find`]
    /// finds, or the UDP port of INT.
    #[inline]
    pub fn may_be_in(&self, frame: &[u8]) -> bool {
        const IPV4: u32 = u32::from_ne_bytes([8, 0, 0x45, 0]);
        const KIND: u32 = u32::from_ne_bytes([0xff, 0xff, 0xff, 0]);
        const UDP: usize = ethernet::HEADER_LEN + ipv4::HEADER_LEN;
        let Some(start) = frame.first_chunk::<{ UDP + 4 }>() else { return true };
        if u32::from_ne_bytes([start[12], start[13], start[14], start[15]]) & KIND != IPV4 {
            return self.may_be_in_other(frame);
        }
        // The port of few packets is a mark, so its comparison is the first.
        self.has_port(u16::from_be_bytes([start[UDP + 2], start[UDP + 3]])) && start[23] == ipv4::UDP
            || start[15] >> 2 == self.dscp
    }

    /// The same for a frame that is not IPv4 without tags and options.
    #[cold]
    fn may_be_in_other(&self, frame: &[u8]) -> bool {
        const UDP: usize = ethernet::HEADER_LEN + ipv6::HEADER_LEN;
        let Some([0x86, 0xdd, version, class, ..]) = frame.get(12..UDP + 4) else { return true };
        if (version << 4 | class >> 4) >> 2 == self.dscp {
            return true;
        }
        match frame[20] {
            ipv4::UDP => self.has_port(u16::from_be_bytes([frame[UDP + 2], frame[UDP + 3]])),
            next_header => next_header != ipv4::TCP,
        }
    }

    #[inline]
    fn has_port(&self, port: u16) -> bool {
        u32::from(port) == self.ports[0] || u32::from(port) == self.ports[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a frame with this IP protocol and destination port, after tags and options, or extension headers.
    fn frame(protocol: u8, is_ipv6: bool, port: u16, (tags, options, class): (usize, usize, u8)) -> Vec<u8> {
        let mut segment = 4000u16.to_be_bytes().to_vec();
        segment.extend(port.to_be_bytes());
        match protocol {
            ipv4::UDP => segment.extend([0, 40, 0, 0]),
            _ => segment.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x10, 1, 0, 0, 0, 0, 0]),
        }
        segment.resize(40, 9);
        let mut frame = vec![8; 12];
        (0..tags).for_each(|_| frame.extend([0x81, 0, 0, 5]));
        if is_ipv6 {
            let more: &[u8] = if options > 0 { &[protocol, 0, 1, 4, 0, 0, 0, 0] } else { &[] };
            let next = if options > 0 { 60 } else { protocol };
            frame.extend([0x86, 0xdd, 0x60 | class >> 4, class << 4, 0, 0, 0, (40 + more.len()) as u8, next, 64]);
            frame.extend([1; 32]);
            frame.extend(more);
        } else {
            let length = 60 + 4 * options as u8;
            frame.extend([8, 0, 0x45 + options as u8, class, 0, length, 0, 0, 0, 0, 64, protocol, 0, 0]);
            frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
            frame.extend(vec![1; 4 * options]);
        }
        frame.extend(segment);
        frame
    }

    #[test]
    fn a_frame_without_marks_has_nothing() {
        let markers = [None, Some(Marker::default()), Some(Marker::Dscp(0x17))];
        let settings = [false, true].map(|programs| markers.map(|int| (programs, int))).concat();
        // Found of those with marks, and frames without marks.
        let (mut found, mut without) = ([0; 2], 0);
        let mut compare = |frame: &[u8]| {
            for (programs, int) in &settings {
                let port = tpp::first_datagram(frame).map(|at| Marker::UdpPort(crate::field::get16(frame, at + 2)));
                let is_found = [
                    *programs && tpp::may_carry(frame),
                    int.is_some_and(|marker| crate::int::find(frame, marker).is_some() || Some(marker) == port),
                ];
                assert!(tpp::may_carry(frame) || tpp::find(frame).is_none(), "{frame:x?}");
                let may_be_in = FrameMarks::new(*programs, *int).may_be_in(frame);
                assert!(may_be_in || is_found == [false; 2], "{programs} {int:?} {frame:x?}");
                without += u32::from(!may_be_in);
                (0..2).for_each(|at| found[at] += u32::from(is_found[at]));
            }
        };
        let Marker::UdpPort(marked) = Marker::default() else { panic!("a port") };
        for (protocol, is_ipv6) in [(ipv4::UDP, false), (ipv4::UDP, true), (ipv4::TCP, false), (ipv4::TCP, true)] {
            for port in [53, marked, tpp::UDP_PORT] {
                for (tags, options, class) in [(0, 0, 0), (0, 0, 0x5c), (1, 0, 0), (0, 1, 0), (0, 1, 0x5c)] {
                    let frame = frame(protocol, is_ipv6, port, (tags, options, class));
                    (0..=frame.len()).for_each(|end| compare(&frame[..end]));
                    for at in 12..frame.len().min(80) {
                        for bits in [1, 2, 4, 8, 16, 32, 64, 128, 0x55, 0xaa, 0xff] {
                            let mut other = frame.clone();
                            other[at] ^= bits;
                            compare(&other);
                        }
                    }
                }
            }
        }
        assert!(found.iter().all(|count| *count > 1_000) && without > 10_000, "{found:?} {without}");
    }

    #[test]
    fn common_frames_have_no_marks() {
        let marks = FrameMarks::new(true, Some(Marker::default()));
        for (protocol, is_ipv6) in [(ipv4::UDP, false), (ipv4::UDP, true), (ipv4::TCP, false), (ipv4::TCP, true)] {
            assert!(!marks.may_be_in(&frame(protocol, is_ipv6, 53, (0, 0, 0))), "{protocol} {is_ipv6}");
        }
    }
}
