//! What can go wrong between the machine and a port.

use std::io;
use std::path::PathBuf;

use wire::pcap::PcapError;

use crate::NoXdp;

/// Why a port cannot be opened, or can be used no longer. Each is one sentence that says what to do where that is
/// known.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// No interface has this name.
    #[error("there is no network interface `{interface}` here; `ip link` lists those that exist")]
    NoInterface {
        /// The name that was asked for.
        interface: String,
    },
    /// The interface carries something else than Ethernet.
    #[error("interface `{interface}` does not carry Ethernet frames (its hardware type is {hardware_type})")]
    NotEthernet {
        /// The interface.
        interface: String,
        /// Its ARPHRD number.
        hardware_type: u16,
    },
    /// The kernel does not let this process do it.
    #[error(
        "{what} on `{interface}` needs {capability}: run as root, grant the program the capability with `sudo setcap {capability}+ep PROGRAM`, or try inside a namespace of your own with `unshare --user --map-root-user --net`"
    )]
    NotPermitted {
        /// What was attempted.
        what: &'static str,
        /// The interface it was attempted on.
        interface: String,
        /// The capability that allows it, as `setcap` spells it.
        capability: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The interface is there, and AF_XDP cannot be had on it.
    #[error("AF_XDP cannot be used on `{interface}`: {why}")]
    NoXdp {
        /// The interface.
        interface: String,
        /// Why not.
        why: NoXdp,
    },
    /// The interface was removed, or moved to another namespace, while it was in use.
    #[error("interface `{interface}` vanished while it was in use (removed, or moved to another network namespace)")]
    Vanished {
        /// The interface.
        interface: String,
    },
    /// The kernel has no TUN/TAP driver, or keeps its device out of reach.
    #[error("cannot open /dev/net/tun for `{interface}`: {source}; {hint}")]
    NoTunDriver {
        /// The device that was to be made.
        interface: String,
        /// What to do about it.
        hint: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A capture file cannot be opened or created.
    #[error("cannot {action} `{}`: {source}", path.display())]
    File {
        /// `open` or `create`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A capture cannot be read or written.
    #[error("`{}`: {source}", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: PcapError,
    },
    /// Writing the output would destroy the input.
    #[error("`{}` is both input and output; the output would overwrite what is still to be read", path.display())]
    SameFile {
        /// The file.
        path: PathBuf,
    },
    /// A system call failed in a way that has no sentence of its own.
    #[error("{what} on `{interface}` failed: {source}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// The interface or file.
        interface: String,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl PortError {
    /// The error of a system call that just failed on `interface`; permission is told apart.
    pub(crate) fn system(what: &'static str, interface: &str, capability: &'static str, source: io::Error) -> Self {
        let interface = interface.to_owned();
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => PortError::NotPermitted { what, interface, capability, source },
            Some(libc::ENODEV | libc::ENXIO) => PortError::NoInterface { interface },
            _ => PortError::System { what, interface, source },
        }
    }
}
