//! Decides what a user may do: an authorization file says so, and the client's certificate says who the user is.
//!
//! ```text
//!   authorization file ── Policy::parse ──> Policy ─┐
//!   client certificate ── certificate_names ────────┴─ Policy::user ──> User ──> may_read, may_write, may_hold, ...
//! ```
//!
//! Denial is the default: a client whose certificate has no listed name has no right, and a user has the rights that
//! its entry lists and no others. The crate knows neither gRPC nor a switch: objects and roles are names, and callers
//! turn a denial into an answer.

#![forbid(unsafe_code)]

mod certificate;
mod file;
mod name_pattern;
mod rule_rights;

use std::sync::Arc;

use diagnostics::{Diagnostic, Diagnostics, Span, names};
use name_pattern::NamePattern;

pub use certificate::{CertificateName, certificate_names};
pub use file::MAX_BYTES;
pub use rule_rights::{RuleRights, RuleScope};

/// The name under which multicast groups appear among the objects.
pub const MULTICAST: &str = "multicast";
/// The name under which clone sessions appear among the objects.
pub const CLONE: &str = "clone";

/// The users of an authorization file, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    entries: Vec<Arc<UserEntry>>,
}

/// An entry of the file. Patterns match names of P4Info objects and of roles; `*` stands for any characters.
#[derive(Clone, Debug, PartialEq, Eq)]
struct UserEntry {
    name: NamePattern,
    read: Vec<ObjectPattern>,
    write: Vec<ObjectPattern>,
    roles: Vec<NamePattern>,
    pipeline: bool,
    packets: bool,
    rules: Option<RuleRights>,
}

/// A pattern of names of objects, and its place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ObjectPattern {
    pattern: NamePattern,
    span: Span,
}

/// A user with its rights. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: Arc<str>,
    entry: Arc<UserEntry>,
}

impl Policy {
    /// Returns the user of a client with these names: the first of the names for which there is an entry, with the
    /// rights of the first entry that matches it.
    ///
    /// # Errors
    /// [`UnknownUser`] if no name has an entry.
    pub fn user(&self, names: &[CertificateName]) -> Result<User, UnknownUser> {
        let entry_of = |CertificateName { text, is_dns }: &CertificateName| {
            let matches = |pattern: &NamePattern| match is_dns {
                true => pattern.matches_lower_case(text),
                false => pattern.matches(text),
            };
            self.entries.iter().find(|entry| matches(&entry.name))
        };
        let found = names.iter().find_map(|name| Some((name, entry_of(name)?)));
        let (name, entry) = found.ok_or_else(|| UnknownUser { names: names.to_vec() })?;
        Ok(User { name: name.text.as_str().into(), entry: entry.clone() })
    }

    /// Warns of every pattern in `read` and `write` that matches no object of a program, with the nearest name.
    /// `objects` are the names in its P4Info. A pattern may be meant for another program that a controller loads later.
    pub fn check_objects(&self, objects: &[&str], diagnostics: &mut Diagnostics) {
        let all: Vec<&str> = objects.iter().copied().chain([MULTICAST, CLONE]).collect();
        for ObjectPattern { pattern, span } in self.entries.iter().flat_map(|it| it.read.iter().chain(&it.write)) {
            if all.iter().any(|name| pattern.matches(name)) {
                continue;
            }
            let message = format!("`{}` matches no object of the program", pattern.text());
            let help = match nearest(pattern, &all) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!("the program has {}", names::listed(all.iter().copied())),
            };
            diagnostics.push(Diagnostic::warning("authorization", *span, message).help(help));
        }
    }
}

/// A client that no entry describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownUser {
    names: Vec<CertificateName>,
}

impl std::fmt::Display for UnknownUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        /// Maximum number of names in the message. A certificate may have thousands.
        const SHOWN: usize = 4;
        if self.names.is_empty() {
            return f.write_str(
                "the client certificate has no name: neither a subject alternative name (DNS, URI, email) nor a common \
                 name",
            );
        }
        let shown: Vec<_> = self.names.iter().take(SHOWN).map(|name| format!("`{}`", shorten(&name.text))).collect();
        let more = if self.names.len() > SHOWN { ", ..." } else { "" };
        write!(f, "the authorization file has no user {}{more}", shown.join(" or "))
    }
}

impl std::error::Error for UnknownUser {}

/// Cuts a name for a message. The names in a certificate may be as long as the certificate.
fn shorten(name: &str) -> &str {
    &name[..name.floor_char_boundary(256)]
}

/// Returns the object that a pattern may mean, or the pattern of all objects in a block.
fn nearest(pattern: &NamePattern, objects: &[&str]) -> Option<String> {
    // The pattern of another block: `MyIngress.ipv4_*` where the program has `RouterIngress.ipv4_lpm`.
    let last = NamePattern::new(pattern.text().rsplit('.').next().unwrap_or_default());
    if let Some((block, _)) = objects
        .iter()
        .filter_map(|name| name.rsplit_once('.'))
        .find(|(_, name)| pattern.text().contains('.') && last.text() != "*" && last.matches(name))
    {
        return Some(format!("{block}.{}", last.text()));
    }
    let blocks = objects.iter().flat_map(|name| name.match_indices('.').map(|(at, _)| format!("{}*", &name[..=at])));
    let blocks: Vec<String> = if pattern.is_literal() { Vec::new() } else { blocks.collect() };
    let candidates = objects.iter().copied().chain(blocks.iter().map(String::as_str));
    names::nearest(pattern.text(), candidates).map(str::to_owned)
}

fn any(patterns: &[ObjectPattern], name: &str) -> bool {
    patterns.iter().any(|it| it.pattern.matches(name))
}

impl User {
    /// Returns the name in the certificate.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Whether the user may read the object with this name: that of P4Info, [`MULTICAST`] or [`CLONE`].
    pub fn may_read(&self, object: &str) -> bool {
        any(&self.entry.read, object)
    }

    /// Whether the user may write the object with this name.
    pub fn may_write(&self, object: &str) -> bool {
        any(&self.entry.write, object)
    }

    /// Whether the user may write objects of any name.
    pub fn may_write_all(&self) -> bool {
        self.entry.write.iter().any(|it| it.pattern.text() == "*")
    }

    /// Whether there is any object that the user may write, and any role in which it may do so.
    pub fn may_write_any(&self) -> bool {
        !self.entry.write.is_empty() && !self.entry.roles.is_empty()
    }

    /// Whether the user may hold this role; the empty name is the default role.
    pub fn may_hold(&self, role: &str) -> bool {
        self.entry.roles.iter().any(|pattern| pattern.matches(role))
    }

    /// Whether the user may set the pipeline, and read the program in it.
    pub fn may_set_pipeline(&self) -> bool {
        self.entry.pipeline
    }

    /// Whether the user may send and receive packets.
    pub fn has_packets(&self) -> bool {
        self.entry.packets
    }

    /// Whether the user has any right at a P4Runtime server.
    pub fn has_switch_rights(&self) -> bool {
        let UserEntry { read, write, roles, pipeline, packets, .. } = &*self.entry;
        *pipeline || *packets || !read.is_empty() || !write.is_empty() || !roles.is_empty()
    }

    /// Returns the rights to change rules of packet subscriptions; `None` for none at all.
    pub fn rules(&self) -> Option<&RuleRights> {
        self.entry.rules.as_ref()
    }

    /// Returns the sentence for a denied action, such as "write table `t`".
    pub fn denial(&self, action: &str) -> String {
        format!("user `{}` may not {action}", shorten(&self.name))
    }
}

#[cfg(test)]
mod tests;
