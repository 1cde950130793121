//! Parses values of keys. An error consists of a message and a remedy.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::ethernet::Address;

use crate::{Choice, Vary};

/// Message and remedy.
type Wrong = (String, String);

/// Keys with an example value each.
const EXAMPLES: &[(&str, &str)] = &[
    ("size", "size=64"),
    ("flows", "flows=10000"),
    ("zipf", "zipf=0.99"),
    ("ports", "ports=1-4"),
    ("src", "src=10.0.0.1"),
    ("dst", "dst=10.0.0.0/16"),
    ("sport", "sport=1024-65535"),
    ("dport", "dport=80"),
    ("smac", "smac=02:00:00:00:00:01"),
    ("dmac", "dmac=02:00:00:00:00:00-02:00:00:00:27:0f"),
    ("vlan", "vlan=100"),
    ("ttl", "ttl=64"),
    ("proto", "proto=253"),
    ("ethertype", "ethertype=0x88b5"),
    ("payload", "payload=00ff"),
    ("frame", "frame=020000000002020000000001"),
    ("vary", "vary=14+2"),
    ("pcap", "pcap=in.pcap"),
    ("seed", "seed=1"),
];

/// Whether a word is the name of a key.
pub fn is_key(word: &str) -> bool {
    EXAMPLES.iter().any(|(key, _)| *key == word)
}

/// Returns a key with an example value, quoted.
pub fn example(key: &str) -> String {
    let found = EXAMPLES.iter().find(|(name, _)| *name == key);
    format!("`{}`", found.map_or(key, |(_, example)| example))
}

/// Returns the error for an unknown word.
pub fn unknown(word: &str) -> Wrong {
    let words = ["eth", "vlan", "ipv4", "ipv6", "udp", "tcp"];
    // `nearest` does not consider short words with two swapped letters similar.
    let sorted = |text: &str| {
        let mut letters: Vec<u8> = text.bytes().collect();
        letters.sort_unstable();
        letters
    };
    let all = words.into_iter().chain(EXAMPLES.iter().map(|(key, _)| *key));
    let shown: String = word.chars().take(40).collect();
    let swapped = all.clone().find(|name| sorted(name) == sorted(word));
    let help = match swapped.or_else(|| diagnostics::names::nearest(word, all)) {
        Some(near) if words.contains(&near) => format!("did you mean `{near}`?"),
        Some(near) => format!("did you mean {}?", example(near)),
        None => {
            let keys: Vec<&str> = EXAMPLES.iter().map(|(key, _)| *key).collect();
            format!("headers are {}; keys are {}", words.join(", "), keys.join(", "))
        }
    };
    (format!("there is no `{shown}`"), help)
}

fn wrong(key: &str, text: &str, expected: &str) -> Wrong {
    let shown: String = text.chars().take(40).collect();
    let message =
        if shown.is_empty() { format!("`{key}` has no value") } else { format!("`{shown}` is not {expected}") };
    (message, format!("write {}, for example", example(key)))
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        None => None,
    }
}

/// Parses a number, or two numbers with `-` between them, from `least` to `most`.
pub fn range(key: &str, text: &str, least: u64, most: u64) -> Result<(u64, u64), Wrong> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let (Some(low), Some(high)) = (number(low.trim()), number(high.trim())) else {
        return Err(wrong(key, text, "a number"));
    };
    if let Some(beyond) = [low, high].into_iter().find(|value| !(least..=most).contains(value)) {
        return Err((
            format!("{beyond} is not between {least} and {most}"),
            format!("write {}, for example", example(key)),
        ));
    }
    ordered(low, high, text).map(|()| (low, high))
}

fn ordered<T: PartialOrd>(low: T, high: T, text: &str) -> Result<(), Wrong> {
    if low <= high {
        return Ok(());
    }
    Err((format!("`{text}` is an empty range"), "write the smaller value first".into()))
}

/// Returns the number of a range that must be a single number.
pub fn only(key: &str, (low, high): (u64, u64)) -> Result<u64, Wrong> {
    if low == high { Ok(low) } else { Err(wrong(key, &format!("{low}-{high}"), "one number")) }
}

/// Parses the exponent of Zipf's law.
pub fn exponent(text: &str) -> Result<f64, Wrong> {
    let value = text.parse::<f64>().ok().filter(|value| *value > 0.0 && *value <= 10.0);
    value.ok_or_else(|| wrong("zipf", text, "a number above 0, up to 10"))
}

