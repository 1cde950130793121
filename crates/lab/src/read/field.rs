//! Forms of names and values that the readers share, such as ends and networks.

use std::net::Ipv4Addr;

/// Returns the problem with a name of a host or switch, if there is one. Namespaces and files are named after it.
pub fn wrong_name(name: &str) -> Option<&'static str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() {
        Some("is empty")
    } else if name.len() > 32 {
        Some("is longer than 32 characters")
    } else if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        Some("does not begin with a letter")
    } else if !name.chars().all(fits) {
        Some("has characters besides letters, digits, `_`, `-` and `.`")
    } else {
        None
    }
}

/// Parses an address with the prefix length of its network: `10.0.1.1/24`.
pub fn network(text: &str) -> Option<(Ipv4Addr, u8)> {
    let (address, bits) = text.split_once('/')?;
    let bits: u8 = bits.parse().ok().filter(|bits| *bits <= 32)?;
    Some((address.parse().ok()?, bits))
}

/// Splits a name and a port: `s1:2`, or `h1` alone.
pub fn end(text: &str) -> (&str, Option<&str>) {
    match text.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (text, None),
    }
}
