//! Evaluates the expressions of `#if` and `#elif`: integers and operators as in C.

use diagnostics::{Diagnostic, Span};
use num_traits::ToPrimitive;

use super::{PpToken, Preprocessor};
use crate::ast::IntLiteral;
use crate::lex::TokenKind;

/// Maximum nesting depth of such an expression.
const MAX_DEPTH: usize = 100;

impl Preprocessor<'_> {
    /// Evaluates the expression in `line`; false, with a diagnostic, if it is invalid.
    pub(super) fn condition(&mut self, line: &[PpToken], directive: Span) -> bool {
        let mut asked = Vec::new();
        let mut rest = line;
        while let [first, behind @ ..] = rest {
            rest = behind;
            if !matches!(&first.kind, TokenKind::Ident(name) if &**name == "defined") {
                asked.push(first.clone());
                continue;
            }
            let name = match behind {
                [PpToken { kind: TokenKind::Ident(name), .. }, ..] => {
                    rest = &behind[1..];
                    name
                }
                [open, PpToken { kind: TokenKind::Ident(name), .. }, close, ..] if open.is("(") && close.is(")") => {
                    rest = &behind[3..];
                    name
                }
                _ => {
                    let message = "`defined` takes a macro name";
                    let diagnostic = Diagnostic::error("bad-condition", first.span, message);
                    self.diagnostics.push(diagnostic.help("write `defined(NAME)`"));
                    return false;
                }
            };
            let value = i32::from(self.is_defined(name)).into();
            asked.push(PpToken::new(TokenKind::Int(IntLiteral { value, width: None }), first.span));
        }
        let tokens = self.expand_list(&asked);
        for tok in &tokens {
            self.report_number(tok);
        }
        let end = tokens.last().map_or(directive, |tok| tok.span).after();
        let mut reader = ConditionParser { tokens: &tokens, at: 0, depth: 0, end };
        let result = if tokens.is_empty() {
            Err(bad(directive, "this conditional has no condition"))
        } else {
            reader.ternary(true).and_then(|value| match tokens.get(reader.at) {
                None => Ok(value),
                Some(tok) => Err(reader.unexpected(tok, "an operator or the end of the line")),
            })
        };
        match result {
            Ok(value) => value != 0,
            Err(diagnostic) => {
                self.diagnostics.push(*diagnostic);
                false
            }
        }
    }
}

/// Parses and evaluates in one pass. `live` is false in an operand that `&&`, `||` or `?:` does not evaluate: a
/// division by zero there is no error.
struct ConditionParser<'a> {
    tokens: &'a [PpToken],
    at: usize,
    depth: usize,
    end: Span,
}

/// The diagnostic is boxed to keep the values small.
type EvalResult = Result<i128, Box<Diagnostic>>;

/// Binary operators, loosest first.
const LEVELS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", ">", "<=", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl ConditionParser<'_> {
    fn unexpected(&self, tok: &PpToken, expected: &str) -> Box<Diagnostic> {
        let message = format!("expected {expected} in the condition, found `{}`", tok.kind);
        bad(tok.span, message)
    }

    fn eat(&mut self, signs: &[&'static str]) -> Option<(&'static str, Span)> {
        let tok = self.tokens.get(self.at)?;
        let sign = signs.iter().find(|sign| tok.is(sign))?;
        self.at += 1;
        Some((sign, tok.span))
    }

    fn expect(&mut self, sign: &'static str) -> Result<(), Box<Diagnostic>> {
        match (self.eat(&[sign]), self.tokens.get(self.at)) {
            (Some(_), _) => Ok(()),
            (None, Some(tok)) => Err(self.unexpected(tok, &format!("`{sign}`"))),
            (None, None) => Err(bad(self.end, format!("expected `{sign}` in the condition"))),
        }
    }

    fn ternary(&mut self, live: bool) -> EvalResult {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(bad(self.end, "the condition is nested too deeply"));
        }
        let condition = self.binary(0, live)?;
        let value = if self.eat(&["?"]).is_some() {
            let first = self.ternary(live && condition != 0)?;
            self.expect(":")?;
            let second = self.ternary(live && condition == 0)?;
            if condition != 0 { first } else { second }
        } else {
            condition
        };
        self.depth -= 1;
        Ok(value)
    }

    fn binary(&mut self, level: usize, live: bool) -> EvalResult {
        let Some(signs) = LEVELS.get(level) else { return self.unary(live) };
        let mut left = self.binary(level + 1, live)?;
        while let Some((sign, span)) = self.eat(signs) {
            let needed = match sign {
                "||" => left == 0,
                "&&" => left != 0,
                _ => true,
            };
            let right = self.binary(level + 1, live && needed)?;
            let zero = |live: bool| if live { Err(bad(span, "division by zero in the condition")) } else { Ok(0) };
            left = match sign {
                "||" => i128::from(left != 0 || right != 0),
                "&&" => i128::from(left != 0 && right != 0),
                "|" => left | right,
                "^" => left ^ right,
                "&" => left & right,
                "==" => i128::from(left == right),
                "!=" => i128::from(left != right),
                "<" => i128::from(left < right),
                ">" => i128::from(left > right),
                "<=" => i128::from(left <= right),
                ">=" => i128::from(left >= right),
                "<<" => shifted(left, right, |value, by| value.checked_shl(by).unwrap_or(0)),
                ">>" => shifted(left, right, |value, by| value >> by.min(127)),
                "+" => left.wrapping_add(right),
                "-" => left.wrapping_sub(right),
                "*" => left.wrapping_mul(right),
                "/" if right == 0 => zero(live)?,
                "/" => left.wrapping_div(right),
                _ if right == 0 => zero(live)?,
                _ => left.wrapping_rem(right),
            };
        }
        Ok(left)
    }

    fn unary(&mut self, live: bool) -> EvalResult {
        let mut signs = Vec::new();
        while let Some((sign, _)) = self.eat(&["!", "~", "-", "+"]) {
            signs.push(sign);
        }
        let mut value = self.primary(live)?;
        for sign in signs.into_iter().rev() {
            value = match sign {
                "!" => i128::from(value == 0),
                "~" => !value,
                "-" => value.wrapping_neg(),
                _ => value,
            };
        }
        Ok(value)
    }

    fn primary(&mut self, live: bool) -> EvalResult {
        let Some(tok) = self.tokens.get(self.at) else {
            return Err(bad(self.end, "expected a value in the condition"));
        };
        self.at += 1;
        match &tok.kind {
            // Literals beyond 128 bits have no use in conditions; they count as the largest number.
            TokenKind::Int(literal) => Ok(literal.value.to_i128().unwrap_or(i128::MAX)),
            // A name that is not a macro is 0, as in C.
            TokenKind::Ident(name) => Ok(i128::from(&**name == "true")),
            TokenKind::Punct("(") => {
                let value = self.ternary(live)?;
                self.expect(")")?;
                Ok(value)
            }
            _ => Err(self.unexpected(tok, "a number, a macro or `(`")),
        }
    }
}

fn shifted(value: i128, by: i128, shift: fn(i128, u32) -> i128) -> i128 {
    shift(value, u32::try_from(by.clamp(0, 200)).unwrap_or(200))
}

fn bad(span: Span, message: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::error("bad-condition", span, message))
}
