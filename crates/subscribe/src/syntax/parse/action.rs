//! Parses actions.

use diagnostics::Diagnostic;

use super::{RuleParser, RuleResult};
use crate::format::{CounterId, NameError, Padding, Subject, ValueKind};
use crate::rule::{Operand, RuleAction, Term, Update, UpdateFunction};
use crate::syntax::lex::RuleToken;
use crate::syntax::value::Constant;

impl<'a> RuleParser<'a> {
    /// Parses the actions up to the end of the rule. After a `;`, another action follows if one can begin there.
    pub(super) fn actions(&mut self) -> RuleResult<Vec<RuleAction>> {
        let mut actions = vec![self.action()?];
        while self.accept(";") {
            let word = match self.next.token {
                RuleToken::Word(word) => word,
                _ => break,
            };
            let begins_test = word == "valid" || word.ends_with(".isValid");
            let is_action = match self.peek_second() {
                RuleToken::Sign("<-" | "+=" | "-=") => true,
                RuleToken::Sign("(") => {
                    !begins_test && !crate::rule::Function::ALL.iter().any(|(name, _)| *name == word)
                }
                _ => matches!(word, "drop" | "to_controller") || self.is_call(word),
            };
            if !is_action {
                break;
            }
            self.count(self.next.span)?;
            actions.push(self.action()?);
        }
        Ok(actions)
    }

    /// Whether a word alone is an action of the program and does not begin a condition.
    fn is_call(&self, word: &str) -> bool {
        self.format.action_named(word).is_some() && self.format.subject(word).is_err()
    }

    fn action(&mut self) -> RuleResult<RuleAction> {
        let RuleToken::Word(word) = self.next.token else {
            let error = self.unexpected("an action").help(self.known_actions());
            return self.fail(error);
        };
        if matches!(self.peek_second(), RuleToken::Sign("<-" | "+=" | "-=" | "=")) {
            return self.update();
        }
        let span = self.take().span;
        match word {
            "fwd" => self.forward(),
            "drop" | "to_controller" => {
                // A parenthesis may begin the next rule.
                if self.is("(") && *self.peek_second() == RuleToken::Sign(")") {
                    self.take();
                    self.take();
                }
                Ok(if word == "drop" { RuleAction::Drop } else { RuleAction::ToController })
            }
            _ => {
                let Some(id) = self.format.action_named(word) else {
                    let error = Diagnostic::error("unknown-action", span, format!("there is no action `{word}`"));
                    let own = self.format.actions().iter().map(|action| &*action.name);
                    let near =
                        diagnostics::names::nearest(word, ["fwd", "drop", "to_controller"].into_iter().chain(own));
                    let error = error.help(self.known_actions());
                    return self.fail(match near {
                        Some(near) => error.label(format!("did you mean `{near}`?")),
                        None => error,
                    });
                };
                let arguments = self.arguments(id)?;
                Ok(RuleAction::Call(id, arguments))
            }
        }
    }

    fn known_actions(&self) -> String {
        let own = self.format.actions().iter().map(|action| &*action.name);
        let all = ["fwd", "drop", "to_controller"].into_iter().chain(own);
        format!(
            "the actions are {}, and updates of counters (`counter <- counter + 1`)",
            diagnostics::names::listed(all)
        )
    }

    fn forward(&mut self) -> RuleResult<RuleAction> {
        self.expect("(", "write the ports in parentheses: `fwd(1, 2)`")?;
        let mut ports = Vec::new();
        loop {
            self.count(self.next.span)?;
            let span = self.next.span;
            let port = self.port()?;
            if self.format.controller_port == Some(port) {
                let message = format!("port {port} is the port of the controller");
                let warning = Diagnostic::warning("controller-port", span, message);
                self.diagnostics.push(warning.help("write `to_controller`, or choose another controller port"));
            }
            ports.push(port);
            self.take();
            if !self.accept(",") {
                break;
            }
        }
        self.expect(")", "the ports are not closed")?;
        ports.sort_unstable();
        ports.dedup();
        Ok(RuleAction::Forward(ports))
    }

