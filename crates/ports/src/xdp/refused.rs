//! Explains why AF_XDP cannot be used.

use std::io;

/// The reason why an interface cannot be used through AF_XDP. Each message is the end of a sentence, and includes the
/// remedy where it is known.
#[derive(Debug, thiserror::Error)]
pub enum NoXdp {
    /// The process lacks a capability.
    #[error(
        "{what} was not permitted: it requires cap_net_raw, cap_net_admin and cap_bpf (run as root, or `sudo setcap \
         cap_net_raw,cap_net_admin,cap_bpf+ep PROGRAM`; root in a user namespace does not have them)"
    )]
    NotPermitted {
        /// Attempted operation.
        what: &'static str,
    },
    /// The kernel is too old or was built without AF_XDP.
    #[error(
        "this kernel does not support it ({what}: {source}); it requires Linux 5.11 or later, built with XDP_SOCKETS"
    )]
    Kernel {
        /// Attempted operation.
        what: &'static str,
        /// Error returned by the kernel.
        source: io::Error,
    },
    /// Another XDP program is attached.
    #[error(
        "another XDP program is attached to it: stop the process that attached it, or, if it was attached with `ip \
         link`, remove it with `ip link set dev NAME xdp off`"
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
        "{kib} KiB of frame memory exceed the locked-memory limit of this user: raise it (`ulimit -l`, or \
         LimitMEMLOCK= of a service) or grant cap_ipc_lock"
    )]
    LockedMemory {
        /// Smallest size that was tried, in KiB.
        kib: usize,
    },
    /// Long frames need multi-buffer support.
    #[error(
        "its MTU of {mtu} bytes requires multi-buffer packets, which this kernel or its driver cannot receive \
         ({source}); an MTU of at most 3818 bytes works"
    )]
    Jumbo {
        /// The interface's MTU, in bytes.
        mtu: usize,
        /// Error returned by the kernel.
        source: io::Error,
    },
    /// Frames may be longer than a port supports.
    #[error(
        "its MTU of {mtu} bytes exceeds the AF_XDP maximum of {max_mtu}; reduce it with `ip link set dev NAME mtu \
         {max_mtu}`"
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
