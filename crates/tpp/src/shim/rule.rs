//! Parses the rules of a shim: a program, and the packets that carry it.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use wire::ipv4;

use super::filter::{AddressPrefix, PacketFilter};

/// A rule: `FILE [from PREFIX] [to PREFIX] [tcp|udp|icmp|protocol N] [source-port N] [port N] [one-in N] [priority N]`.
///
/// ```
/// use tpp::shim::InsertionRule;
/// let rule: InsertionRule = "burst.tpp to 10.0.2.0/24 tcp port 5201 one-in 10".parse().unwrap();
/// assert_eq!((rule.file.as_str(), rule.filter.destination_port, rule.one_in), ("burst.tpp", Some(5201), 10));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsertionRule {
    /// File of the program.
    pub file: String,
    /// The packets. Without conditions, these are all IP packets.
    pub filter: PacketFilter,
    /// One of this number of packets gets the program.
    pub one_in: u32,
    /// Rules with higher priorities come first.
    pub priority: u32,
}

/// A rule that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleMistake {
    /// There is no file.
    NoFile,
    /// A word is none of the conditions.
    Word(String),
    /// A condition has no value or an invalid one: condition, value and what is expected.
    Value(String, String, &'static str),
    /// A condition is given twice.
    Twice(String),
}

impl std::error::Error for RuleMistake {}

impl fmt::Display for RuleMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleMistake::NoFile => f.write_str("the file of a program is missing: write `FILE [to PREFIX] [tcp] …`"),
            RuleMistake::Word(word) => write!(
                f,
                "`{word}` is no condition: expected from, to, tcp, udp, icmp, protocol, source-port, port, one-in or \
                 priority"
            ),
            RuleMistake::Value(name, value, expected) if value.is_empty() => {
                write!(f, "`{name}` has no value: expected {expected}")
            }
            RuleMistake::Value(name, value, expected) => {
                write!(f, "`{value}` is no value of `{name}`: expected {expected}")
            }
            RuleMistake::Twice(name) => write!(f, "`{name}` is given twice"),
        }
    }
}

impl FromStr for InsertionRule {
    type Err = RuleMistake;

    fn from_str(text: &str) -> Result<InsertionRule, RuleMistake> {
        let mut words = text.split_whitespace();
        let file = words.next().ok_or(RuleMistake::NoFile)?.to_owned();
        let (mut filter, mut one_in, mut priority) = (PacketFilter::default(), None, None);
        while let Some(word) = words.next() {
            match word {
                "from" => set(&mut filter.source, word, words.next(), "an address or a prefix", prefix)?,
                "to" => set(&mut filter.destination, word, words.next(), "an address or a prefix", prefix)?,
                "tcp" => set(&mut filter.protocol, "protocol", Some(""), "", |_| Some(ipv4::TCP))?,
                "udp" => set(&mut filter.protocol, "protocol", Some(""), "", |_| Some(ipv4::UDP))?,
                "icmp" => set(&mut filter.protocol, "protocol", Some(""), "", |_| Some(ipv4::ICMP))?,
                "protocol" => set(&mut filter.protocol, word, words.next(), "a number from 0 to 255", number)?,
                "source-port" => set(&mut filter.source_port, word, words.next(), "a port", number)?,
                "port" => set(&mut filter.destination_port, word, words.next(), "a port", number)?,
                "one-in" => {
                    let positive = |text: &str| number(text).filter(|number| *number > 0);
                    set(&mut one_in, word, words.next(), "a number from 1 on", positive)?;
                }
                "priority" => set(&mut priority, word, words.next(), "a number", number)?,
                _ => return Err(RuleMistake::Word(word.to_owned())),
            }
        }
        Ok(InsertionRule { file, filter, one_in: one_in.unwrap_or(1), priority: priority.unwrap_or(0) })
    }
}

/// Sets a condition that has no value yet.
fn set<T>(
    to: &mut Option<T>,
    name: &str,
    value: Option<&str>,
    expected: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<(), RuleMistake> {
    if to.is_some() {
        return Err(RuleMistake::Twice(name.to_owned()));
    }
    let value = value.unwrap_or_default();
    *to = Some(parse(value).ok_or_else(|| RuleMistake::Value(name.to_owned(), value.to_owned(), expected))?);
    Ok(())
}

fn number<T: FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn prefix(text: &str) -> Option<AddressPrefix> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address: IpAddr = address.parse().ok()?;
    let width = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Some(width), |bits| number(bits).filter(|bits| *bits <= width))?;
    Some(AddressPrefix::new(address, bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_is_understood() {
        let text = "a.tpp from 10.0.0.0/8 to 2001:db8::1 protocol 132 source-port 7 port 9 one-in 3 priority 2";
        let rule: InsertionRule = text.parse().unwrap();
        let PacketFilter { source, destination, protocol, source_port, destination_port } = rule.filter;
        assert_eq!(source, Some(AddressPrefix::new("10.0.0.0".parse().unwrap(), 8)));
        assert_eq!(destination, Some(AddressPrefix::new("2001:db8::1".parse().unwrap(), 128)));
        assert_eq!((protocol, source_port, destination_port), (Some(132), Some(7), Some(9)));
        assert_eq!((rule.file.as_str(), rule.one_in, rule.priority), ("a.tpp", 3, 2));
        let plain: InsertionRule = " a.tpp ".parse().unwrap();
        assert_eq!((plain.filter, plain.one_in, plain.priority), (PacketFilter::default(), 1, 0));
        for (word, protocol) in [("tcp", 6), ("udp", 17), ("icmp", 1)] {
            let rule: InsertionRule = format!("a.tpp {word}").parse().unwrap();
            assert_eq!(rule.filter.protocol, Some(protocol));
        }
    }

    #[test]
    fn mistakes_are_answered_with_what_to_write() {
        for (text, expected) in [
            ("  ", "the file of a program is missing"),
            ("a.tpp tcp dport 80", "`dport` is no condition: expected from, to, tcp"),
            ("a.tpp port", "`port` has no value: expected a port"),
            ("a.tpp port 65536", "`65536` is no value of `port`"),
            ("a.tpp port +80", "`+80` is no value of `port`"),
            ("a.tpp to 10.0.0.0/33", "`10.0.0.0/33` is no value of `to`: expected an address or a prefix"),
            ("a.tpp to host", "`host` is no value of `to`"),
            ("a.tpp one-in 0", "expected a number from 1 on"),
            ("a.tpp tcp udp", "`protocol` is given twice"),
        ] {
            let found = text.parse::<InsertionRule>().unwrap_err().to_string();
            assert!(found.contains(expected), "{text}: {found}");
        }
    }
}
