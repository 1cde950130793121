//! Link types by number, for the sentence that says why a file is refused.

/// Ethernet frames without checksum, the only kind that is read.
pub(super) const ETHERNET: u32 = 1;

/// The registry's name of a link type people are likely to meet.
pub(super) fn name(link_type: u32) -> &'static str {
    match link_type {
        0 => "BSD loopback",
        1 => "Ethernet",
        9 => "PPP",
        12 | 14 | 101 => "raw IP",
        105 => "IEEE 802.11",
        113 => "Linux cooked capture",
        127 => "IEEE 802.11 with radiotap",
        147..=162 => "reserved for private use",
        189 | 220 => "USB",
        192 => "per-packet information",
        195 | 230 => "IEEE 802.15.4",
        228 => "raw IPv4",
        229 => "raw IPv6",
        253 => "netlink",
        276 => "Linux cooked capture v2",
        _ => "unknown",
    }
}
