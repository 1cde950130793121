//! Completes received frames: data that the kernel keeps beside a frame is put back into it.

use wire::checksum;
use wire::offload::{SegmentKind, segment};

use crate::PortStats;

/// A VLAN tag that the kernel removed from a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    /// Protocol identifier of the tag, 0x8100 or 0x88a8.
    pub(super) protocol: u16,
    /// Priority, drop-eligible bit and VLAN identifier.
    pub(super) control: u16,
}

/// The kernel's description of a frame's pending offloads: `struct virtio_net_hdr`, in the machine's byte order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct VnetHeader {
    flags: u8,
    segmentation: u8,
    segment_size: u16,
    checksum_start: u16,
    checksum_offset: u16,
}

const NEEDS_CHECKSUM: u8 = 1;
const SEGMENTATION_NONE: u8 = 0;
const SEGMENTATION_TCP_V4: u8 = 1;
const SEGMENTATION_TCP_V6: u8 = 4;
const SEGMENTATION_UDP: u8 = 5;
/// Flag that CWR is set, which segmentation reads from the frame itself.
const SEGMENTATION_ECN: u8 = 0x80;

impl VnetHeader {
    /// Size in bytes, in front of the frame.
    pub(super) const LEN: usize = 10;

    /// Splits the header off the frame after it.
    pub(super) fn split(bytes: &[u8]) -> Option<(VnetHeader, &[u8])> {
        let (header, frame) = bytes.split_at_checked(Self::LEN)?;
        let half = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        let header = VnetHeader {
            flags: header[0],
            segmentation: header[1],
            segment_size: half(4),
            checksum_start: half(6),
            checksum_offset: half(8),
        };
        Some((header, frame))
    }
}

/// Passes `emit` the frame as it would be on a cable, or its segments. Returns false if it cannot be completed.
pub(super) fn finish(
    header: VnetHeader,
    frame: &[u8],
    tag: Option<Tag>,
    stats: &mut PortStats,
    mut emit: impl FnMut(Vec<u8>),
) -> bool {
    let unfinished = header.flags & NEEDS_CHECKSUM != 0;
    let start = usize::from(header.checksum_start);
    let cut = match header.segmentation & !SEGMENTATION_ECN {
        SEGMENTATION_NONE => {
            let mut data = Vec::with_capacity(frame.len() + 4);
            match tag {
                Some(_) if frame.len() < 12 => return false,
                Some(tag) => put_tagged(&mut data, frame, tag),
                None => data.extend_from_slice(frame),
            }
            if unfinished {
                // The offsets count from the untagged frame's start.
                let start = start + data.len() - frame.len();
                if !checksum::complete(&mut data, start, header.checksum_offset.into()) {
                    return false;
                }
                stats.rx_checksums_completed += 1;
            }
            emit(data);
            return true;
        }
        SEGMENTATION_TCP_V4 | SEGMENTATION_TCP_V6 => SegmentKind::Tcp,
        SEGMENTATION_UDP => SegmentKind::Udp,
        _ => return false,
    };
    stats.rx_segmented += 1;
    let transport = unfinished.then_some(start);
    let cut = segment(frame, cut, transport, header.segment_size.into(), |data| {
        emit(match tag {
            Some(tag) => {
                let mut tagged = Vec::with_capacity(data.len() + 4);
                put_tagged(&mut tagged, &data, tag);
                tagged
            }
            None => data,
        });
    });
    cut.is_ok()
}

/// Writes `frame` with the tag at its original position, after the two addresses.
fn put_tagged(data: &mut Vec<u8>, frame: &[u8], tag: Tag) {
    let (addresses, rest) = frame.split_at(12);
    data.extend_from_slice(addresses);
    data.extend_from_slice(&tag.protocol.to_be_bytes());
    data.extend_from_slice(&tag.control.to_be_bytes());
    data.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(header: VnetHeader, frame: &[u8], tag: Option<Tag>) -> Option<Vec<Vec<u8>>> {
        let mut out = Vec::new();
        finish(header, frame, tag, &mut PortStats::default(), |data| out.push(data)).then_some(out)
    }

    #[test]
    fn a_tag_returns_to_its_place_and_the_checksum_behind_it_is_completed() {
        let mut frame: Vec<u8> = (0..40).collect();
        frame[26..28].fill(0);
        let header = VnetHeader { flags: 1, checksum_start: 20, checksum_offset: 6, ..VnetHeader::default() };
        let out = finished(header, &frame, Some(Tag { protocol: 0x8100, control: 0x2064 })).unwrap();
        assert_eq!(out[0][..18], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0x81, 0, 0x20, 0x64, 12, 13]);
        assert_eq!(checksum::checksum(&out[0][24..]), 0);
        assert_eq!(out[0].len(), 44);
    }

    #[test]
    fn headers_that_make_no_sense_are_refused() {
        let frame = [0; 60];
        let partial = VnetHeader { flags: 1, checksum_start: 59, checksum_offset: 0, ..VnetHeader::default() };
        assert_eq!(finished(partial, &frame, None), None);
        let unknown = VnetHeader { segmentation: 3, segment_size: 10, ..VnetHeader::default() };
        assert_eq!(finished(unknown, &frame, None), None);
        let tcp = VnetHeader { segmentation: 1, segment_size: 10, ..VnetHeader::default() };
        assert_eq!(finished(tcp, &frame, None), None);
        assert_eq!(finished(VnetHeader::default(), &[0; 5], Some(Tag { protocol: 0x8100, control: 1 })), None);
        assert!(VnetHeader::split(&[0; 9]).is_none());
    }
}
