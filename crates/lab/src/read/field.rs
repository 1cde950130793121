//! Parses syntax that topology and scenario files share: names, endpoints, addresses.

use std::net::Ipv4Addr;

/// Returns the problem with the name of a host or switch, if there is one. The rules are strict since namespaces and
/// files are named after the host or switch.
pub fn name_problem(name: &str) -> Option<&'static str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() {
        Some("is empty")
    } else if name.len() > 32 {
        Some("is longer than 32 characters")
    } else if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        Some("does not begin with a letter")
    } else if !name.chars().all(fits) {
        Some("has characters other than letters, digits, `_`, `-` and `.`")
    } else {
        None
    }
}

/// Parses an IPv4 address in CIDR notation: `10.0.1.1/24`.
pub fn cidr(text: &str) -> Option<(Ipv4Addr, u8)> {
    let (address, bits) = text.split_once('/')?;
    let bits: u8 = bits.parse().ok().filter(|bits| *bits <= 32)?;
    Some((address.parse().ok()?, bits))
}

/// Splits an endpoint into node and optional port: `s1:2`, `h1`.
pub fn endpoint(text: &str) -> (&str, Option<&str>) {
    match text.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (text, None),
    }
}
