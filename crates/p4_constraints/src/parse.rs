//! Parses restrictions by recursive descent, with one function per level of precedence.
//!
//! ```text
//! list    ::= implies (';' implies)* ';'?
//! implies ::= any ('->' any)?
//! any     ::= all ('||' all)*
//! all     ::= compare ('&&' compare)*
//! compare ::= unary (('==' | '!=' | '<' | '<=' | '>' | '>=') unary)?
//! unary   ::= ('!' | '-')* part
//! part    ::= primary ('::' word)*
//! primary ::= 'true' | 'false' | number | name | '::' word | word '(' quoted ')' | '(' list ')'
//! ```

use std::net::{Ipv4Addr, Ipv6Addr};

use num_bigint::{BigInt, Sign};

use crate::MAX_DEPTH;
use crate::expr::{Comparison, Expr, ExprKind};
use crate::lex::{Finding, RestrictionToken, TextRange, tokens};

type ExprResult = Result<Expr, Finding>;

/// Parses `text` as an expression.
pub(crate) fn parse(text: &str) -> ExprResult {
    if text.len() > crate::MAX_TEXT {
        let message = format!("a restriction of {} bytes is over the limit of {}", text.len(), crate::MAX_TEXT);
        return Err(Finding::error("restriction-limit", TextRange::default(), message));
    }
    let tokens = tokens(text)?;
    let mut parser = RestrictionParser { tokens: &tokens, next: 0, depth: 0 };
    let expr = parser.list()?;
    match parser.peek() {
        RestrictionToken::End => Ok(expr),
        _ => Err(parser.unexpected("an operator or the end")),
    }
}

struct RestrictionParser<'a> {
    tokens: &'a [(RestrictionToken, TextRange)],
    next: usize,
    depth: usize,
}

