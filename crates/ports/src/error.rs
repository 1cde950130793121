//! Defines the errors of ports.

use std::io;
use std::path::PathBuf;

use wire::pcap::PcapError;

use crate::NoXdp;

/// The reason why a port cannot be opened or can no longer be used. Each message is one sentence that includes the
/// remedy where it is known.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// No interface has this name.
    #[error("there is no network interface `{interface}`; `ip link` lists the available ones")]
    NoInterface {
        /// Name of the interface.
        interface: String,
    },
    /// The interface does not carry Ethernet.
    #[error("interface `{interface}` does not carry Ethernet frames (its hardware type is {hardware_type})")]
    NotEthernet {
        /// The interface.
        interface: String,
        /// Its ARPHRD number.
        hardware_type: u16,
    },
    /// The kernel denies this process permission.
    #[error(
        "{what} on `{interface}` requires {capability}: run as root, grant the program the capability with `sudo \
         setcap {capability}+ep PROGRAM`, or use a private namespace with `unshare --user --map-root-user --net`"
    )]
    NotPermitted {
        /// Attempted operation.
        what: &'static str,
        /// Interface of the operation.
        interface: String,
        /// Capability that permits it, as `setcap` spells it.
        capability: &'static str,
        /// Error returned by the kernel.
        source: io::Error,
    },
    /// The interface exists, but AF_XDP cannot be used on it.
    #[error("AF_XDP cannot be used on `{interface}`: {why}")]
    NoXdp {
        /// The interface.
        interface: String,
        /// Reason.
        why: NoXdp,
    },
    /// The interface was removed, or moved to another namespace, while it was in use.
    #[error("interface `{interface}` disappeared while in use (removed, or moved to another network namespace)")]
    Vanished {
        /// The interface.
        interface: String,
    },
    /// A device cannot have this name, because an interface has it or the kernel reserves it.
    #[error("there is an interface `{interface}` already, or the name is reserved; choose another one")]
    NameTaken {
        /// The name.
        interface: String,
    },
    /// Another program is between an interface and the stack.
    #[error("another program is between `{interface}` and the stack, with the device `{device}`; end it first")]
    Interposed {
        /// The interface.
        interface: String,
        /// The program's device.
        device: String,
    },
    /// The settings of the kernel let neither the interface nor a device in front of it answer ARP.
    #[error(
        "nothing would answer ARP requests at `{interface}`: `arp_ignore` forbids it to a device without address, and \
         strict `rp_filter` or `arp_filter` to the interface; set `sysctl net.ipv4.conf.{{all,{interface}}}.rp_filter=2` \
         and `arp_filter=0`, or `net.ipv4.conf.{{all,default}}.arp_ignore=0`"
    )]
    NoArp {
        /// The interface.
        interface: String,
    },
    /// The interface has lost its link while it was in use.
    #[error("interface `{interface}` has no link: it is down, or its cable is unplugged")]
    NoLink {
        /// The interface.
        interface: String,
    },
    /// The kernel has no TUN/TAP driver, or its device is not accessible.
    #[error("cannot open /dev/net/tun for `{interface}`: {source}; {hint}")]
    NoTunDriver {
        /// Name of the device to be created.
        interface: String,
        /// Remedy.
        hint: &'static str,
        /// Error returned by the kernel.
        source: io::Error,
    },
    /// A capture file cannot be opened or created.
    #[error("cannot {action} `{}`: {source}", path.display())]
    File {
        /// `open` or `create`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Error returned by the kernel.
        source: io::Error,
    },
    /// A capture cannot be read or written.
    #[error("`{}`: {source}", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// Error of the capture.
        source: PcapError,
    },
    /// Writing the output would destroy the input.
    #[error("`{}` is both input and output; writing would overwrite unread input", path.display())]
    SameFile {
        /// The file.
        path: PathBuf,
    },
    /// Any other failure of a system call.
    #[error("{what} on `{interface}` failed: {source}")]
    System {
        /// Attempted operation.
        what: &'static str,
        /// The interface or file.
        interface: String,
        /// Error returned by the kernel.
        source: io::Error,
    },
}

impl PortError {
    /// Converts the error of a failed system call on `interface`; permission errors have their own variant.
    pub(crate) fn system(what: &'static str, interface: &str, capability: &'static str, source: io::Error) -> Self {
        let interface = interface.to_owned();
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => PortError::NotPermitted { what, interface, capability, source },
            Some(libc::ENODEV | libc::ENXIO) => PortError::NoInterface { interface },
            _ => PortError::System { what, interface, source },
        }
    }
}
