//! Reads an authorization file.
//!
//! ```toml
//! [[user]]
//! name = "routing.example"             # in the certificate; `*` stands for any characters
//! roles = ["", "routing"]              # P4Runtime roles; "" is the default role
//! read = ["*"]                         # objects of P4Info, "multicast", "clone"
//! write = ["MyIngress.ipv4_*"]
//! pipeline = true                      # set the pipeline, read its program
//! packets = true                       # packets to and from the controller
//! rules = { ports = [1, "4-7"], actions = ["to_controller"], remove = "own", list = "all" }
//! ```

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use diagnostics::{Diagnostic, Diagnostics, FileId, Span, names};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::name_pattern::NamePattern;
use crate::rule_rights::{RuleRights, RuleScope};
use crate::{ObjectPattern, Policy, UserEntry};

/// Maximum size of an authorization file, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// The code of diagnostics.
const CODE: &str = "authorization";
const USER_KEYS: [&str; 7] = ["name", "roles", "read", "write", "pipeline", "packets", "rules"];
const RULE_KEYS: [&str; 4] = ["ports", "actions", "remove", "list"];
/// Words of [`RuleScope`] in a file.
const SCOPES: [(&str, RuleScope); 3] = [("none", RuleScope::None), ("own", RuleScope::Own), ("all", RuleScope::All)];

impl Policy {
    /// Parses the text of an authorization file. Every mistake becomes a diagnostic; returns `None` if there are any.
    pub fn parse(file: FileId, text: &str, diagnostics: &mut Diagnostics) -> Option<Policy> {
        let errors_before = diagnostics.error_count();
        let (document, errors) = DeTable::parse_recoverable(text);
        let mut reader = PolicyReader { file, diagnostics };
        for error in &errors {
            let message = error.message().trim_end_matches('.').to_owned();
            let span = reader.span(error.span().unwrap_or(0..0));
            reader.diagnostics.push(Diagnostic::error("toml-syntax", span, message));
        }
        let entries = if errors.is_empty() { reader.users(document.get_ref()) } else { Vec::new() };
        (diagnostics.error_count() == errors_before).then_some(Policy { entries })
    }
}

struct PolicyReader<'d> {
    file: FileId,
    diagnostics: &'d mut Diagnostics,
}

/// A value and its location.
type PlacedValue<'a> = (&'a DeValue<'a>, Span);

