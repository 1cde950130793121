//! Formats a part of a restriction on one line, for messages.

use crate::lex;

/// Maximum length of the formatted text in characters.
const MAX_SHOWN: usize = 300;

/// Formats `text` without comments, with white space collapsed to single spaces, truncated if too long.
pub(crate) fn on_one_line(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.trim();
    while let Some(next) = rest.chars().next() {
        let blank = lex::blank(rest).unwrap_or(rest.len());
        if blank > 0 {
            out.push(' ');
            rest = &rest[blank..];
        } else {
            out.push(next);
            rest = &rest[next.len_utf8()..];
        }
        if out.chars().count() >= MAX_SHOWN {
            return out.trim_end().to_owned() + " …";
        }
    }
    out.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_lines_go() {
        assert_eq!(on_one_line(" a == 1 // one\n  && /* two */ b"), "a == 1 && b");
        assert!(on_one_line(&"a && ".repeat(1000)).ends_with(" …"));
    }
}
