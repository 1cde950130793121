//! Names link types, for error messages.

/// Ethernet frames without frame check sequence, the only supported link type.
pub(super) const ETHERNET: u32 = 1;

/// Returns the registered name of a common link type.
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
