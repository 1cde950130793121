//! Splits rule files into tokens.

use diagnostics::{FileId, Span};

use crate::syntax::value::Constant;

/// Maximum length of a token in bytes. A longer one is truncated in messages and is not a constant.
const MAX_TOKEN: usize = 1 << 12;

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RuleToken<'a> {
    /// A name, with dots and indices: `add_order.stock`, `hdr.label[0].ttl`.
    Word(&'a str),
    /// A number, an address or a quoted string.
    Constant(Constant),
    /// A number with a suffix: `100ms`.
    Odd(&'a str),
    /// A sign, in its canonical spelling.
    Sign(&'static str),
    /// A character sequence that begins no token, with the reason.
    Bad(&'static str),
    /// The end of the file.
    End,
}

/// A token with its location.
#[derive(Clone, Debug)]
pub(crate) struct SpannedToken<'a> {
    pub token: RuleToken<'a>,
    pub span: Span,
    /// Whether only white space precedes the token in its line.
    pub begins_line: bool,
}

/// The words that are always signs.
pub const SIGN_WORDS: [&str; 4] = ["and", "or", "not", "in"];

/// Spellings of signs with their canonical forms; longer spellings precede their prefixes.
const SIGNS: [(&str, &str); 44] = [
    ("&&", "and"),
    ("||", "or"),
    ("==", "=="),
    ("!=", "!="),
    ("<=", "<="),
    (">=", ">="),
    ("<-", "<-"),
    (":=", "<-"),
    ("+=", "+="),
    ("-=", "-="),
    ("..", ".."),
    // No signs of the language; a hint follows them.
    ("/\\", "/\\"),
    ("\\/", "\\/"),
    ("^", "^"),
    ("->", "->"),
    ("=>", "=>"),
    ("→", "→"),
    ("∧", "and"),
    ("∨", "or"),
    ("¬", "not"),
    ("≤", "<="),
    ("≥", ">="),
    ("≠", "!="),
    ("∈", "in"),
    ("←", "<-"),
    ("!", "not"),
    ("<", "<"),
    (">", ">"),
    ("(", "("),
    (")", ")"),
    ("{", "{"),
    ("}", "}"),
    ("[", "["),
    ("]", "]"),
    (",", ","),
    (";", ";"),
    (":", ":"),
    ("/", "/"),
    ("+", "+"),
    ("*", "*"),
    ("-", "-"),
    ("=", "="),
    ("&", "&"),
    ("|", "|"),
];

/// Splits text into tokens.
pub(crate) struct Lexer<'a> {
    text: &'a str,
    file: FileId,
    at: usize,
    begins_line: bool,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str, file: FileId) -> Self {
        Lexer { text, file, at: 0, begins_line: true }
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.file, start as u32, end as u32)
    }

    /// Returns the text of a span of this file.
    pub fn text_at(&self, span: Span) -> Option<&'a str> {
        self.text.get(span.start as usize..span.end as usize)
    }

    /// Returns the next token.
    pub fn next(&mut self) -> SpannedToken<'a> {
        if let Some(open) = self.skip_blank() {
            let span = self.span(open, open + 2);
            return SpannedToken {
                token: RuleToken::Bad("unterminated comment: end it with `*/`"),
                span,
                begins_line: true,
            };
        }
        let start = self.at;
        let (token, length) = token(&self.text[start..]);
        self.at += length;
        let begins_line = std::mem::replace(&mut self.begins_line, false);
        SpannedToken { token, span: self.span(start, self.at), begins_line }
    }

    /// Skips white space and comments. For an unterminated comment, skips the rest of the file and returns the start of
    /// the comment.
    fn skip_blank(&mut self) -> Option<usize> {
        loop {
            let rest = &self.text[self.at..];
            let trimmed = rest.trim_start();
            let blank = &rest[..rest.len() - trimmed.len()];
            self.begins_line |= blank.contains('\n');
            self.at += blank.len();
            let is_line_comment =
                trimmed.starts_with("//") || (trimmed.starts_with('#') && !trimmed.starts_with("#include"));
            if is_line_comment {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if let Some(body) = trimmed.strip_prefix("/*") {
                let Some(length) = body.find("*/") else {
                    return Some(std::mem::replace(&mut self.at, self.text.len()));
                };
                self.begins_line |= body[..length].contains('\n');
                self.at += length + 4;
            } else {
                return None;
            }
        }
    }
}

