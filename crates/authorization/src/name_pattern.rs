//! Matches names against patterns in which `*` stands for any characters.

/// A name, or a pattern of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamePattern(String);

impl NamePattern {
    pub(crate) fn new(text: &str) -> NamePattern {
        NamePattern(text.to_owned())
    }

    /// Whether the pattern has no `*`.
    pub(crate) fn is_literal(&self) -> bool {
        !self.0.contains('*')
    }

    /// Returns the text of the pattern.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Whether a name in lower case matches if the case of letters does not count.
    pub(crate) fn matches_lower_case(&self, name: &str) -> bool {
        NamePattern(self.0.to_ascii_lowercase()).matches(name)
    }

    /// Whether a name matches as a whole. The time is proportional to the product of the lengths.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let mut parts = self.0.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(first) else { return false };
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        // The earliest place of each part leaves the most for the later ones.
        for part in parts {
            let Some((_, after)) = rest.split_once(part) else { return false };
            rest = after;
        }
        rest.ends_with(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        let matches = |pattern: &str, name: &str| NamePattern::new(pattern).matches(name);
        for (pattern, yes, no) in [
            ("a.b", &["a.b"][..], &["a.bc", "xa.b", "", "a"][..]),
            ("*", &["", "a", "a.b"], &[]),
            ("", &[""], &["a"]),
            ("MyIngress.*", &["MyIngress.", "MyIngress.acl"], &["MyIngress", "MyEgress.acl"]),
            ("*.acl", &["MyIngress.acl", ".acl"], &["acl", "MyIngress.acl2"]),
            ("a*b*c", &["abc", "axbxc", "abbcc", "a*b*c"], &["ac", "abcd", "acb"]),
            ("ab*ba", &["abba", "abxba"], &["aba", "ab"]),
            ("a**b", &["ab", "axb"], &["a"]),
        ] {
            yes.iter().for_each(|name| assert!(matches(pattern, name), "`{pattern}` does not match `{name}`"));
            no.iter().for_each(|name| assert!(!matches(pattern, name), "`{pattern}` matches `{name}`"));
        }
    }
}
