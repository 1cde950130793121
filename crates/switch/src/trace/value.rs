//! Values for people.

use std::net::Ipv6Addr;

use bits::Bits;
use serde::Serialize;

/// A named value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TracedValue {
    /// The name: `hdr.ipv4.dstAddr`.
    pub name: String,
    /// Width in bits.
    pub bits: u32,
    /// The value in hexadecimal, `0x0a000101`, with one digit for each four bits.
    pub value: String,
    /// The value as people write it: `10.0.1.1`.
    pub shown: String,
}

impl TracedValue {
    /// Makes a value that is shown according to its name and width.
    pub fn new(name: impl Into<String>, value: &Bits) -> TracedValue {
        let name = name.into();
        let shown = show(&name, value);
        TracedValue { name, bits: value.width(), value: hex(value), shown }
    }

    /// Makes a value with a name of its own, such as a member of an enumeration.
    pub fn symbolic(name: impl Into<String>, value: &Bits, shown: impl Into<String>) -> TracedValue {
        TracedValue { name: name.into(), bits: value.width(), value: hex(value), shown: shown.into() }
    }
}

/// `0x` and a digit for each four bits.
fn hex(value: &Bits) -> String {
    let digits: String = value.to_be_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let wanted = (value.width() as usize).div_ceil(4).max(1);
    let digits = if digits.is_empty() { "0".to_string() } else { digits };
    format!("0x{}", &digits[digits.len().saturating_sub(wanted)..])
}

/// Parts of names that suggest an address.
const ADDRESS: [&str; 8] = ["addr", "mac", "ip", "src", "dst", "dmac", "smac", "nexthop"];

/// Parts of names whose values are usually written in hexadecimal.
const HEXADECIMAL: [&str; 8] = ["type", "checksum", "csum", "hash", "mask", "magic", "cookie", "flags"];

/// Renders a value according to its name and width: addresses in their notation, types and checksums in hexadecimal,
/// others in decimal up to 32 bits and in hexadecimal beyond.
pub(super) fn show(name: &str, value: &Bits) -> String {
    let last = name.rsplit('.').next().unwrap_or(name).to_ascii_lowercase();
    let whole = name.to_ascii_lowercase();
    let is = |parts: &[&str]| parts.iter().any(|part| last.contains(part));
    let bytes = value.to_be_bytes();
    match value.width() {
        48 if is(&ADDRESS) || whole.contains("eth") => {
            let parts: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            parts.join(":")
        }
        32 if is(&ADDRESS) => {
            let parts: Vec<String> = bytes.iter().map(u8::to_string).collect();
            parts.join(".")
        }
        128 if is(&ADDRESS) => Ipv6Addr::from(value.low_u128()).to_string(),
        width if width > 32 || (width >= 8 && is(&HEXADECIMAL) && last != "instance_type") => hex(value),
        _ => value.low_u64().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_widths_say_how_a_value_is_shown() {
        let shown = |name: &str, value: u128, width: u32| show(name, &Bits::new(value, width));
        assert_eq!(shown("hdr.ethernet.dstAddr", 0x0a0b_0c0d_0e0f, 48), "0a:0b:0c:0d:0e:0f");
        assert_eq!(shown("hdr.ipv4.dstAddr", 0x0a00_0101, 32), "10.0.1.1");
        assert_eq!(shown("hdr.ipv6.src_addr", 1, 128), "::1");
        assert_eq!(shown("hdr.ethernet.etherType", 0x800, 16), "0x0800");
        assert_eq!(shown("hdr.ipv4.ttl", 64, 8), "64");
        assert_eq!(shown("standard_metadata.instance_type", 4, 32), "4");
        assert_eq!(shown("standard_metadata.ingress_global_timestamp", 4096, 48), "0x000000001000");
        assert_eq!(shown("meta.wide", 5, 200), format!("0x{:050x}", 5));
        assert_eq!(hex(&Bits::new(0x1ff, 9)), "0x1ff");
        assert_eq!(hex(&Bits::zero(0)), "0x0");
    }
}
