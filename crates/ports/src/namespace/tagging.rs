//! Adds VLAN tags without VLAN interfaces, which a kernel may lack, for tests of offloaded tags.

use std::net::UdpSocket;
use std::os::fd::{AsFd, OwnedFd};

use super::{Namespace, NamespaceError};
use crate::bpf::{self, code, instruction};
use crate::interface::Interface;

/// An interface whose stack tags its frames, as long as this lives.
pub struct Tagging {
    /// Kept open: the attachment lasts as long as the descriptor.
    _link: OwnedFd,
}

impl Namespace {
    /// Adds a VLAN tag (IEEE 802.1Q) with this identifier to all frames that the stack sends through an interface. The
    /// tag is kept beside the frame, for the card to insert, like tags of VLAN interfaces. Packet sockets that bypass
    /// the queueing discipline, like those of [`AfPacketPort`](crate::AfPacketPort), are not part of the stack.
    ///
    /// # Errors
    /// Returns an error if there is no such interface, the process is not root outside user namespaces, or the kernel
    /// is older than 6.6.
    pub fn tag_sent(&self, interface: &str, id: u16) -> Result<Tagging, NamespaceError> {
        const SKB_VLAN_PUSH: i32 = 18;
        const PASS: i32 = 0;
        let protocol = i32::from(0x8100u16.to_be());
        let work = || {
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            let index = Interface::new(socket.as_fd(), interface).index()?;
            let program = [
                instruction(code::MOVE, 2, 0, 0, protocol),
                instruction(code::MOVE, 3, 0, 0, i32::from(id)),
                instruction(code::CALL, 0, 0, 0, SKB_VLAN_PUSH),
                instruction(code::MOVE, 0, 0, 0, PASS),
                instruction(code::EXIT, 0, 0, 0, 0),
            ];
            Ok(Tagging { _link: bpf::attach_at_stack(&program, index, bpf::StackSide::Egress)? })
        };
        self.enter(work)?.map_err(self.failed(format!("tagging frames sent on {interface}")))
    }
}
