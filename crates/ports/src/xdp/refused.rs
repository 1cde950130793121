//! Why AF_XDP cannot be had.

use std::io;

/// Why an interface cannot be used through AF_XDP. Each is the end of a sentence, and says what to do where that is
/// known.
#[derive(Debug, thiserror::Error)]
pub enum NoXdp {
    /// The process lacks a capability.
    #[error(
        "{what} was not permitted: it needs cap_net_raw, cap_net_admin and cap_bpf (run as root, or `sudo setcap cap_net_raw,cap_net_admin,cap_bpf+ep PROGRAM`; root of a user namespace does not have them)"
    )]
    NotPermitted {
        /// What was attempted.
        what: &'static str,
    },
    /// The kernel is too old or was built without it.
    #[error("this kernel cannot do it ({what}: {source}); it takes Linux 5.11 or newer, built with XDP_SOCKETS")]
    Kernel {
        /// What was attempted.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Another XDP program is attached.
    #[error(
        "another XDP program is attached to it: end the process that holds it, or, if `ip link` put it there, remove it with `ip \
         link set dev NAME xdp off`"
    )]
    Occupied,
    /// Another AF_XDP socket has one of its queues.
    #[error("another program uses its receive queue {queue} through AF_XDP")]
    QueueInUse {
        /// The queue.
        queue: u32,
    },
    /// The frame memory may not be locked.
    #[error(
        "{kib} KiB of frame memory are more than this user may lock: raise the limit (`ulimit -l`, LimitMEMLOCK= of a service) or grant cap_ipc_lock"
    )]
    LockedMemory {
        /// The smallest size that was tried, in KiB.
        kib: usize,
    },
    /// Long frames need multi-buffer support.
    #[error(
        "its MTU of {mtu} bytes needs packets of several buffers, which this kernel or its driver cannot receive ({source}); an MTU of at most 3818 bytes would do"
    )]
    Jumbo {
        /// The interface's MTU, in bytes.
        mtu: usize,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Frames may be longer than any that a port takes.
    #[error(
        "its MTU of {mtu} bytes is over the {most} that an AF_XDP port takes; `ip link set dev NAME mtu {most}` makes it fit"
    )]
    LongFrames {
        /// The interface's MTU, in bytes.
        mtu: usize,
        /// The largest that would do.
        most: usize,
    },
    /// Something else.
    #[error("{what} failed: {source}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl NoXdp {
    /// What an error number means at a step that has no special meaning for it.
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
