//! Defines access policies: the addresses that each application may read or write (paper, section 4.1).
//!
//! ```text
//! # application   operation   addresses
//! 7               read        all
//! 7               write       Link:AppSpecific_0 .. Link:AppSpecific_3
//! ```

use diagnostics::{Diagnostic, Diagnostics, SourceMap, Span};

use crate::map::{MemoryMap, parse_number};
use crate::tcpu::{AccessRights, AddressSet};

/// An operation on switch memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessOperation {
    /// Reads it.
    Read,
    /// Writes it.
    Write,
}

/// A rule: permits an operation of an application on these addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyRule {
    /// The application.
    pub application: u64,
    /// The operation.
    pub operation: AccessOperation,
    /// First and last address, with their high halves.
    pub addresses: (u32, u32),
}

/// The rules of a network. Any other access is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessPolicy {
    /// The rules.
    pub rules: Vec<PolicyRule>,
}

impl AccessPolicy {
    /// Parses a policy. Lines with mistakes are reported and left out.
    pub fn parse(
        sources: &mut SourceMap,
        name: &str,
        text: &str,
        map: &MemoryMap,
        diagnostics: &mut Diagnostics,
    ) -> AccessPolicy {
        let file = sources.add(name, text);
        let mut policy = AccessPolicy::default();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let code = line.split('#').next().unwrap_or_default();
            let from = start + code.len() - code.trim_start().len();
            let span = Span::new(file, from as u32, (from + code.trim().len()) as u32);
            start += line.len();
            if code.trim().is_empty() {
                continue;
            }
            match rule(code.trim(), map) {
                Ok(rule) => policy.rules.push(rule),
                Err(message) => {
                    let help = "write `APPLICATION read|write ADDRESS`, `… FIRST .. LAST` or `… all`";
                    diagnostics.push(Diagnostic::error("invalid-rule", span, message).help(help));
                }
            }
        }
        policy
    }

    /// Returns the rights of an application.
    pub fn rights(&self, application: u64, writes_enabled: bool) -> AccessRights {
        let of = |operation| {
            let rules = self.rules.iter().filter(|rule| (rule.application, rule.operation) == (application, operation));
            AddressSet::of(rules.map(|rule| rule.addresses))
        };
        AccessRights { writes_enabled, reads: of(AccessOperation::Read), writes: of(AccessOperation::Write) }
    }
}

fn rule(text: &str, map: &MemoryMap) -> Result<PolicyRule, String> {
    let (application, rest) = text.split_once(char::is_whitespace).ok_or("the operation is missing")?;
    let application = application.parse().map_err(|_| format!("`{application}` is no number of an application"))?;
    let (operation, rest) =
        rest.trim().split_once(char::is_whitespace).ok_or_else(|| "the addresses are missing".to_owned())?;
    let operation = match operation {
        "read" => AccessOperation::Read,
        "write" => AccessOperation::Write,
        other => return Err(format!("`{other}` is neither `read` nor `write`")),
    };
    let address = |name: &str| match parse_number(name) {
        Some(address) => Ok(address),
        None => map.find(name).map(|entry| entry.address).map_err(|error| error.to_string()),
    };
    let addresses = match rest.trim().split_once("..") {
        _ if rest.trim() == "all" => (0, u32::MAX),
        Some((first, last)) => (address(first.trim())?, address(last.trim())? | 1),
        None => (address(rest.trim())?, address(rest.trim())? | 1),
    };
    if addresses.0 > addresses.1 {
        return Err("the first address is above the last".to_owned());
    }
    Ok(PolicyRule { application, operation, addresses })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_become_rights() {
        let text = "# RCP\n7 read all\n7 write Link:AppSpecific_0 .. Link:AppSpecific_3\n8 read 0xb000\n";
        let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let policy = AccessPolicy::parse(&mut sources, "p", text, &MemoryMap::new(), &mut diagnostics);
        assert!(diagnostics.is_empty(), "{}", diagnostics.render(&sources, false));
        let rights = policy.rights(7, true);
        assert_eq!((rights.reads, rights.writes.ranges()), (AddressSet::all(), &[(0x3800, 0x3807)][..]));
        assert_eq!(policy.rights(8, true).reads.ranges(), [(0xb000, 0xb001)]);
        assert_eq!(policy.rights(9, true).reads, AddressSet::none());
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        let text = "7 read\nx read all\n7 erase all\n7 read Link:Nothing\n7 read 9 .. 2\n";
        let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let policy = AccessPolicy::parse(&mut sources, "p", text, &MemoryMap::new(), &mut diagnostics);
        assert_eq!((policy, diagnostics.error_count()), (AccessPolicy::default(), 5));
        assert!(diagnostics.render(&sources, false).contains("`Link` has no statistic `Nothing`"));
    }
}