    /// Returns the port that the next token denotes.
    fn port(&mut self) -> RuleResult<u32> {
        let (format, max) = (self.format, self.format.max_port);
        let names = || format.port_names.keys().map(String::as_str);
        let error = match self.next.token {
            RuleToken::Constant(Constant::Number(port)) if format.port_names.is_empty() => match u32::try_from(port) {
                Ok(port) if port <= max || format.controller_port == Some(port) => return Ok(port),
                _ => Diagnostic::error("rule-type", self.next.span, format!("there is no port {port}")).help(
                    match format.more_ports {
                        Some(advice) => format!("the ports are 0 to {max}; {advice}"),
                        None => format!("the ports are 0 to {max}; use `drop` to drop messages"),
                    },
                ),
            },
            RuleToken::Word(word) if !format.port_names.is_empty() => match format.port_names.get(word) {
                Some(port) => return Ok(*port),
                None => {
                    let error = Diagnostic::error("rule-type", self.next.span, format!("there is no host `{word}`"));
                    match diagnostics::names::nearest(word, names()) {
                        Some(near) => error.label(format!("did you mean `{near}`?")),
                        None => error.help(format!("the hosts are {}", diagnostics::names::listed(names()))),
                    }
                }
            },
            RuleToken::Word(word) => {
                Diagnostic::error("rule-host", self.next.span, format!("expected a port, found `{word}`"))
                    .help("ports are numbers: `fwd(1, 2)`; names of hosts are for rules of a network with a topology")
            }
            _ if format.port_names.is_empty() => self.unexpected("a port").help("ports are numbers: `fwd(1, 2)`"),
            _ => self
                .unexpected("a host")
                .help(format!("rules of a network deliver to hosts: {}", diagnostics::names::listed(names()))),
        };
        self.fail(error)
    }

    fn arguments(&mut self, id: crate::format::ActionId) -> RuleResult<Vec<u128>> {
        let format = self.format;
        let action = format.get_action(id);
        let mut values = Vec::new();
        if action.parameters.is_empty() && !(self.is("(") && *self.peek_second() == RuleToken::Sign(")")) {
            return Ok(values);
        }
        self.expect("(", "write the arguments in parentheses")?;
        let start = self.end;
        while !self.is(")") {
            self.count(self.next.span)?;
            let (constant, span) = self.constant("a value")?;
            if let Some(parameter) = action.parameters.get(values.len()) {
                // Text is padded like text fields with `@format(TEXT)`.
                let kind = match &constant {
                    Constant::Text(_) if parameter.width.is_multiple_of(8) => ValueKind::Text(Padding::SPACES),
                    _ => ValueKind::Unsigned,
                };
                match constant.value(kind, parameter.width) {
                    Ok(value) => values.push(value),
                    Err(why) => {
                        let message = format!("the argument for `{}` {why}", parameter.name);
                        return self.fail(Diagnostic::error("rule-type", span, message));
                    }
                }
            } else {
                values.push(0);
            }
            if !self.accept(",") {
                break;
            }
        }
        self.expect(")", "the arguments are not closed")?;
        if values.len() != action.parameters.len() {
            let (has, takes) = (values.len(), action.parameters.len());
            let takes = format!("{takes} argument{}", if takes == 1 { "" } else { "s" });
            let message = format!("`{}` takes {takes}, but has {has} here", action.name);
            let names = diagnostics::names::listed(action.parameters.iter().map(|parameter| &*parameter.name));
            let error = Diagnostic::error("rule-type", start.to(self.end), message);
            return self.fail(error.help(format!("the parameters are {names}")));
        }
        Ok(values)
    }

    fn counter(&mut self) -> RuleResult<CounterId> {
        let RuleToken::Word(name) = self.next.token else {
            let error = self.unexpected("a counter");
            return self.fail(error);
        };
        let span = self.take().span;
        if matches!(self.format.subject(name), Err(NameError::Unknown)) && !name.contains('.') {
            let counters = self.format.counters().iter().map(|counter| &*counter.name);
            let near = diagnostics::names::nearest(name, counters);
            let error = Diagnostic::error("unknown-field", span, format!("there is no counter `{name}`"));
            return self.fail(match near {
                Some(near) => error.label(format!("did you mean `{near}`?")),
                None => error.help(format!("write `@query_counter({name})` before the headers struct of the format")),
            });
        }
        match self.named(name, span)? {
            Subject::Counter(id) => Ok(id),
            _ => {
                let counters = diagnostics::names::listed(self.format.counters().iter().map(|counter| &*counter.name));
                let error =
                    Diagnostic::error("rule-type", span, format!("`{name}` is a field; rules cannot change fields"));
                self.fail(error.help(format!("rules can change only counters: {counters}")))
            }
        }
    }

