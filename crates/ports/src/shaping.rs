//! Reads the rate to which an interface's queueing discipline limits what is sent (tc-tbf(8), tc-htb(8)).
//!
//! Ports bypass the queueing discipline, so the rate has no effect on them. A switch that behaves like a device behind
//! a slow link sets the rate as the bandwidth of its port: packets then wait in its queues, where the program sees
//! their depth.

use std::io;

use crate::interface::interface_index;
use crate::namespace::netlink::{attributes, dump};

/// The parent of a root queueing discipline (`TC_H_ROOT`).
const ROOT: u32 = u32::MAX;
/// Size of struct tcmsg in bytes.
const TCMSG: usize = 20;

/// Attributes of disciplines and classes (linux/rtnetlink.h).
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
/// Attributes of tbf (linux/pkt_sched.h).
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
/// Attributes of htb.
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_CEIL64: u16 = 7;
/// Offset of the rate in struct tc_ratespec, and the size of that struct, in bytes.
const RATE: usize = 8;
const RATESPEC: usize = 12;
/// Offset of the number of the default class in struct tc_htb_glob, in bytes.
const DEFAULT_CLASS: usize = 8;

/// A queueing discipline or a class of one.
struct Entry {
    interface: u32,
    handle: u32,
    parent: u32,
    kind: String,
    options: Vec<u8>,
}

/// Returns the rate, in bits per second, to which the root queueing discipline of an interface limits what is sent: the
/// rate of tbf, or the ceiling of htb's default class. Returns `None` if there is no such limit.
///
/// # Errors
/// If there is no such interface, or the kernel does not answer.
pub fn shaped_rate_bps(interface: &str) -> io::Result<Option<u64>> {
    let index = interface_index(interface)?;
    let disciplines = entries(libc::RTM_GETQDISC, index)?;
    let Some(root) = disciplines.into_iter().find(|entry| entry.parent == ROOT) else { return Ok(None) };
    let rate = match root.kind.as_str() {
        "tbf" => tbf_rate(&root.options),
        "htb" => {
            let Some(class) = default_class(&root) else { return Ok(None) };
            let classes = entries(libc::RTM_GETTCLASS, index)?;
            classes.iter().find(|entry| entry.handle == class).and_then(|entry| htb_ceiling(&entry.options))
        }
        _ => None,
    };
    Ok(rate.map(|bytes| bytes.saturating_mul(8)))
}

/// Returns the disciplines or classes of an interface.
fn entries(kind: u16, interface: u32) -> io::Result<Vec<Entry>> {
    let mut body = [0; TCMSG];
    body[4..8].copy_from_slice(&interface.to_ne_bytes());
    let messages = dump(kind, &body)?;
    Ok(messages.iter().filter_map(|body| entry(body)).filter(|entry| entry.interface == interface).collect())
}

fn entry(body: &[u8]) -> Option<Entry> {
    let word = |at: usize| body.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    let mut entry =
        Entry { interface: word(4)?, handle: word(8)?, parent: word(12)?, kind: String::new(), options: Vec::new() };
    for (kind, value) in attributes(body.get(TCMSG..)?) {
        match kind {
            TCA_KIND => entry.kind = String::from_utf8_lossy(value).trim_end_matches('\0').to_owned(),
            TCA_OPTIONS => entry.options = value.to_owned(),
            _ => {}
        }
    }
    Some(entry)
}

/// Returns the handle of the class for packets that no filter classifies.
fn default_class(root: &Entry) -> Option<u32> {
    let init = find(&root.options, TCA_HTB_INIT)?;
    Some(root.handle & 0xffff_0000 | number(init, DEFAULT_CLASS)?)
}

/// Returns the rate of tbf in bytes per second.
fn tbf_rate(options: &[u8]) -> Option<u64> {
    long(options, TCA_TBF_RATE64).or_else(|| number(find(options, TCA_TBF_PARMS)?, RATE).map(u64::from))
}

/// Returns the ceiling of an htb class in bytes per second. The struct has the guaranteed rate first.
fn htb_ceiling(options: &[u8]) -> Option<u64> {
    long(options, TCA_HTB_CEIL64).or_else(|| number(find(options, TCA_HTB_PARMS)?, RATESPEC + RATE).map(u64::from))
}

fn find(options: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(options).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

/// Returns an attribute of 8 bytes; `None` if it is absent or zero.
fn long(options: &[u8], kind: u16) -> Option<u64> {
    let value = find(options, kind)?.try_into().ok().map(u64::from_ne_bytes);
    value.filter(|value| *value > 0)
}

fn number(value: &[u8], at: usize) -> Option<u32> {
    value.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = [&(value.len() as u16 + 4).to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn ratespec(rate: u32) -> Vec<u8> {
        [&[0; RATE][..], &rate.to_ne_bytes()].concat()
    }

    #[test]
    fn an_entry_has_its_interface_kind_and_options() {
        let header = [0, 7, 0x5_0000, ROOT, 0].map(u32::to_ne_bytes).concat();
        let entry = entry(&[header, attribute(TCA_KIND, b"htb\0"), attribute(TCA_OPTIONS, b"abcd")].concat()).unwrap();
        assert_eq!((entry.interface, entry.handle, entry.parent), (7, 0x5_0000, ROOT));
        assert_eq!((entry.kind.as_str(), &entry.options[..]), ("htb", &b"abcd"[..]));
        let globals = [3u32, 10, 0x1, 0, 0].map(u32::to_ne_bytes).concat();
        let entry = Entry { options: attribute(TCA_HTB_INIT, &globals), ..entry };
        assert_eq!(default_class(&entry), Some(0x5_0001));
        assert!(super::entry(&[0; TCMSG - 1]).is_none());
    }

    #[test]
    fn rates_are_those_of_tbf_and_the_ceilings_of_htb() {
        assert_eq!(tbf_rate(&attribute(TCA_TBF_PARMS, &ratespec(62_500))), Some(62_500));
        let parameters = [ratespec(1_000), ratespec(62_500)].concat();
        let class = attribute(TCA_HTB_PARMS, &parameters);
        assert_eq!(htb_ceiling(&class), Some(62_500));
        // Rates of 32 Gbit/s and more do not fit the struct.
        let fast = [class, attribute(TCA_HTB_CEIL64, &5_000_000_000u64.to_ne_bytes())].concat();
        assert_eq!(htb_ceiling(&fast), Some(5_000_000_000));
        assert_eq!((tbf_rate(&[]), htb_ceiling(&attribute(TCA_HTB_PARMS, &[0; 4]))), (None, None));
    }
}
