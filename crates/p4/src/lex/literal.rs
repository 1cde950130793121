//! Parses integer and string literals (specification sections 6.3.3.2 and 6.3.3.3).

use num_bigint::BigInt;
use num_traits::Zero;

use crate::ast::IntLiteral;

/// Maximum length of a sequence of digits, since conversion takes time quadratic in it. Enough for the widest bit
/// vector.
const MAX_DIGITS: usize = 1 << 17;

/// An error inside a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenError {
    /// A string without a closing quote.
    UnterminatedString,
    /// A comment without a closing `*/`.
    UnterminatedComment,
    /// An invalid integer literal: the problem, and the suggested fix.
    Number(String, String),
}

/// Parses an integer literal as written: `[width (w|s)] [0x|0o|0d|0b] digits`. An error is returned together with the
/// value that was probably meant, so that parsing can continue.
pub(crate) fn read_int(text: &str) -> (IntLiteral, Option<TokenError>) {
    let digits_end = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
    let mut error = None;
    let (width, number) = match text.as_bytes().get(digits_end) {
        Some(sign @ (b'w' | b's')) => {
            let written = &text[..digits_end];
            let width = written.parse::<u32>();
            if written.contains('_') {
                error = Some(number_error("the width of a literal cannot contain `_`", "write digits only"));
            } else if !width.as_ref().is_ok_and(|width| *width <= bits::MAX_WIDTH) {
                let help = format!("the maximum width is {} bits", bits::MAX_WIDTH);
                error = Some(number_error(&format!("a literal cannot be {written} bits wide"), &help));
            }
            let width = width.unwrap_or(bits::MAX_WIDTH).min(bits::MAX_WIDTH);
            (Some((width, *sign == b's')), &text[digits_end + 1..])
        }
        _ => (None, text),
    };
    let (base, base_name, digits) = match number.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, "hexadecimal", &number[2..]),
        [b'0', b'o' | b'O', ..] => (8, "octal", &number[2..]),
        [b'0', b'd' | b'D', ..] => (10, "decimal", &number[2..]),
        [b'0', b'b' | b'B', ..] => (2, "binary", &number[2..]),
        _ => (10, "decimal", number),
    };
    if digits.len() > MAX_DIGITS {
        let help = format!("a literal may have at most {MAX_DIGITS} digits");
        return (IntLiteral { value: BigInt::zero(), width }, Some(number_error("the literal is too long", &help)));
    }
    let mut clean = Vec::with_capacity(digits.len());
    for c in digits.chars() {
        match c.to_digit(base) {
            Some(_) => clean.push(c as u8),
            None if c == '_' => {}
            None => {
                let problem = format!("`{c}` is not a {base_name} digit");
                let help = match (base, c.is_ascii_hexdigit()) {
                    (16, _) | (_, false) => {
                        "a literal is digits, optionally after a width (`8w10`, `4s7`) and a base (`0x1f`, `0b01`)"
                    }
                    _ => "hexadecimal numbers start with `0x`",
                };
                error = error.or_else(|| Some(number_error(&problem, help)));
                break;
            }
        }
    }
    if clean.is_empty() && error.is_none() {
        error = Some(number_error("the literal has no digits", "write at least one digit, `0` for zero"));
    }
    let value = BigInt::parse_bytes(&clean, base).unwrap_or_else(BigInt::zero);
    (IntLiteral { value, width }, error)
}

fn number_error(problem: &str, help: &str) -> TokenError {
    TokenError::Number(problem.to_owned(), help.to_owned())
}

/// Resolves `\"` and `\\` in the text between a string's quotes. Every other backslash is kept: the consumer of the
/// string interprets it.
pub fn unescape(inner: &str) -> String {
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some(escaped @ ('"' | '\\')) => out.push(escaped),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> (i64, Option<(u32, bool)>) {
        let (literal, error) = read_int(text);
        assert_eq!(error, None, "{text}");
        (i64::try_from(literal.value).expect("small"), literal.width)
    }

    #[test]
    fn literals_of_the_specification() {
        assert_eq!(value("32w255"), (255, Some((32, false))));
        assert_eq!(value("32w0d255"), (255, Some((32, false))));
        assert_eq!(value("32s0xFF"), (255, Some((32, true))));
        assert_eq!(value("8s0b1010_1010"), (0xaa, Some((8, true))));
        assert_eq!(value("16w0377"), (377, Some((16, false))));
        assert_eq!(value("16w0o377"), (255, Some((16, false))));
        assert_eq!(value("1_000"), (1000, None));
    }

    #[test]
    fn flaws_are_named() {
        for (text, part) in [
            ("0x", "no digits"),
            ("0b12", "`2` is not a binary digit"),
            ("12ab", "`a` is not a decimal digit"),
            ("99999999999w1", "99999999999 bits wide"),
            ("1_6w1", "cannot contain `_`"),
        ] {
            let (_, error) = read_int(text);
            let Some(TokenError::Number(problem, _)) = error else { panic!("{text} was accepted") };
            assert!(problem.contains(part), "{text}: {problem}");
        }
    }

    #[test]
    fn strings_keep_foreign_escapes() {
        assert_eq!(unescape(r#"a \" b \\ c \n"#), r#"a " b \ c \n"#);
    }
}
