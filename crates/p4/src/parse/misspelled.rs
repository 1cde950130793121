//! Recognizes misspelled keywords at the beginning of declarations.

use diagnostics::names::nearest;

use super::SourceParser;
use super::cursor::is_reserved;
use crate::lex::{Token, TokenKind};

/// Keywords that begin a declaration at top level, and `table`, which belongs in a control.
pub(super) const TOP_LEVEL: &[&str] = &[
    "action",
    "const",
    "control",
    "enum",
    "error",
    "extern",
    "header",
    "header_union",
    "match_kind",
    "package",
    "parser",
    "struct",
    "table",
    "typedef",
];

/// Keywords that begin an item of a parser.
pub(super) const IN_PARSER: &[&str] = &["const", "state", "value_set"];

/// Keywords that begin an item of a control.
pub(super) const IN_CONTROL: &[&str] = &["action", "apply", "const", "table"];

impl SourceParser<'_> {
    /// Reports the next word if it misspells one of `keywords` (`contrl`), and replaces it by the keyword, so that the
    /// declaration is parsed as it is meant. A word that is declared, or that other tokens follow than the keyword
    /// demands, is left alone.
    pub(super) fn correct_keyword(&mut self, keywords: &[&'static str]) {
        let Some(word) = self.word() else { return };
        if is_reserved(word) || keywords.contains(&word) || self.names.meaning(word, false).is_some() {
            return;
        }
        let fitting = keywords.iter().copied().filter(|keyword| self.continues(keyword));
        let Some(meant) = nearest(word, fitting) else { return };
        let (message, span) = (format!("expected a declaration, found `{word}`"), self.span());
        self.mistaken("unexpected-token", span, &message, &format!("did you mean `{meant}`?"));
        self.half = Some(Token { kind: TokenKind::Ident(meant.into()), span });
    }

    /// Whether the tokens after the next one are those that follow `keyword` in a declaration. None of these forms is
    /// valid after the name of a type that is not declared.
    fn continues(&self, keyword: &str) -> bool {
        let named = |sign: &str| self.nth_is_name(1) && self.nth_is(2, sign);
        match keyword {
            "action" | "control" | "package" | "parser" => named("("),
            "header" | "header_union" | "struct" | "state" | "table" => named("{"),
            "enum" => named("{") || self.nth_word(1) == Some("bit"),
            "apply" | "error" | "match_kind" => self.nth_is(1, "{"),
            "value_set" => self.nth_is(1, "<"),
            "const" | "extern" | "typedef" => {
                let is_type = |word| matches!(word, "bit" | "bool" | "int" | "varbit" | "void");
                self.nth_word(1).is_some_and(is_type) || self.nth_is_name(1) && self.nth_is_name(2)
            }
            _ => false,
        }
    }
}