fn token(text: &str) -> (RuleToken<'_>, usize) {
    let Some(first) = text.chars().next() else { return (RuleToken::End, 0) };
    if first == '"' {
        return quoted(text);
    }
    if (first.is_ascii_hexdigit() || first == ':')
        && let Some((constant, length)) = address(text)
    {
        return (RuleToken::Constant(constant), length);
    }
    if let Some((why, length)) = no_address(text) {
        return (RuleToken::Bad(why), length);
    }
    if first.is_ascii_digit() {
        return number(text);
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let length = word(text);
        let word = &text[..length];
        let token = match SIGN_WORDS.into_iter().find(|sign| *sign == word) {
            Some(sign) => RuleToken::Sign(sign),
            None => RuleToken::Word(word),
        };
        return (token, length);
    }
    if text.starts_with("#include") {
        return (RuleToken::Word("include"), "#include".len());
    }
    if first == '\'' {
        return (RuleToken::Bad("strings are in double quotes: `\"GOOGL\"`"), 1);
    }
    match SIGNS.iter().find(|(written, _)| text.starts_with(written)) {
        Some((written, sign)) => (RuleToken::Sign(sign), written.len()),
        None => (RuleToken::Bad("unexpected character"), first.len_utf8()),
    }
}

/// Lexes text in double quotes on one line; `\"` and `\\` are escapes.
fn quoted(text: &str) -> (RuleToken<'_>, usize) {
    let mut out = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (RuleToken::Constant(Constant::Text(out)), at + 1),
            '\n' => return (RuleToken::Bad("unterminated string: it must end on its line"), at),
            '\\' => match characters.next() {
                Some((_, escaped @ ('"' | '\\'))) => out.push(escaped),
                _ => return (RuleToken::Bad(r#"a backslash can escape only `"` and `\`"#), at + 1),
            },
            _ => out.push(character),
        }
        if out.len() > MAX_TOKEN {
            return (RuleToken::Bad("this string is too long for any field"), at);
        }
    }
    (RuleToken::Bad("unterminated string"), text.len())
}

/// Lexes an Ethernet, IPv6 or IPv4 address. Returns it with its length.
fn address(text: &str) -> Option<(Constant, usize)> {
    let bytes = text.as_bytes();
    let lead = bytes.iter().take(5).take_while(|byte| byte.is_ascii_hexdigit()).count();
    let run = |also: &[u8], most: usize| {
        bytes.iter().take(most).take_while(|byte| byte.is_ascii_hexdigit() || also.contains(byte)).count()
    };
    let ends = |length: usize| !bytes.get(length).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    match bytes.get(lead)? {
        b'.' if lead > 0 => {
            let length = run(b".", 18);
            // Two dots belong to a range.
            let run = &text[..length];
            let part = run.split("..").next().unwrap_or(run).trim_end_matches('.');
            let address = part.parse::<std::net::Ipv4Addr>().ok()?;
            ends(part.len()).then_some((Constant::Ipv4(address.to_bits()), part.len()))
        }
        b':' => {
            let length = run(b":.", 46);
            (2..=length).rev().filter(|length| ends(*length)).find_map(|length| {
                let part = &text[..length];
                let constant = match mac(part) {
                    Some(address) => Constant::Mac(address),
                    None => Constant::Ipv6(part.parse::<std::net::Ipv6Addr>().ok()?.to_bits()),
                };
                Some((constant, length))
            })
        }
        _ => None,
    }
}

/// Recognizes malformed addresses and fractional numbers. Returns the reason and the length.
fn no_address(text: &str) -> Option<(&'static str, usize)> {
    let run = |is_part: fn(&u8) -> bool| {
        let run = &text[..text.bytes().take(MAX_TOKEN).take_while(is_part).count()];
        let whole = !text[run.len()..].starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_');
        whole.then_some(run)
    };
    if let Some(run) = run(|byte| byte.is_ascii_digit() || *byte == b'.') {
        let part = run.split("..").next().unwrap_or(run).trim_end_matches('.');
        let is_numbers = part.starts_with(|first: char| first.is_ascii_digit());
        match part.matches('.').count() {
            1 if is_numbers => return Some(("numbers cannot have a fractional part here", part.len())),
            2.. if is_numbers => {
                return Some(("an IPv4 address is four numbers from 0 to 255: `10.0.0.1`", part.len()));
            }
            _ => {}
        }
    }
    if let Some(run) = run(|byte| byte.is_ascii_hexdigit() || *byte == b':') {
        let part = run.trim_end_matches(':');
        if part.matches(':').count() > 1 && part.starts_with(|first: char| first.is_ascii_hexdigit()) {
            return if part.contains("::") || part.split(':').any(|group| group.len() > 2) {
                Some(("an IPv6 address is eight groups, or fewer with one `::`: `fe80::1`", part.len()))
            } else {
                Some(("an Ethernet address is six pairs of digits: `00:11:22:33:44:55`", part.len()))
            };
        }
    }
    let run = run(|byte| byte.is_ascii_hexdigit() || *byte == b'-')?;
    let groups: Vec<&str> = run.split('-').collect();
    let is_address = groups.len() == 6 && groups.iter().all(|group| group.len() == 2);
    is_address.then_some(("an Ethernet address has colons: `00:11:22:33:44:55`", run.len()))
}

fn mac(text: &str) -> Option<u64> {
    let mut value = 0;
    let mut groups = 0;
    for group in text.split(':') {
        groups += 1;
        if group.len() != 2 || groups > 6 {
            return None;
        }
        value = value << 8 | u64::from_str_radix(group, 16).ok()?;
    }
    (groups == 6).then_some(value)
}

