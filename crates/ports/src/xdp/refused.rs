//! Reasons why AF_XDP cannot be used.

use std::io;

/// The reason why an interface cannot be used through AF_XDP. Each message is the end of a sentence, and includes the
/// remedy where it is known.
#[derive(Debug, thiserror::Error)]
pub enum NoXdp {
    /// The process lacks a capability.
    #[error(
        "{what} was not permitted: it needs cap_net_raw, cap_net_admin and cap_bpf (run as root, or `sudo setcap cap_net_raw,cap_net_admin,cap_bpf+ep PROGRAM`; root of a user namespace does not have them)"
    )]
    NotPermitted {
        /// Attempted operation.
        what: &'static str,
    },
    /// The kernel is too old or was built without AF_XDP.
    #[error("this kernel cannot do it ({what}: {source}); it takes Linux 5.11 or newer, built with XDP_SOCKETS")]
    Kernel {
        /// Attempted operation.
        what: &'static str,
        /// Error returned by the kernel.
        source: io::Error,
    },
    /// Another XDP program is attached.
    #[error(
        "another XDP program is attached to it: end the process that holds it, or, if `ip link` put it there, remove it with `ip \
         link set dev NAME xdp off`"
    )]
    Occupied,
    /// Another AF_XDP socket uses one of its queues.
    #[error("another program uses its receive queue {queue} through AF_XDP")]
    QueueInUse {
        /// The queue.
        queue: u32,
    },
    /// The limit on locked memory is too low for the frame memory.
    #[error(
        "{kib} KiB of frame memory are more than this user may lock: raise the limit (`ulimit -l`, LimitMEMLOCK= of a service) or grant cap_ipc_lock"
    )]
    LockedMemory {
        /// Smallest size that was tried, in KiB.
        kib: usize,
    },
    /// Long frames need multi-buffer support.
    #[error(
        "its MTU of {mtu} bytes needs packets of several buffers, which this kernel or its driver cannot receive ({source}); an MTU of at most 3818 bytes would do"
    )]
    Jumbo {
        /// The interface's MTU, in bytes.
        mtu: usize,
        /// Error returned by the kernel.
        source: io::Error,
    },
    /// Frames may be longer than a port supports.
    #[error(
        "its MTU of {mtu} bytes is over the {max_mtu} that an AF_XDP port takes; `ip link set dev NAME mtu {max_mtu}` makes it fit"
    )]
    LongFrames {
        /// The interface's MTU, in bytes.
        mtu: usize,
        /// Maximum MTU in bytes.
        max_mtu: usize,
    },
    /// Any other error.
    #[error("{what} failed: {source}")]
    System {
        /// Attempted operation.
        what: &'static str,
        /// Error returned by the kernel.
        source: io::Error,
    },
}

impl NoXdp {
    /// Converts an error at a step for which it has no special meaning.
    pub(super) fn at(what: &'static str) -> impl Fn(io::Error) -> NoXdp {
        move |source| match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => NoXdp::NotPermitted { what },
            Some(libc::ENOSYS | libc::EAFNOSUPPORT | libc::ENOPROTOOPT | libc::EINVAL | libc::EOPNOTSUPP) => {
                NoXdp::Kernel { what, source }
            }
            _ => NoXdp::System { what, source },
        }
    }
}
