//! Parses types, and distinguishes them from expressions.

use super::names::Meaning;
use super::{ParseResult, SourceParser};
use crate::ast::{Expr, Ident, TypeRef, TypeRefKind};
use crate::lex::TokenKind;

/// Maximum number of tokens examined to distinguish a type from an expression.
const MAX_SCAN: usize = 500;
/// Maximum number of tokens examined to find a closing parenthesis.
const MAX_PARENS: usize = 1 << 16;
/// Maximum nesting depth of type arguments in that examination.
const MAX_SCAN_DEPTH: usize = 40;

/// A position between tokens, or within `>>`: a token and the number of its characters already passed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct TokenPosition {
    token: usize,
    passed: usize,
}

impl TokenPosition {
    /// Returns the position after the token at `spot`.
    pub(super) fn behind(spot: TokenPosition) -> TokenPosition {
        TokenPosition { token: spot.token + 1, passed: 0 }
    }
}

impl SourceParser<'_> {
    /// Whether the next token can only begin a type: a keyword, or the name of a known type.
    pub(super) fn begins_type(&self) -> bool {
        self.type_begins_at(0)
    }

    pub(super) fn type_begins_at(&self, n: usize) -> bool {
        if self.nth_is(n, ".") {
            return self.nth_word(n + 1).is_some_and(|word| self.names.meaning(word, true) == Some(Meaning::Type));
        }
        let Some(word) = self.nth_word(n) else { return false };
        match word {
            "bit" | "int" | "varbit" | "bool" | "string" | "tuple" | "void" | "match_kind" => true,
            "error" => !self.nth_is(n + 1, "."),
            "list" => self.nth_is(n + 1, "<"),
            _ => self.names.meaning(word, false) == Some(Meaning::Type),
        }
    }

    /// Parses a type, including array sizes.
    pub(super) fn ty(&mut self) -> ParseResult<TypeRef> {
        let start = self.span();
        let mut ty = self.plain_type()?;
        while self.is("[") {
            let element = self.height;
            let size = self.array_size()?;
            self.grow(element.max(self.height))?;
            ty = TypeRef { kind: TypeRefKind::Stack(Box::new(ty), Box::new(size)), span: self.since(start) };
        }
        Ok(ty)
    }

    /// Parses `[size]`.
    pub(super) fn array_size(&mut self) -> ParseResult<Expr> {
        let open = self.span();
        self.bump();
        let size = self.with_angle(false, Self::expr)?;
        self.expect_close("]", open, "after the size of the array");
        Ok(size)
    }

    /// Parses a type without trailing `[size]`.
    pub(super) fn plain_type(&mut self) -> ParseResult<TypeRef> {
        let span = self.span();
        if self.eat(".") {
            return self.named_type(true);
        }
        let TokenKind::Ident(word) = self.kind() else { return Err(self.unexpected("a type", "")) };
        let word = word.clone();
        let kind = match &*word {
            "bool" => TypeRefKind::Bool,
            "error" => TypeRefKind::Error,
            "match_kind" => TypeRefKind::MatchKind,
            "string" => TypeRefKind::String,
            "void" => TypeRefKind::Void,
            "bit" | "int" | "varbit" => return self.sized_type(&word),
            "tuple" => {
                self.bump();
                if !self.is("<") {
                    return Err(self.unexpected("`<`", "after `tuple`"));
                }
                TypeRefKind::Tuple(self.type_args()?)
            }
            "list" if self.nth_is(1, "<") => {
                self.bump();
                self.bump();
                let element = self.nested(Self::type_arg)?;
                self.grow(self.height)?;
                self.expect_angle("after the type of the list's elements")?;
                TypeRefKind::List(Box::new(element))
            }
            _ if self.nth_is_name(0) => return self.named_type(false),
            _ => return Err(self.unexpected("a type", "")),
        };
        if !matches!(kind, TypeRefKind::Tuple(_) | TypeRefKind::List(_)) {
            self.bump();
            self.height = 1;
        }
        Ok(TypeRef { kind, span: self.since(span) })
    }

    /// Parses `bit`, `bit<w>`, `int`, `int<w>` or `varbit<w>`.
    fn sized_type(&mut self, word: &str) -> ParseResult<TypeRef> {
        let span = self.span();
        self.bump();
        self.height = 1;
        let mut width = None;
        if self.eat("<") {
            let parsed = self.with_angle(true, Self::expr)?;
            self.grow(self.height)?;
            self.expect_angle(&format!("after the width of `{word}`"))?;
            width = Some(Box::new(parsed));
        }
        let kind = match (word, width) {
            ("bit", width) => TypeRefKind::Bit(width),
            ("int", Some(width)) => TypeRefKind::Int(width),
            ("int", None) => TypeRefKind::Integer,
            (_, Some(width)) => TypeRefKind::Varbit(width),
            (_, None) => return Err(self.unexpected("`<`", "after `varbit`, which needs a maximum width")),
        };
        Ok(TypeRef { kind, span: self.since(span) })
    }

    /// Parses `name` or `name<T1, T2>`. If `absolute`, a leading dot was consumed.
    pub(super) fn named_type(&mut self, absolute: bool) -> ParseResult<TypeRef> {
        let start = if absolute { self.before() } else { self.span() };
        let name = self.name("a type")?;
        self.height = 1;
        let args = if self.is("<") { self.type_args()? } else { Vec::new() };
        Ok(TypeRef { kind: TypeRefKind::Named { absolute, name, args }, span: self.since(start) })
    }

    /// Parses `<T1, T2>`.
    pub(super) fn type_args(&mut self) -> ParseResult<Vec<TypeRef>> {
        self.bump();
        let mut args = Vec::new();
        let mut tallest = 0;
        while !matches!(self.kind(), TokenKind::Punct(">" | ">>" | ">=" | ">>=")) {
            args.push(self.nested(Self::type_arg)?);
            tallest = tallest.max(self.height);
            if !self.eat(",") {
                break;
            }
        }
        self.grow(tallest)?;
        self.expect_angle("after the type arguments")?;
        Ok(args)
    }

    fn type_arg(&mut self) -> ParseResult<TypeRef> {
        let span = self.span();
        if self.eat_word("_") {
            self.height = 1;
            return Ok(TypeRef { kind: TypeRefKind::DontCare, span });
        }
        self.ty()
    }

    /// Parses `<T, U>`, if it comes next, and declares the names as types.
    pub(super) fn type_params(&mut self) -> ParseResult<Vec<Ident>> {
        let mut params = Vec::new();
        if !self.eat("<") {
            return Ok(params);
        }
        loop {
            let name = self.name("a type parameter")?;
            self.names.declare(&name.name, Meaning::Type);
            params.push(name);
            if !self.eat(",") {
                break;
            }
        }
        self.expect_angle("after the type parameters")?;
        Ok(params)
    }

    /// Returns the position of the next token.
    pub(super) fn here(&self) -> TokenPosition {
        let passed = match self.half.as_ref().map(|half| &half.kind) {
            Some(TokenKind::Punct(rest)) => self.sign_at(self.at).len().saturating_sub(rest.len()),
            _ => 0,
        };
        TokenPosition { token: self.at, passed }
    }

    fn sign_at(&self, token: usize) -> &'static str {
        match self.tokens.get(token).map(|token| &token.kind) {
            Some(TokenKind::Punct(sign)) => sign,
            _ => "",
        }
    }

    fn spot_word(&self, spot: TokenPosition) -> Option<&str> {
        match self.tokens.get(spot.token).map(|token| &token.kind) {
            Some(TokenKind::Ident(word)) if spot.passed == 0 => Some(word),
            _ => None,
        }
    }

    /// Whether `sign` is at `spot`.
    pub(super) fn is_at(&self, spot: TokenPosition, sign: &str) -> bool {
        self.sign_at(spot.token).get(spot.passed..) == Some(sign)
    }

    /// Returns the distance in tokens from the next token to `spot`.
    pub(super) fn distance(&self, spot: TokenPosition) -> Option<usize> {
        if spot.passed == 0 { spot.token.checked_sub(self.at) } else { None }
    }

    /// Returns the position after the `>` at `spot`.
    fn behind_angle(&self, spot: TokenPosition) -> Option<TokenPosition> {
        let sign = self.sign_at(spot.token);
        if !sign.starts_with('>') || sign.as_bytes().get(spot.passed) != Some(&b'>') {
            return None;
        }
        let passed = spot.passed + 1;
        Some(if passed == sign.len() {
            TokenPosition::behind(spot)
        } else {
            TokenPosition { token: spot.token, passed }
        })
    }

    /// Returns the position after the type at the next token, if the tokens can be a type. Consumes and reports
    /// nothing.
    pub(super) fn scan_type(&self) -> Option<TokenPosition> {
        self.scan_type_at(self.here())
    }

    /// Does the same for a type at `spot`.
    pub(super) fn scan_type_at(&self, spot: TokenPosition) -> Option<TokenPosition> {
        let mut budget = MAX_SCAN;
        self.scan_type_from(spot, 0, &mut budget)
    }

    /// Returns the position after the type arguments at the next token, which is `<`, if the tokens can be type
    /// arguments.
    pub(super) fn scan_type_args(&self) -> Option<TokenPosition> {
        let mut budget = MAX_SCAN;
        self.scan_args_from(self.here(), 0, &mut budget)
    }

    fn scan_type_from(&self, spot: TokenPosition, depth: usize, budget: &mut usize) -> Option<TokenPosition> {
        *budget = budget.checked_sub(1)?;
        if depth > MAX_SCAN_DEPTH {
            return None;
        }
        let name = if self.is_at(spot, ".") { TokenPosition::behind(spot) } else { spot };
        let word = self.spot_word(name)?;
        let behind = TokenPosition::behind(name);
        let mut end = match word {
            "bool" | "error" | "match_kind" | "string" | "void" => behind,
            "bit" | "int" | "varbit" if self.is_at(behind, "<") => self.scan_width(behind, budget)?,
            "bit" | "int" => behind,
            "_" if depth > 0 => behind,
            "tuple" => self.scan_args_from(behind, depth, budget)?,
            word if super::cursor::is_reserved(word) => return None,
            _ if self.is_at(behind, "<") => self.scan_args_from(behind, depth, budget)?,
            _ => behind,
        };
        while self.is_at(end, "[") {
            end = self.scan_brackets(end, budget)?;
        }
        Some(end)
    }

    fn scan_args_from(&self, open: TokenPosition, depth: usize, budget: &mut usize) -> Option<TokenPosition> {
        if !self.is_at(open, "<") {
            return None;
        }
        let mut at = TokenPosition::behind(open);
        loop {
            if let Some(end) = self.behind_angle(at) {
                return Some(end);
            }
            at = self.scan_type_from(at, depth + 1, budget)?;
            if self.is_at(at, ",") {
                at = TokenPosition::behind(at);
            } else {
                return self.behind_angle(at);
            }
        }
    }

    /// Returns the position after `<width>`.
    fn scan_width(&self, open: TokenPosition, budget: &mut usize) -> Option<TokenPosition> {
        let mut at = TokenPosition::behind(open);
        loop {
            *budget = budget.checked_sub(1)?;
            if let Some(end) = self.behind_angle(at) {
                return Some(end);
            }
            at = match self.sign_at(at.token) {
                "(" => self.scan_brackets(at, budget)?,
                ";" | "{" | "}" | ")" | "<" => return None,
                _ if at.token + 1 >= self.tokens.len() => return None,
                _ => TokenPosition::behind(at),
            };
        }
    }

    /// Returns the position after the bracket or parenthesis that closes the one at `open`.
    fn scan_brackets(&self, open: TokenPosition, budget: &mut usize) -> Option<TokenPosition> {
        let mut depth = 0usize;
        let mut at = open;
        loop {
            *budget = budget.checked_sub(1)?;
            match self.sign_at(at.token) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                ";" => return None,
                _ if at.token + 1 >= self.tokens.len() => return None,
                _ => {}
            }
            at = TokenPosition::behind(at);
            if depth == 0 {
                return Some(at);
            }
        }
    }

    /// Returns the position after the `)` that closes the next `(`.
    pub(super) fn scan_parens(&self) -> Option<TokenPosition> {
        self.behind_parens(self.here())
    }

    /// Returns the position after the next `sign` that closes a bracket opened before, unless the statement ends first.
    pub(super) fn scan_close(&self, sign: &str) -> Option<TokenPosition> {
        let mut at = self.here();
        for _ in 0..MAX_SCAN {
            match self.sign_at(at.token) {
                own if own == sign => return Some(TokenPosition::behind(at)),
                "(" | "[" | "{" => at = self.scan_brackets(at, &mut { MAX_SCAN })?,
                ";" | ")" | "]" | "}" => return None,
                _ if at.token + 1 >= self.tokens.len() => return None,
                _ => at = TokenPosition::behind(at),
            }
        }
        None
    }

    /// Returns the position after the `)` that closes the `(` at `open`.
    pub(super) fn behind_parens(&self, open: TokenPosition) -> Option<TokenPosition> {
        let mut budget = MAX_PARENS;
        if self.is_at(open, "(") { self.scan_brackets(open, &mut budget) } else { None }
    }
}
