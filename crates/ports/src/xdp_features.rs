//! Reads the XDP features of an interface from generic netlink (family `netdev`, Linux 6.3).
//!
//! ```text
//! message = command u8, version u8, 0 u16 | attributes
//! ```
//!
//! The families have no fixed numbers: the family `nlctrl` translates their names. Sources: include/uapi/linux/netdev.h
//! and genetlink.h in the Linux tree.

use crate::interface::interface_index;
use crate::namespace::netlink::{NetlinkRequest, attributes};

/// Size of struct genlmsghdr in bytes.
const GENERIC_HEADER: usize = 4;
/// Version of both families.
const VERSION: u8 = 1;

/// The family of families: its number, a command and attributes of it.
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

/// A command and attributes of the family of devices.
const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_A_DEV_IFINDEX: u16 = 1;
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;
/// Feature: the driver sends frames that XDP programs of other interfaces redirect to it.
const NETDEV_XDP_ACT_NDO_XMIT: u64 = 1 << 2;

/// Returns whether an interface of the calling thread's network namespace sends frames that XDP programs of other
/// interfaces redirect to it. Returns `None` if the kernel does not say: it is older than 6.3, or there is no such
/// interface.
///
/// A veth does so only while its other end has an XDP program or generic receive offload
/// ([`Namespace::turn_on`](crate::namespace::Namespace::turn_on)). The kernel refuses redirects to other interfaces.
pub fn accepts_redirects(interface: &str) -> Option<bool> {
    let index = interface_index(interface).ok()?;
    let family = query(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, (CTRL_ATTR_FAMILY_NAME, b"netdev\0"))?;
    let family = u16::from_ne_bytes(value(&family, CTRL_ATTR_FAMILY_ID)?);
    let device = query(family, NETDEV_CMD_DEV_GET, (NETDEV_A_DEV_IFINDEX, &index.to_ne_bytes()))?;
    let features = u64::from_ne_bytes(value(&device, NETDEV_A_DEV_XDP_FEATURES)?);
    Some(features & NETDEV_XDP_ACT_NDO_XMIT != 0)
}

/// Sends a command with one attribute to a family, and returns the answer.
fn query(family: u16, command: u8, (kind, value): (u16, &[u8])) -> Option<Vec<u8>> {
    let request = NetlinkRequest::new(family, 0, &[command, VERSION, 0, 0]).attribute(kind, value);
    request.query().ok()?.into_iter().next()
}

/// Returns the value of an attribute of an answer, if it has this length.
fn value<const LEN: usize>(answer: &[u8], wanted: u16) -> Option<[u8; LEN]> {
    let (_, value) = attributes(answer.get(GENERIC_HEADER..)?).find(|(kind, _)| *kind == wanted)?;
    value.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_follow_the_header_and_have_their_length() {
        let mut answer = vec![1, 1, 0, 0];
        for (kind, value) in [(1u16, &[7u8; 4][..]), (3, &[4, 0, 0, 0, 0, 0, 0, 0])] {
            answer.extend((value.len() as u16 + 4).to_ne_bytes());
            answer.extend(kind.to_ne_bytes());
            answer.extend(value);
        }
        assert_eq!(value(&answer, 1), Some([7; 4]));
        assert_eq!(value(&answer, 3), Some([4, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!((value::<4>(&answer, 3), value::<4>(&answer, 2)), (None, None));
        assert_eq!((value::<4>(&[1, 1, 0, 0], 1), value::<4>(&[1, 1], 1)), (None, None));
    }
}