impl<'a> RestrictionParser<'a> {
    fn peek(&self) -> &'a RestrictionToken {
        &self.tokens[self.next].0
    }

    fn at(&self) -> TextRange {
        self.tokens[self.next].1
    }

    /// Advances to the next token; the last token is never passed.
    fn advance(&mut self) -> TextRange {
        let at = self.at();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        at
    }

    fn take(&mut self, sign: &str) -> Option<TextRange> {
        self.sign(sign).then(|| self.advance())
    }

    /// Whether the next token is this sign.
    fn sign(&self, sign: &str) -> bool {
        matches!(self.peek(), RestrictionToken::Sign(found) if *found == sign)
    }

    fn expect(&mut self, sign: &str) -> Result<TextRange, Finding> {
        self.take(sign).ok_or_else(|| self.unexpected(&format!("`{sign}`")))
    }

    fn unexpected(&self, expected: &str) -> Finding {
        let message = format!("expected {expected}, found {}", self.peek().describe());
        Finding::error("restriction-syntax", self.at(), message)
    }

    fn deeper(&mut self) -> Result<(), Finding> {
        self.depth += 1;
        if self.depth <= MAX_DEPTH {
            return Ok(());
        }
        let message = format!("this restriction is nested more than {MAX_DEPTH} levels deep");
        Err(Finding::error("restriction-limit", self.at(), message).help("`!` and parentheses count as levels"))
    }

    fn list(&mut self) -> ExprResult {
        let mut parts = vec![self.implies()?];
        while self.take(";").is_some() {
            // A semicolon may follow the last clause.
            if matches!(self.peek(), RestrictionToken::End) || self.sign(")") {
                break;
            }
            parts.push(self.implies()?);
        }
        Ok(chain(parts, ExprKind::All))
    }

    fn implies(&mut self) -> ExprResult {
        let left = self.any()?;
        if self.take("->").is_none() {
            return Ok(left);
        }
        let right = self.any()?;
        if self.sign("->") {
            let finding = Finding::error("restriction-syntax", self.at(), "`a -> b -> c` is ambiguous");
            return Err(finding.help("write `a -> (b -> c)` or `(a -> b) -> c`"));
        }
        let at = left.at.to(right.at);
        Ok(Expr { kind: ExprKind::Implies(Box::new([left, right])), at })
    }

    fn any(&mut self) -> ExprResult {
        let mut parts = vec![self.all()?];
        while self.take("||").is_some() {
            parts.push(self.all()?);
        }
        Ok(chain(parts, ExprKind::Any))
    }

    fn all(&mut self) -> ExprResult {
        let mut parts = vec![self.compare()?];
        while self.take("&&").is_some() {
            parts.push(self.compare()?);
        }
        Ok(chain(parts, ExprKind::All))
    }

    fn comparison(&self) -> Option<Comparison> {
        match self.peek() {
            RestrictionToken::Sign(sign) => Comparison::of(sign),
            _ => None,
        }
    }

    fn compare(&mut self) -> ExprResult {
        let left = self.unary()?;
        let Some(comparison) = self.comparison() else { return Ok(left) };
        self.advance();
        let right = self.unary()?;
        if self.comparison().is_some() {
            let finding = Finding::error("restriction-syntax", self.at(), "comparisons cannot be chained");
            return Err(finding.help("write `a == b && b == c`, or parentheses"));
        }
        let at = left.at.to(right.at);
        Ok(Expr { kind: ExprKind::Compare(comparison, Box::new([left, right])), at })
    }

    fn unary(&mut self) -> ExprResult {
        let (start, kind): (TextRange, fn(Box<Expr>) -> ExprKind) = if let Some(at) = self.take("!") {
            (at, ExprKind::Not)
        } else if let Some(at) = self.take("-") {
            (at, ExprKind::Negative)
        } else {
            return self.part();
        };
        self.deeper()?;
        let operand = self.unary()?;
        self.depth -= 1;
        let at = start.to(operand.at);
        Ok(Expr { kind: kind(Box::new(operand)), at })
    }

    fn part(&mut self) -> ExprResult {
        let mut expr = self.primary()?;
        let mut parts = 0;
        while self.take("::").is_some() {
            parts += 1;
            if parts > 1 {
                let finding = Finding::error("restriction-type", self.at(), "a part of a key has no parts");
                return Err(finding.help("`key::value` is a number"));
            }
            let (word, at) = self.word("the part's name")?;
            let at = expr.at.to(at);
            expr = Expr { kind: ExprKind::Part(Box::new(expr), word), at };
        }
        Ok(expr)
    }

    fn word(&mut self, what: &str) -> Result<(String, TextRange), Finding> {
        match self.peek() {
            RestrictionToken::Word(word) => Ok((word.clone(), self.advance())),
            _ => Err(self.unexpected(what)),
        }
    }

    fn primary(&mut self) -> ExprResult {
        let at = self.at();
        let kind = match self.peek() {
            RestrictionToken::True => ExprKind::Bool(true),
            RestrictionToken::False => ExprKind::Bool(false),
            RestrictionToken::Number(number) => ExprKind::Number(number.clone()),
            RestrictionToken::Word(_) => return self.name(),
            RestrictionToken::Sign("::") => {
                self.advance();
                let (word, end) = self.word("an attribute, as in `::priority`")?;
                return Ok(Expr { kind: ExprKind::Attribute(word), at: at.to(end) });
            }
            RestrictionToken::Sign("(") => {
                self.advance();
                self.deeper()?;
                let inner = self.list()?;
                self.depth -= 1;
                let end = self.expect(")")?;
                return Ok(Expr { at: at.to(end), ..inner });
            }
            _ => return Err(self.unexpected("a key, a number, `true`, `false`, `!`, `-` or `(`")),
        };
        self.advance();
        Ok(Expr { kind, at })
    }

    /// Parses a dotted name, or an address such as `ipv4('10.0.0.1')`.
    fn name(&mut self) -> ExprResult {
        let (mut name, mut at) = self.word("a name")?;
        if self.take("(").is_some() {
            let RestrictionToken::Quoted(text) = self.peek() else {
                return Err(self.unexpected("an address in single quotes"));
            };
            let inner = self.advance();
            at = at.to(self.expect(")")?);
            return Ok(Expr { kind: ExprKind::Number(address(&name, text, at, inner)?), at });
        }
        while self.take(".").is_some() {
            let (word, end) = self.word("the rest of the name")?;
            name = name + "." + &word;
            at = at.to(end);
        }
        Ok(Expr { kind: ExprKind::Name(name), at })
    }
}

/// Combines expressions; a single one stays as it is.
fn chain(mut parts: Vec<Expr>, kind: fn(Vec<Expr>) -> ExprKind) -> Expr {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let at = parts[0].at.to(parts[parts.len() - 1].at);
    Expr { kind: kind(parts), at }
}

fn address(kind: &str, text: &str, at: TextRange, inner: TextRange) -> Result<BigInt, Finding> {
    let bytes = match kind {
        "ipv4" => text.parse::<Ipv4Addr>().ok().map(|address| address.octets().to_vec()),
        "ipv6" => text.parse::<Ipv6Addr>().ok().map(|address| address.octets().to_vec()),
        "mac" => mac(text),
        _ => {
            let finding = Finding::error("restriction-syntax", at, format!("unknown kind of address: `{kind}`"));
            return Err(finding.help("the kinds are `ipv4`, `ipv6` and `mac`"));
        }
    };
    let wrong = || Finding::error("restriction-syntax", inner, format!("this is not an address of kind `{kind}`"));
    Ok(BigInt::from_bytes_be(Sign::Plus, &bytes.ok_or_else(wrong)?))
}

fn mac(text: &str) -> Option<Vec<u8>> {
    let byte = |part: &str| {
        let plain = part.len() == 2 && part.bytes().all(|digit| digit.is_ascii_hexdigit());
        plain.then(|| u8::from_str_radix(part, 16).ok()).flatten()
    };
    let bytes: Option<Vec<u8>> = text.split(':').map(byte).collect();
    bytes.filter(|bytes| bytes.len() == 6)
}