    fn update(&mut self) -> RuleResult<RuleAction> {
        let counter = self.counter()?;
        let sign = self.take();
        let update = |function, operand| Ok(RuleAction::Update(Update { counter, function, operand }));
        match sign.token {
            RuleToken::Sign("+=") => return update(UpdateFunction::Add, self.operand(counter)?),
            RuleToken::Sign("-=") => return update(UpdateFunction::Subtract, self.operand(counter)?),
            RuleToken::Sign("=") => {
                let error = Diagnostic::error("rule-syntax", sign.span, "use `<-` to change a counter");
                return self.fail(error.help("write `counter <- counter + 1`, or `counter += 1`"));
            }
            _ => {}
        }
        if let RuleToken::Word(word @ ("min" | "max")) = self.next.token
            && *self.peek_second() == RuleToken::Sign("(")
        {
            self.take();
            self.take();
            self.same(counter)?;
            self.expect(",", "write `min(counter, field)`")?;
            let operand = self.operand(counter)?;
            self.expect(")", "the parenthesis is not closed")?;
            return update(if word == "min" { UpdateFunction::Min } else { UpdateFunction::Max }, operand);
        }
        if let RuleToken::Word(name) = self.next.token
            && self.format.subject(name) == Ok(Subject::Counter(counter))
        {
            self.take();
            let function = match self.next.token {
                RuleToken::Sign("+") => UpdateFunction::Add,
                RuleToken::Sign("-") => UpdateFunction::Subtract,
                RuleToken::Sign("*") => {
                    let operand = self.combined(counter, Term::Counter(counter))?;
                    return update(UpdateFunction::Set, operand);
                }
                _ => {
                    let error = self.unexpected("`+`, `-` or `*`");
                    return self.fail(error);
                }
            };
            self.take();
            return update(function, self.operand(counter)?);
        }
        update(UpdateFunction::Set, self.operand(counter)?)
    }

    /// Expects the updated counter again.
    fn same(&mut self, counter: CounterId) -> RuleResult<()> {
        let span = self.next.span;
        match self.counter()? {
            other if other == counter => Ok(()),
            _ => {
                let error = Diagnostic::error("rule-type", span, "an update can use only the counter that it changes");
                self.fail(error)
            }
        }
    }

    /// Parses a term, or the product or the difference of two.
    fn operand(&mut self, counter: CounterId) -> RuleResult<Operand> {
        let first = self.term(counter)?;
        self.combined(counter, first)
    }

    /// Parses what may follow the first term of an operand.
    fn combined(&mut self, counter: CounterId, first: Term) -> RuleResult<Operand> {
        let operand = if self.accept("*") {
            Operand::Product(first, self.term(counter)?)
        } else if self.accept("-") {
            Operand::Difference(first, self.term(counter)?)
        } else {
            Operand::Term(first)
        };
        let RuleToken::Sign(sign @ ("+" | "-" | "*")) = self.next.token else { return Ok(operand) };
        let name = &self.format.get_counter(counter).name;
        let help = match sign {
            "+" => format!("write `{name} <- {name} + …` to add to the counter"),
            _ => "an operand is a number, a field or a counter, or the product or difference of two".to_owned(),
        };
        let error = Diagnostic::error("rule-type", self.next.span, "an operand has at most one `*` or `-`");
        self.fail(error.help(help))
    }

    fn term(&mut self, counter: CounterId) -> RuleResult<Term> {
        self.count(self.next.span)?;
        if let RuleToken::Word(name) = self.next.token {
            let span = self.take().span;
            return match self.named(name, span)? {
                Subject::Field(id) => Ok(Term::Field(id)),
                Subject::Counter(id) => Ok(Term::Counter(id)),
                Subject::Aggregate(_) => {
                    let error = Diagnostic::error("rule-type", span, "an update takes numbers, fields and counters");
                    self.fail(error)
                }
            };
        }
        let (value, _) = self.value(Subject::Counter(counter))?;
        Ok(Term::Number(value))
    }
}