/// Parses ports of the switch: `1-4`, `1+3`, `1-2+7`.
pub fn ports(text: &str, max_port: u32) -> Result<Vec<u32>, Wrong> {
    let mut ports = Vec::new();
    for part in text.split('+') {
        let (low, high) = range("ports", part, 0, max_port.into())?;
        ports.extend(low as u32..=high as u32);
    }
    ports.sort_unstable();
    ports.dedup();
    Ok(ports)
}

/// Parses bytes in hexadecimal digits; spaces, colons, dots and underscores between them are ignored.
pub fn hex(key: &str, text: &str, most: usize) -> Result<Vec<u8>, Wrong> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b' ' | b':' | b'.' | b'_')).collect();
    let expected = "an even number of hexadecimal digits";
    if digits.is_empty() || !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(wrong(key, text, expected));
    }
    if digits.len() / 2 > most {
        return Err((
            format!("{} bytes exceed the maximum frame size", digits.len() / 2),
            format!("use at most {most}"),
        ));
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
    Ok(digits.chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect())
}

/// Parses `14+2`: two bytes from byte 14 on.
pub fn vary(text: &str) -> Result<Vary, Wrong> {
    let expected = "an offset and a length with + between them";
    let (offset, len) = text.split_once('+').ok_or_else(|| wrong("vary", text, expected))?;
    let (Some(offset), Some(len)) = (number(offset.trim()), number(len.trim())) else {
        return Err(wrong("vary", text, expected));
    };
    if !(1..=8).contains(&len) || offset > crate::MAX_FRAME as u64 {
        return Err((format!("`{text}` is not one to eight bytes of a frame"), format!("write {}", example("vary"))));
    }
    Ok(Vary { offset: offset as usize, len: len as usize })
}

/// Type of a field's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// A number up to this one.
    Number(u64),
    /// An IPv4 or IPv6 address.
    Address,
    /// An Ethernet address.
    Mac,
}

/// Parses values of a field. Returns whether they are IPv6 addresses.
pub fn choice(kind: FieldType, key: &str, text: &str) -> Result<(Choice, bool), Wrong> {
    match kind {
        FieldType::Number(most) => {
            let (low, high) = range(key, text, 0, most)?;
            Ok((Choice::Range(low.into(), high.into()), false))
        }
        FieldType::Mac => {
            let (low, high) = text.split_once('-').unwrap_or((text, text));
            let mac = |text: &str| text.trim().parse::<Address>().ok();
            let (Some(low), Some(high)) = (mac(low), mac(high)) else {
                return Err(wrong(key, text, "an Ethernet address with colons"));
            };
            let value =
                |Address(bytes): Address| bytes.iter().fold(0u128, |value, byte| value << 8 | u128::from(*byte));
            ordered(low, high, text)?;
            Ok((Choice::Range(value(low), value(high)), false))
        }
        FieldType::Address => address(key, text),
    }
}

fn address(key: &str, text: &str) -> Result<(Choice, bool), Wrong> {
    let value = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(Ipv4Addr::to_bits(address)), 32u32, false),
        IpAddr::V6(address) => (Ipv6Addr::to_bits(address), 128, true),
    };
    let one = |text: &str| {
        let parsed = text.trim().parse::<IpAddr>().ok().map(value);
        parsed.ok_or_else(|| wrong(key, text, "an address, a prefix or two addresses with - between them"))
    };
    if let Some((network, length)) = text.split_once('/') {
        let (value, width, is_v6) = one(network)?;
        let Some(length) = number(length.trim()).filter(|length| *length <= u64::from(width)) else {
            return Err((
                format!("`{length}` is not a valid prefix length"),
                format!("write 0 to {width} after the /"),
            ));
        };
        return Ok((Choice::prefix(value, length as u32, width), is_v6));
    }
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let ((low, _, is_v6), (high, _, other)) = (one(low)?, one(high)?);
    if is_v6 != other {
        return Err((format!("`{text}` mixes IPv4 and IPv6"), "use two IPv4 or two IPv6 addresses".into()));
    }
    ordered(low, high, text)?;
    if high - low >= 1 << 63 {
        return Err((format!("`{text}` has too many addresses"), "write a prefix, such as 2001:db8::/48".into()));
    }
    Ok((Choice::Range(low, high), is_v6))
}