impl PolicyReader<'_> {
    fn span(&self, range: Range<usize>) -> Span {
        Span::new(self.file, range.start as u32, range.end as u32)
    }

    fn wrong(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error(CODE, span, message).help(help));
    }

    fn get<'a>(&self, table: &'a DeTable<'a>, key: &str) -> Option<PlacedValue<'a>> {
        let value = table.get(key)?;
        Some((value.get_ref(), self.span(value.span())))
    }

    /// Reports the unknown keys of a table.
    fn known(&mut self, table: &DeTable<'_>, what: &str, keys: &[&str]) {
        for (key, _) in table.iter() {
            let name: &str = key.get_ref();
            if !keys.contains(&name) {
                let help = match names::nearest(name, keys.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the keys are {}", keys.join(", ")),
                };
                self.wrong(self.span(key.span()), format!("{what} has no `{name}`"), help);
            }
        }
    }

    fn users(&mut self, top: &DeTable<'_>) -> Vec<Arc<UserEntry>> {
        self.known(top, "an authorization file", &["user"]);
        let Some((value, span)) = self.get(top, "user") else {
            if top.is_empty() {
                self.wrong(
                    Span::new(self.file, 0, 0),
                    "the file has no users, so every client would be denied",
                    "write [[user]] and below it `name = \"...\"`, the name in the client's certificate",
                );
            }
            return Vec::new();
        };
        let Some(list) = value.as_array() else {
            self.wrong(span, "`user` must be a list of tables", "write [[user]] before each user");
            return Vec::new();
        };
        let mut entries: Vec<(Arc<UserEntry>, Span)> = Vec::new();
        for user in list.iter() {
            let span = self.span(user.span());
            let Some(table) = user.get_ref().as_table() else {
                self.wrong(span, "a user must be a table", "write [[user]] and the keys below");
                continue;
            };
            let Some((entry, name_span)) = self.user(table, span) else { continue };
            self.check_is_reached(&entry, name_span, &entries);
            entries.push((Arc::new(entry), name_span));
        }
        entries.into_iter().map(|(entry, _)| entry).collect()
    }

    /// Reports an entry that an earlier one hides.
    fn check_is_reached(&mut self, entry: &UserEntry, span: Span, earlier: &[(Arc<UserEntry>, Span)]) {
        let name = entry.name.text();
        let hides = |it: &&(Arc<UserEntry>, Span)| {
            it.0.name == entry.name || (entry.name.is_literal() && it.0.name.matches(name))
        };
        let Some((hiding, place)) = earlier.iter().find(hides) else { return };
        let (message, help) = if hiding.name == entry.name {
            (format!("user `{name}` has two entries"), "unite them in one")
        } else {
            let pattern = hiding.name.text();
            (
                format!("this entry is never used, since `{pattern}` above matches `{name}` as well"),
                "the first entry that matches applies: put exact names before patterns",
            )
        };
        let finding = Diagnostic::error(CODE, span, message).also(*place, "the first entry");
        self.diagnostics.push(finding.help(help));
    }

    fn user(&mut self, table: &DeTable<'_>, span: Span) -> Option<(UserEntry, Span)> {
        self.known(table, "a user", &USER_KEYS);
        let [read, write] = ["read", "write"].map(|key| self.patterns(table, key));
        let roles = self.plain_patterns(table, "roles");
        let [pipeline, packets] = ["pipeline", "packets"].map(|key| self.flag(table, key));
        let rules = self.rules(table);
        let writing = [("write", !write.is_empty()), ("pipeline", pipeline), ("packets", packets)];
        if let Some((key, _)) = writing.iter().find(|(_, is_set)| *is_set)
            && roles.is_empty()
            && table.get("roles").is_none()
        {
            let span = table.get_key_value(*key).map_or(span, |(key, _)| self.span(key.span()));
            self.wrong(
                span,
                format!("`{key}` has no effect without a role, since only a role's primary may do this"),
                "add `roles = [\"\"]` for the default role, or list the names of the user's roles",
            );
        }
        let Some((value, name_span)) = self.get(table, "name") else {
            self.wrong(span, "this user has no name", "add `name = \"...\"`, the name in the client's certificate");
            return None;
        };
        let Some(name) = value.as_str().filter(|name| !name.is_empty()) else {
            self.wrong(name_span, "`name` must be a text that is not empty", "write `name = \"alice@example.com\"`");
            return None;
        };
        let name = NamePattern::new(name);
        Some((UserEntry { name, read, write, roles, pipeline, packets, rules }, name_span))
    }

    /// Reads a list of names without their places.
    fn plain_patterns(&mut self, table: &DeTable<'_>, key: &str) -> Vec<NamePattern> {
        self.patterns(table, key).into_iter().map(|it| it.pattern).collect()
    }

    fn patterns(&mut self, table: &DeTable<'_>, key: &str) -> Vec<ObjectPattern> {
        let Some((value, span)) = self.get(table, key) else { return Vec::new() };
        let Some(list) = value.as_array() else {
            self.wrong(span, format!("`{key}` must be a list of names"), format!("write `{key} = [\"...\"]`"));
            return Vec::new();
        };
        let mut patterns = Vec::new();
        for item in list.iter() {
            match item.get_ref().as_str() {
                Some(text) => {
                    patterns.push(ObjectPattern { pattern: NamePattern::new(text), span: self.span(item.span()) });
                }
                None => self.wrong(
                    self.span(item.span()),
                    format!("`{key}` lists names, and this is none"),
                    "put the name in quotes; `*` stands for any characters",
                ),
            }
        }
        patterns
    }

    fn flag(&mut self, table: &DeTable<'_>, key: &str) -> bool {
        let Some((value, span)) = self.get(table, key) else { return false };
        value.as_bool().unwrap_or_else(|| {
            self.wrong(span, format!("`{key}` must be true or false"), format!("write `{key} = true`"));
            false
        })
    }

    fn rules(&mut self, table: &DeTable<'_>) -> Option<RuleRights> {
        let (value, span) = self.get(table, "rules")?;
        let Some(table) = value.as_table() else {
            self.wrong(span, "`rules` must be a table", "write `rules = { ports = [1, 2] }`");
            return None;
        };
        self.known(table, "`rules`", &RULE_KEYS);
        Some(RuleRights {
            ports: self.ports(table),
            actions: self.plain_patterns(table, "actions"),
            remove: self.scope(table, "remove"),
            list: self.scope(table, "list"),
        })
    }

    fn scope(&mut self, table: &DeTable<'_>, key: &str) -> RuleScope {
        let Some((value, span)) = self.get(table, key) else { return RuleScope::default() };
        let found = SCOPES.iter().find(|(word, _)| value.as_str() == Some(word));
        match found {
            Some((_, scope)) => *scope,
            None => {
                let help = "\"own\" are the rules that the user added";
                self.wrong(span, format!("`{key}` must be \"none\", \"own\" or \"all\""), help);
                RuleScope::default()
            }
        }
    }

    fn ports(&mut self, table: &DeTable<'_>) -> Vec<RangeInclusive<u32>> {
        let Some((value, span)) = self.get(table, "ports") else { return Vec::new() };
        let help = "write numbers, ranges or \"*\" for all: `ports = [1, \"4-7\"]`";
        let Some(list) = value.as_array() else {
            self.wrong(span, "`ports` must be a list", help);
            return Vec::new();
        };
        let mut ports = Vec::new();
        for item in list.iter() {
            match port_range(item) {
                Some(range) => ports.push(range),
                None => self.wrong(self.span(item.span()), "this is no port number and no range of them", help),
            }
        }
        ports
    }
}

/// Parses `7`, `"7"`, `"4-7"` or `"*"`.
fn port_range(item: &Spanned<DeValue<'_>>) -> Option<RangeInclusive<u32>> {
    if let Some(number) = item.get_ref().as_integer() {
        let port = u32::from_str_radix(number.as_str(), number.radix()).ok()?;
        return Some(port..=port);
    }
    let text = item.get_ref().as_str()?;
    if text == "*" {
        return Some(0..=u32::MAX);
    }
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    let (low, high) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
    (low <= high).then_some(low..=high)
}
