//! Numbers of the kernel's functions and verdicts, and offsets in `struct xdp_md`, from `include/uapi/linux/bpf.h`.

/// `bpf_ktime_get_ns`
pub const KTIME_GET_NS: i32 = 5;
/// `bpf_get_smp_processor_id`
pub const GET_SMP_PROCESSOR_ID: i32 = 8;
/// `bpf_xdp_adjust_head`
pub const ADJUST_HEAD: i32 = 44;
/// `bpf_redirect_map`
pub const REDIRECT_MAP: i32 = 51;
/// `bpf_xdp_adjust_meta`
pub const ADJUST_META: i32 = 54;

/// A frame that the program gives up on; the kernel counts it as an error.
pub const XDP_ABORTED: i32 = 0;
/// The frame is dropped.
pub const XDP_DROP: i32 = 1;
/// The frame goes on to the kernel's own stack.
pub const XDP_PASS: i32 = 2;
/// The frame goes to a device or a socket.
pub const XDP_REDIRECT: i32 = 4;

/// Offset of the start of the frame.
pub const XDP_MD_DATA: i16 = 0;
/// Offset of the end of the frame.
pub const XDP_MD_DATA_END: i16 = 4;
/// Offset of the start of the metadata in front of the frame.
pub const XDP_MD_DATA_META: i16 = 8;
/// Offset of the receive queue.
pub const XDP_MD_RX_QUEUE_INDEX: i16 = 16;
