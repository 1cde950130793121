//! Redirects every frame of an interface to another one, at XDP.
//!
//! ```text
//! r1 = devices                       (two instructions)
//! r2 = 0
//! r3 = XDP_DROP                      verdict if the map had no device
//! r0 = bpf_redirect_map(r1, r2, r3)
//! exit
//! ```
//!
//! No forwarder at XDP can be faster, so the rate is the upper bound of this path on a machine.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use crate::PortError;
use crate::bpf::{self, Attach, MapKind, code, instruction, load_map};
use crate::interface::interface_index;
use crate::xdp::again_while_busy;

/// `bpf_redirect_map`
pub(super) const REDIRECT_MAP: i32 = 51;
/// `XDP_DROP`
pub(super) const DROP: i32 = 1;

/// A program that redirects every frame of one interface to another one, without looking at it. It is detached when
/// this is dropped, or when the process ends in any way.
pub struct RedirectOnly {
    /// Kept open: the attachment lasts as long as the descriptor.
    _link: OwnedFd,
}

impl RedirectOnly {
    /// Attaches to the driver of `from`; frames leave by `to`. Both are interfaces of the calling thread's network
    /// namespace.
    ///
    /// The kernel drops each frame for an interface that does not
    /// [accept redirects](crate::accepts_redirects).
    ///
    /// # Errors
    /// Returns an error if there is no such interface, its driver does not support XDP, another program is attached, or
    /// this process may not load BPF programs.
    pub fn attach(from: &str, to: &str) -> Result<RedirectOnly, PortError> {
        let devices = device_map(&[to])?;
        let [load_low, load_high] = load_map(1, devices.as_fd());
        let program = [
            load_low,
            load_high,
            instruction(code::MOVE, 2, 0, 0, 0),
            instruction(code::MOVE, 3, 0, 0, DROP),
            instruction(code::CALL, 0, 0, 0, REDIRECT_MAP),
            instruction(code::EXIT, 0, 0, 0, 0),
        ];
        let program = bpf::load_xdp(&program, 0).map_err(failed("loading a redirecting program", from))?;
        Ok(RedirectOnly { _link: attach(&program, from)? })
    }
}

/// Creates a map of interfaces, in this order.
pub(super) fn device_map(interfaces: &[&str]) -> Result<OwnedFd, PortError> {
    let first = interfaces.first().copied().unwrap_or_default();
    let devices = bpf::create_map(MapKind::Devices, 4, interfaces.len() as u32)
        .map_err(failed("creating a map of interfaces", first))?;
    for (at, interface) in (0..).zip(interfaces) {
        bpf::update_map(devices.as_fd(), at, index_of(interface)?.cast_unsigned())
            .map_err(failed("adding an interface to a map", interface))?;
    }
    Ok(devices)
}

/// Attaches a program to an interface's driver, for as long as the returned descriptor is open.
pub(super) fn attach(program: &OwnedFd, interface: &str) -> Result<OwnedFd, PortError> {
    let index = index_of(interface)?;
    again_while_busy(|| bpf::attach_xdp(program.as_fd(), index, Attach::Native))
        .map_err(failed("attaching an XDP program", interface))
}

/// Returns the conversion of a system call's error.
pub(super) fn failed(what: &'static str, interface: &str) -> impl FnOnce(io::Error) -> PortError {
    move |source| PortError::system(what, interface, "cap_bpf,cap_net_admin", source)
}

/// Returns the index of an interface.
pub(super) fn index_of(interface: &str) -> Result<c_int, PortError> {
    let index = interface_index(interface).map_err(failed("looking up the interface", interface))?;
    Ok(index.cast_signed())
}