fn number(text: &str) -> (RuleToken<'_>, usize) {
    let length = text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    let word = &text[..length];
    if length > MAX_TOKEN {
        return (RuleToken::Bad("this number is too long for any field"), length);
    }
    let digits: String = word.chars().filter(|c| *c != '_').collect();
    let (radix, digits) = match digits.get(..2) {
        Some("0x" | "0X") => (16, &digits[2..]),
        Some("0b" | "0B") => (2, &digits[2..]),
        _ => (10, &digits[..]),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return (RuleToken::Odd(word), length);
    }
    match u128::from_str_radix(digits, radix) {
        Ok(number) if radix == 10 => (RuleToken::Constant(Constant::Number(number)), length),
        Ok(number) => (RuleToken::Constant(Constant::Bits(number)), length),
        Err(_) => (RuleToken::Bad("this number has more than 128 bits"), length),
    }
}

/// Returns the length of a name: words joined by dots, with optional indices.
fn word(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let mut length = 0;
    loop {
        length += bytes[length..].iter().take_while(|byte| is_word(byte)).count();
        if bytes.get(length) == Some(&b'[') {
            let digits = bytes[length + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits > 0 && bytes.get(length + 1 + digits) == Some(&b']') {
                length += digits + 2;
            }
        }
        let dot = bytes.get(length) == Some(&b'.');
        if !dot || !bytes.get(length + 1).is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_') {
            return length;
        }
        length += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs(text: &str) -> String {
        let mut lexer = Lexer::new(text, FileId(0));
        let mut out = Vec::new();
        loop {
            out.push(match lexer.next().token {
                RuleToken::End => return out.join(" "),
                RuleToken::Word(word) => word.to_owned(),
                RuleToken::Constant(constant) => format!("{constant:?}"),
                RuleToken::Odd(odd) => format!("odd:{odd}"),
                RuleToken::Sign(sign) => sign.to_owned(),
                RuleToken::Bad(why) => format!("bad:{why}"),
            });
        }
    }

    #[test]
    fn spellings_and_constants() {
        assert_eq!(signs("a && b ∧ c and !d || ¬e ∨ f"), "a and b and c and not d or not e or f");
        assert_eq!(signs("1 .. 0x1_0 0b11 5..9"), "Number(1) .. Bits(16) Bits(3) Number(5) .. Number(9)");
        assert_eq!(signs("10.0.0.0/8:"), "Ipv4(167772160) / Number(8) :");
        assert_eq!(signs("10.9.0.0..10.9.1.3"), "Ipv4(168361984) .. Ipv4(168362243)");
        assert_eq!(signs("50:fwd"), "Number(50) : fwd");
        assert_eq!(
            signs("fe80::1:fwd ::/0"),
            "Ipv6(338288524927261089654018896841347694593) : fwd Ipv6(0) / Number(0)"
        );
        assert_eq!(signs("00:00:00:00:01:02:"), "Mac(258) :");
        assert_eq!(signs("a.b[2].c.isValid() BRK.B"), "a.b[2].c.isValid ( ) BRK.B");
        assert_eq!(signs("# c\nx // d\n/* e\n */ y"), "x y");
        assert_eq!(signs(r#""a\"b" 100ms 3x"#), r#"Text("a\"b") odd:100ms odd:3x"#);
        assert!(signs("x /* y").contains("bad:unterminated comment"));
        assert!(signs("\"x\ny\"").contains("bad:unterminated string: it must end on its line y"));
    }

    #[test]
    fn malformed_addresses_are_one_token() {
        for (text, why) in [
            ("10.0.0.256", "an IPv4 address is four numbers"),
            ("10.0.0", "an IPv4 address is four numbers"),
            ("10.0.0.0.1", "an IPv4 address is four numbers"),
            ("99.5", "numbers cannot have a fraction"),
            ("00:11:22:33:44", "an Ethernet address is six pairs"),
            ("0:1:2:3:4:5", "an Ethernet address is six pairs"),
            ("00-11-22-33-44-55", "an Ethernet address has colons"),
            ("fe80:1:2", "an IPv6 address is eight groups"),
        ] {
            for behind in ["", " : fwd", ": fwd", "/8", "..", ")"] {
                let line = format!("{text}{behind}");
                let mut lexer = Lexer::new(&line, FileId(0));
                let first = lexer.next();
                assert!(matches!(first.token, RuleToken::Bad(found) if found.starts_with(why)), "{line}: {first:?}");
                assert_eq!(lexer.text_at(first.span), Some(text), "{line}");
            }
        }
        // Similar texts that are valid.
        assert_eq!(signs("5:fwd"), "Number(5) : fwd");
        assert_eq!(signs("1..9 a-b ab:cd 12-11"), "Number(1) .. Number(9) a - b ab : cd Number(12) - Number(11)");
        assert_eq!(signs("abc.def[0].a"), "abc.def[0].a");
    }
}
