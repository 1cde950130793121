//! Parses conditions.

use diagnostics::{Diagnostic, Span};

use super::{MAX_DEPTH, RuleParser, RuleResult};
use crate::format::{HeaderId, Match, MessageFormat, NameError, Subject, max_of};
use crate::ranges::Ranges;
use crate::rule::{Condition, Test};
use crate::syntax::lex::RuleToken;

/// Comparison operators.
const COMPARISONS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];

impl RuleParser<'_> {
    pub(super) fn condition(&mut self) -> RuleResult<Condition> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let message = format!("conditions can be nested at most {MAX_DEPTH} deep");
            let error = Diagnostic::error("rule-size", self.next.span, message);
            return self
                .fail(error.help("split it into several rules with the same actions: all matching rules apply"));
        }
        let mut any = vec![self.all()?];
        while self.accept("or") {
            any.push(self.all()?);
        }
        self.depth -= 1;
        Ok(if any.len() == 1 { any.remove(0) } else { Condition::Any(any) })
    }

    fn all(&mut self) -> RuleResult<Condition> {
        let mut all = vec![self.not()?];
        while self.accept("and") {
            all.push(self.not()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Condition::All(all) })
    }

    fn not(&mut self) -> RuleResult<Condition> {
        let mut negations = 0;
        while self.accept("not") {
            negations += 1;
            self.count(self.end)?;
        }
        let inner = self.one()?;
        // Two negations cancel out.
        Ok(if negations % 2 == 1 { Condition::Not(Box::new(inner)) } else { inner })
    }

    fn one(&mut self) -> RuleResult<Condition> {
        self.count(self.next.span)?;
        match self.next.token.clone() {
            RuleToken::Sign("(") => {
                self.take();
                let inner = self.condition()?;
                self.expect(")", "the parenthesis is not closed")?;
                Ok(inner)
            }
            RuleToken::Word("true") => {
                self.take();
                Ok(Condition::Always)
            }
            RuleToken::Word("false") => {
                self.take();
                Ok(Condition::Never)
            }
            RuleToken::Word("valid") if *self.peek_second() == RuleToken::Sign("(") => {
                let start = self.take().span;
                self.take();
                let RuleToken::Word(name) = self.next.token else {
                    let error = self.unexpected("a header").help(headers(self.format));
                    return self.fail(error);
                };
                let span = self.take().span;
                let header = self.header(name, span)?;
                self.expect(")", "the parenthesis is not closed")?;
                Ok(Condition::Valid { header, span: start.to(self.end) })
            }
            RuleToken::Word(word) if word.ends_with(".isValid") => {
                let span = self.take().span;
                let header = self.header(word.trim_end_matches(".isValid"), span)?;
                self.expect("(", "write a validity test as `header.isValid()`")?;
                self.expect(")", "write a validity test as `header.isValid()`")?;
                Ok(Condition::Valid { header, span: span.to(self.end) })
            }
            RuleToken::Constant(_) => self.reversed(),
            RuleToken::Word(_) => {
                let start = self.next.span;
                let (subject, header) = self.tested()?;
                let test = self.test(subject, start)?;
                Ok(in_header(header, test, start))
            }
            RuleToken::Sign(",") => {
                let error = self.unexpected("a rule").help("separate actions with `;`, or write `fwd(2, 3)`");
                self.fail(error)
            }
            _ => {
                let error = self.unexpected("a condition").help("write a test as `field == value`");
                self.fail(error)
            }
        }
    }

    fn header(&mut self, name: &str, span: Span) -> RuleResult<HeaderId> {
        let format = self.format;
        format.header_named(name).or_else(|why| {
            let message = match why {
                NameError::Unknown => format!("there is no header `{name}`"),
                NameError::Ambiguous(one, other) => {
                    let (one, other) = (&format.get_header(one).name, &format.get_header(other).name);
                    format!("`{name}` is ambiguous: `{one}` or `{other}`")
                }
            };
            let error = Diagnostic::error("unknown-header", span, message);
            let near = diagnostics::names::nearest(name, format.headers().iter().map(|header| &*header.name));
            self.fail(match near {
                Some(near) => error.label(format!("did you mean `{near}`?")).help(headers(format)),
                None => error.help(headers(format)),
            })
        })
    }

    /// Parses the comparison of a test.
    fn test(&mut self, subject: Subject, start: Span) -> RuleResult<Condition> {
        let negated = self.is("not") && *self.peek_second() == RuleToken::Sign("in");
        if negated {
            self.take();
        }
        let sign = self.next.span;
        self.stretches = (false, false);
        let values = if self.accept("in") {
            self.elements(subject)?
        } else {
            let Some(comparison) = COMPARISONS.into_iter().find(|sign| self.is(sign)) else {
                let mut error = self.unexpected("a comparison");
                error = match &self.next.token {
                    RuleToken::Sign("=") => error.help("use `==` for equality"),
                    RuleToken::Word("between") => error.help("write a range as `price in 5..10`"),
                    _ => error.help("write `==`, `!=`, `<`, `<=`, `>`, `>=` or `in` after a field"),
                };
                return self.fail(error);
            };
            self.take();
            match comparison {
                "==" | "!=" => self.element(subject)?,
                _ => {
                    let (value, _) = self.value(subject)?;
                    self.compared(subject, comparison, value)
                }
            }
        };
        let negated = negated || self.text_is_not(sign);
        self.finish(subject, values, negated, start, sign)
    }

    /// Whether the comparison at `span`, already consumed, was `!=`.
    fn text_is_not(&self, span: Span) -> bool {
        self.lexer.text_at(span).is_some_and(|text| text == "!=" || text == "≠")
    }

    /// Parses `5 < field`.
    fn reversed(&mut self) -> RuleResult<Condition> {
        let start = self.next.span;
        // The meaning of the constant depends on the field after it.
        let (constant, span) = self.constant("a value")?;
        let sign = self.next.span;
        self.stretches = (false, false);
        let Some(comparison) = COMPARISONS.into_iter().find(|sign| self.is(sign)) else {
            let error = self.unexpected("a comparison").help("write a test as `field == value`");
            return self.fail(error);
        };
        self.take();
        let (subject, header) = match self.next.token {
            RuleToken::Word(_) => self.tested()?,
            _ => {
                let error = self.unexpected("a field").help("a test compares a field with a constant");
                return self.fail(error);
            }
        };
        let value = self.fitting(subject, &constant, span)?;
        let mirrored = match comparison {
            "<" => ">",
            "<=" => ">=",
            ">" => "<",
            ">=" => "<=",
            same => same,
        };
        let values = match comparison {
            "==" | "!=" => Ranges::span(value, value),
            _ => self.compared(subject, mirrored, value),
        };
        if COMPARISONS.into_iter().any(|sign| self.is(sign)) {
            let error = Diagnostic::error("rule-syntax", self.next.span, "comparisons cannot be chained");
            return self.fail(error.help("write `field in 10..20`, or two tests with `and`"));
        }
        let test = self.finish(subject, values, comparison == "!=", start, sign)?;
        Ok(in_header(header, test, start))
    }

    /// Parses the subject of a test. A field may be named by the path of one of its headers, which is then returned,
    /// too.
    fn tested(&mut self) -> RuleResult<(Subject, Option<HeaderId>)> {
        let RuleToken::Word(name) = self.next.token else { return Ok((self.subject()?, None)) };
        let Some((field, header)) = self.format.field_by_path(name) else { return Ok((self.subject()?, None)) };
        self.take();
        let is_shared = self.format.get(field).header != Some(header);
        Ok((Subject::Field(field), is_shared.then_some(header)))
    }

    fn compared(&self, subject: Subject, comparison: &str, value: u128) -> Ranges {
        let max = max_of(self.format.width(subject));
        match comparison {
            "<" if value == 0 => Ranges::none(),
            "<" => Ranges::span(0, value - 1),
            "<=" => Ranges::span(0, value),
            ">" if value >= max => Ranges::none(),
            ">" => Ranges::span(value + 1, max),
            _ => Ranges::span(value, max),
        }
    }

    /// Returns the test if the field's match kind permits it.
    fn finish(
        &mut self,
        subject: Subject,
        values: Ranges,
        negated: bool,
        start: Span,
        sign: Span,
    ) -> RuleResult<Condition> {
        if let Subject::Field(id) = subject {
            let field = self.format.get(id);
            let (mut ranges, prefixes) = self.stretches;
            ranges |= self.lexer.text_at(sign).is_some_and(|text| ["<", ">", "<=", ">=", "≤", "≥"].contains(&text));
            let allowed = match field.matching {
                Match::Range | Match::Any => true,
                Match::Exact => !ranges && !prefixes,
                Match::Lpm => !ranges,
            };
            if !allowed {
                let (how, can) = match field.matching {
                    Match::Exact => ("exactly", "compare it with `==`, `!=` or `in { … }`"),
                    _ => ("by prefix", "compare it with values and prefixes, with `==`, `!=` or `in`"),
                };
                let message = format!("`{}` is matched {how} and cannot be tested for ranges", field.name);
                let error = Diagnostic::error("match-kind", start.to(self.end), message);
                return self
                    .fail(error.help(format!("{can}, or annotate the field with `@query_field` in the program")));
            }
        }
        let max = max_of(self.format.width(subject));
        let values = if negated { values.complement(max) } else { values };
        Ok(Condition::Test(Test { subject, values, span: start.to(self.end) }))
    }
}

/// Returns the test of a field in one of the headers that have it, if only that one counts.
fn in_header(header: Option<HeaderId>, test: Condition, span: Span) -> Condition {
    match header {
        Some(header) => Condition::All(vec![Condition::Valid { header, span }, test]),
        None => test,
    }
}

fn headers(format: &MessageFormat) -> String {
    format!("the headers are {}", diagnostics::names::listed(format.headers().iter().map(|header| &*header.name)))
}
