//! Parses subjects: fields, counters, aggregates.

use diagnostics::{Diagnostic, Span};

use super::{RuleParser, RuleResult};
use crate::compile::aggregates::{MAX_LINKED_KEY_FIELDS, WINDOW_LIMIT_US};
use crate::format::{FieldId, NameError, Subject, ValueKind, Window};
use crate::rule::{Aggregate, AggregateWindow, Function};
use crate::syntax::lex::RuleToken;
use crate::syntax::value::Constant;

/// A number of fields after `by` that no linked aggregate has.
const MORE_THAN_LINKED: usize = MAX_LINKED_KEY_FIELDS + 1;

impl RuleParser<'_> {
    pub(super) fn subject(&mut self) -> RuleResult<Subject> {
        let RuleToken::Word(name) = self.next.token else {
            let error = self.unexpected("a field");
            return self.fail(error);
        };
        if *self.peek_second() == RuleToken::Sign("(") {
            return self.aggregate();
        }
        let span = self.take().span;
        self.named(name, span)
    }

    /// Resolves a name to a field or counter.
    pub(super) fn named(&mut self, name: &str, span: Span) -> RuleResult<Subject> {
        let format = self.format;
        match format.field_by_path(name) {
            Some((field, header)) if format.get(field).header == Some(header) => return Ok(Subject::Field(field)),
            Some((field, header)) => {
                let (field, header) = (&format.get(field).name, &format.get_header(header).name);
                let error =
                    Diagnostic::error("rule-type", span, format!("`{field}` is one field of several headers here"));
                return self.fail(error.help(format!("write `{field}`, and `valid({header})` in the condition")));
            }
            None => {}
        }
        format.subject(name).or_else(|why| {
            let shown: String = name.chars().take(60).collect();
            let message = match why {
                NameError::Unknown => format!("there is no field or counter `{shown}`"),
                NameError::Ambiguous(one, other) => {
                    format!("`{shown}` is ambiguous: `{}` or `{}`", format.name(one), format.name(other))
                }
            };
            let names = || {
                let fields = format.fields().iter().map(|field| &*field.name);
                fields.chain(format.counters().iter().map(|counter| &*counter.name))
            };
            let error = Diagnostic::error("unknown-field", span, message);
            let error = error.help(match super::lower_case(name) {
                Some(hint) => hint.to_owned(),
                None if name == "count" => "write `count()` for the number of messages before".to_owned(),
                None if Function::ALL.iter().any(|(function, _)| *function == name) => {
                    format!("write `{name}(FIELD)` for a value of the messages before")
                }
                None => format!("rules can test {}", diagnostics::names::listed(names())),
            });
            // `hdr.ipv4.src` is its name in P4.
            let is_known = |rest: &&str| format.subject(rest).is_ok() || format.field_by_path(rest).is_some();
            let without_struct = name.split_once('.').map(|(_, rest)| rest).filter(is_known);
            self.fail(match without_struct.or_else(|| diagnostics::names::nearest(&shown, names())) {
                Some(near) if why == NameError::Unknown => error.label(format!("did you mean `{near}`?")),
                _ => error,
            })
        })
    }

    fn field(&mut self) -> RuleResult<FieldId> {
        let RuleToken::Word(name) = self.next.token else {
            let error = self.unexpected("a field");
            return self.fail(error);
        };
        let span = self.take().span;
        match self.named(name, span)? {
            Subject::Field(id) => Ok(id),
            _ => {
                let error = Diagnostic::error("rule-type", span, format!("`{name}` is a counter, not a field"));
                self.fail(error)
            }
        }
    }

    fn aggregate(&mut self) -> RuleResult<Subject> {
        let start = self.take();
        let RuleToken::Word(name) = start.token else { unreachable!("the caller saw a word") };
        let Some((_, function)) = Function::ALL.into_iter().find(|(other, _)| *other == name) else {
            let names = || Function::ALL.into_iter().map(|(name, _)| name).chain(["valid"]);
            let error = Diagnostic::error("rule-syntax", start.span, format!("there is no function `{name}`"));
            let error = error.help(match name {
                "fwd" | "drop" | "to_controller" => "separate actions with `;`, and rules with a line break".to_owned(),
                _ => format!("conditions can use {}", diagnostics::names::listed(names())),
            });
            let near = match name {
                "mean" | "average" => Some("avg"),
                _ => diagnostics::names::nearest(name, names()),
            };
            return self.fail(match near {
                Some(near) => error.label(format!("did you mean `{near}`?")),
                None => error,
            });
        };
        self.take();
        let is_clause =
            matches!(self.next.token, RuleToken::Word("by" | "over")) && *self.peek_second() != RuleToken::Sign(")");
        let field = if self.is(")") || is_clause { None } else { Some((self.next.span, self.field()?)) };
        let (mut by, mut window) = (Vec::new(), None);
        self.clauses(&mut by, &mut window)?;
        self.expect(")", "the parenthesis is not closed")?;
        self.clauses(&mut by, &mut window)?;
        match field {
            None if function != Function::Count => {
                let error = Diagnostic::error("rule-type", start.span, format!("`{name}` needs a field"));
                return self.fail(error.help(format!("write `{name}(field)`; only `count()` takes none")));
            }
            Some((span, id)) if function != Function::Count && self.format.get(id).kind != ValueKind::Unsigned => {
                let message = format!("`{}` is not a number, so it cannot be aggregated", self.format.get(id).name);
                return self.fail(Diagnostic::error("rule-type", span, message));
            }
            _ => {}
        }
        // A count does not depend on the field's value but on its presence.
        let field = field.map(|(_, id)| id);
        let window = match window {
            Some((window, span)) if function == Function::Ewma => Some(self.decaying(window, span)?),
            window => window.map(|(window, _)| window),
        };
        let default = function.default_window();
        let mut aggregate = Aggregate { function, field, by, window: window.unwrap_or(default) };
        if window.is_none() && !self.declares {
            aggregate.window = self.format.window_of(&aggregate);
        }
        if !self.declares && !self.format.computes(&aggregate) {
            return self.not_computed(start.span.to(self.end), &aggregate);
        }
        let at = self.aggregates.iter().position(|other| *other == aggregate).unwrap_or_else(|| {
            self.aggregates.push(aggregate);
            self.aggregates.len() - 1
        });
        if at >= usize::from(u16::MAX) {
            let error = Diagnostic::error("rule-size", start.span, "a rule has too many aggregates");
            return self.fail(error);
        }
        Ok(Subject::Aggregate(at as u16))
    }

    /// Reports an aggregate that the program does not compute.
    fn not_computed<T>(&mut self, span: Span, aggregate: &Aggregate) -> RuleResult<T> {
        let format = self.format;
        let shown = aggregate.shown(format).to_string();
        let error = Diagnostic::error("aggregates", span, format!("the program does not compute `{shown}`"));
        let declared = format.computed().iter().filter_map(|computed| computed.aggregate.as_ref());
        let declared: Vec<String> = declared.map(|aggregate| aggregate.shown(format).to_string()).collect();
        let has_linked = (0..format.slots).any(|slot| format.is_linked(slot));
        let error = error.label(match (declared.is_empty(), has_linked, aggregate.by.len()) {
            (_, true, parts @ MORE_THAN_LINKED..) => {
                format!("a linked aggregate has at most {MAX_LINKED_KEY_FIELDS} fields after `by`, not {parts}")
            }
            (_, true, _) => {
                format!("the window of a linked aggregate is shorter than {WINDOW_LIMIT_US} us (1,628 days)")
            }
            (true, false, _) => "it computes no aggregates".to_owned(),
            (false, false, _) => {
                format!("it computes {}", diagnostics::names::listed(declared.iter().map(String::as_str)))
            }
        });
        self.fail(error.help(format!(
            "write `@query_aggregate(\"{shown}\")` before the headers struct of the format, or \
             `@query_aggregate(\"any\")` for any aggregate, and regenerate the program (`triplane subscribe program`)"
        )))
    }

    /// Parses `by field, field` and `over window`, in any order, each at most once.
    fn clauses(&mut self, by: &mut Vec<FieldId>, window: &mut Option<(AggregateWindow, Span)>) -> RuleResult<()> {
        loop {
            self.count(self.next.span)?;
            match self.next.token {
                RuleToken::Word("by") if by.is_empty() => {
                    self.take();
                    by.push(self.field()?);
                    while self.accept(",") {
                        self.count(self.next.span)?;
                        by.push(self.field()?);
                    }
                    by.sort_unstable();
                    by.dedup();
                }
                RuleToken::Word("over") if window.is_none() => {
                    self.take();
                    let start = self.next.span;
                    let of = self.window()?;
                    *window = Some((of, start.to(self.end)));
                }
                _ => return Ok(()),
            }
        }
    }

    fn window(&mut self) -> RuleResult<AggregateWindow> {
        match self.next.token {
            RuleToken::Word("all") => {
                self.take();
                Ok(AggregateWindow::All)
            }
            RuleToken::Word("previous") => {
                self.take();
                self.length().map(AggregateWindow::Previous)
            }
            RuleToken::Word("last" | "sliding") => {
                let error = Diagnostic::error("rule-syntax", self.next.span, "this is not a valid window");
                self.fail(error.help(
                    "write `over previous 1s` for the last complete window, or `ewma(field) over 16 packets` for a \
                     moving average",
                ))
            }
            _ => self.length().map(AggregateWindow::Tumbling),
        }
    }

    /// Returns the window of a moving average.
    fn decaying(&mut self, window: AggregateWindow, span: Span) -> RuleResult<AggregateWindow> {
        const MAX: u64 = 1 << AggregateWindow::MAX_SHIFT;
        match window {
            AggregateWindow::Tumbling(Window::Packets(packets)) if packets.is_power_of_two() && packets <= MAX => {
                Ok(AggregateWindow::Decaying { shift: packets.ilog2() })
            }
            _ => {
                let message = format!("the window of `ewma` is a power of two of packets, up to {MAX}");
                let error = Diagnostic::error("rule-syntax", span, message);
                self.fail(error.help(match window {
                    AggregateWindow::Tumbling(Window::Packets(packets)) if packets < MAX => {
                        let above = packets.next_power_of_two();
                        format!("write `over {} packets` or `over {above} packets`", above / 2)
                    }
                    _ => "write `over 16 packets`: each message moves the average by 1/16 of the difference".to_owned(),
                }))
            }
        }
    }

    /// Parses the length of a window.
    pub(super) fn length(&mut self) -> RuleResult<Window> {
        let start = self.next.span;
        let parts = match self.next.token.clone() {
            RuleToken::Odd(text) => {
                let digits = text.bytes().take_while(u8::is_ascii_digit).count();
                self.take();
                text[..digits].parse::<u64>().ok().map(|number| (number, &text[digits..]))
            }
            RuleToken::Constant(Constant::Number(number)) => {
                self.take();
                match (u64::try_from(number), &self.next.token) {
                    (Ok(number), RuleToken::Word(unit)) => {
                        let unit = *unit;
                        self.take();
                        Some((number, unit))
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        let window = parts.and_then(|(number, unit)| {
            let micros = |factor: u64| number.checked_mul(factor).map(Window::Micros);
            match unit {
                "us" | "µs" => micros(1),
                "ms" => micros(1000),
                "s" => micros(1_000_000),
                "min" => micros(60_000_000),
                "packets" | "packet" => Some(Window::Packets(number)),
                _ => None,
            }
        });
        match window {
            Some(Window::Micros(0) | Window::Packets(0)) | None => {
                let error = Diagnostic::error("rule-syntax", start.to(self.end), "this is not a valid window");
                self.fail(error.help("write a window as `100ms`, `5 s`, `10 min` or `1000 packets`"))
            }
            Some(window) => Ok(window),
        }
    }
}
