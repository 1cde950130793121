//! Rule files: parses text to [`Rule`]s, resolves names and reports every mistake with its location.
//!
//! ```text
//! file       = { "include" TEXT | rule }
//! rule       = [ "rule" NAME ":" ] condition ":" action { ";" action } [ ";" ]
//! condition  = all { "or" all }
//! all        = not { "and" not }
//! not        = { "not" } ( "(" condition ")" | "true" | "false" | validity | test )
//! validity   = "valid" "(" HEADER ")" | HEADER ".isValid" "(" ")"
//! test       = subject comparison | value ( "==" | … ) subject
//! comparison = ( "==" | "!=" ) element | ( "<" | "<=" | ">" | ">=" ) value | [ "not" ] "in" ( element | set )
//! set        = "{" element { "," element } "}"          (or in parentheses; in brackets unless it is two numbers)
//! element    = value | value ".." value | value "/" LENGTH
//! subject    = FIELD | COUNTER | function "(" [ FIELD ] [ "by" FIELD { "," FIELD } ] [ "over" window ] ")"
//! window     = [ "previous" ] length | "all"
//! length     = NUMBER ( "us" | "ms" | "s" | "min" | "packets" )
//! action     = "fwd" "(" port { "," port } ")" | "drop" | "to_controller" | ACTION "(" [ value { "," value } ] ")"
//!            | COUNTER "<-" [ COUNTER ( "+" | "-" ) ] operand | COUNTER ( "+=" | "-=" ) operand
//!            | COUNTER "<-" ( "min" | "max" ) "(" COUNTER "," operand ")"
//! operand    = term [ ( "*" | "-" ) term ]
//! term       = NUMBER | FIELD | COUNTER
//! port       = NUMBER | NAME                            (names if the format has them)
//! ```
//!
//! Alternative spellings: `&&`, `∧`; `||`, `∨`; `!`, `¬`; `≤`, `≥`, `≠`, `∈`; `:=`, `←`. `by` and `over` may also
//! follow the parenthesis. Comments are `//`, `#` and `/* */`. Line ends have no meaning, except that error recovery
//! resumes at a line that looks like the beginning of a rule.

mod action;
mod condition;
mod subject;
mod value;

use std::collections::HashMap;

use diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, Span};

use crate::format::{MessageFormat, Subject, Window};
use crate::rule::{Aggregate, Condition, Rule};
use crate::syntax::lex::{Lexer, RuleToken, SIGN_WORDS, SpannedToken};
use crate::syntax::value::Constant;

/// Keywords of the rule language. Fields, headers, counters and actions should have other names.
pub const WORDS: [&str; 20] = [
    "and",
    "or",
    "not",
    "in",
    "true",
    "false",
    "valid",
    "rule",
    "include",
    "by",
    "over",
    "fwd",
    "drop",
    "to_controller",
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "ewma",
];

/// Maximum nesting depth of parentheses and `not`.
pub const MAX_DEPTH: usize = 64;
/// Maximum number of tests and values in one rule.
pub const MAX_PARTS: usize = 1 << 16;
/// Maximum number of files that one set of rules may include.
pub const MAX_FILES: usize = 1000;
/// Maximum total size of the files of one set of rules, in bytes.
pub const MAX_BYTES: usize = 1 << 30;
/// Maximum nesting depth of includes.
const MAX_INCLUDES: usize = 16;

/// Loads the files that rule files include.
pub trait Loader {
    /// Returns the display name and the text of the file that `from` includes as `name`.
    ///
    /// # Errors
    /// If the file cannot be included.
    fn load(&mut self, name: &str, from: &str) -> Result<(String, String), IncludeError>;
}

/// Reason that a file cannot be included. As text it is a clause that follows the file's name.
#[derive(Debug, thiserror::Error)]
pub enum IncludeError {
    /// These rules cannot include files.
    #[error("cannot be included here")]
    NotAllowed,
    /// The nesting is deeper than the maximum, or [`MAX_FILES`] are included.
    #[error("is included too deeply, or there are too many files")]
    TooMany,
    /// The file cannot be loaded, with the loader's error.
    #[error(transparent)]
    Unreadable(Box<dyn std::error::Error + Send + Sync>),
}

/// A loader that rejects every include.
pub struct NoIncludes;

impl Loader for NoIncludes {
    fn load(&mut self, _: &str, _: &str) -> Result<(String, String), IncludeError> {
        Err(IncludeError::NotAllowed)
    }
}

/// Parses a file and its includes. Mistakes are pushed to `diagnostics` and rules with a mistake are skipped; the
/// others are returned in source order.
pub fn parse(
    map: &mut SourceMap,
    name: &str,
    text: impl Into<std::sync::Arc<str>>,
    format: &MessageFormat,
    loader: &mut dyn Loader,
    diagnostics: &mut Diagnostics,
) -> Vec<Rule> {
    let mut rules = Vec::new();
    let text = text.into();
    if u32::try_from(text.len()).is_err() {
        let error = Diagnostic::error("rule-file", Span::default(), format!("{name} is larger than 4 GB"));
        diagnostics.push(error.help("split it into several files"));
        return rules;
    }
    let mut budget = (MAX_FILES, MAX_BYTES.saturating_sub(text.len()));
    let root = map.add(name, text);
    // Files to be read, with their nesting depth and the names of the including files.
    let mut waiting = vec![(root, 0, Vec::<String>::new())];
    while let Some((file, depth, path)) = waiting.pop() {
        let text = map.file(file).text().clone();
        let (mut found, includes) = RuleParser::new(&text, file, format, diagnostics).file();
        rules.append(&mut found);
        let from = map.file(file).name().to_owned();
        let mut next = Vec::new();
        for (wanted, span) in includes {
            let refuse = |why: String| Diagnostic::error("include", span, why);
            let path: Vec<String> = path.iter().cloned().chain([from.clone()]).collect();
            let loaded = if depth >= MAX_INCLUDES || budget.0 == 0 {
                Err(IncludeError::TooMany)
            } else {
                loader.load(&wanted, &from)
            };
            match loaded {
                Ok((name, _)) if path.contains(&name) => {
                    diagnostics.push(refuse(format!("`{wanted}` includes itself")).label("here again"));
                }
                Ok((_, text)) if text.len() > budget.1 => {
                    diagnostics.push(refuse(format!("`{wanted}` is too large: all files together may have 1 GB")));
                }
                Ok((name, text)) => {
                    budget = (budget.0 - 1, budget.1 - text.len());
                    next.push((map.add(&name, text), depth + 1, path));
                }
                Err(why) => diagnostics.push(refuse(format!("`{wanted}` {why}"))),
            }
        }
        waiting.extend(next.into_iter().rev());
    }
    rules
}

/// Reports rules with equal names, because diagnostics identify rules by name.
pub fn named_once(rules: &[Rule], diagnostics: &mut Diagnostics) {
    let mut named: HashMap<&str, Span> = HashMap::new();
    for rule in rules {
        let Some(name) = &rule.name else { continue };
        if let Some(first) = named.insert(name, rule.span) {
            let error = Diagnostic::error("rule-name", rule.span, format!("two rules have the name `{name}`"));
            diagnostics.push(error.also(first, "first rule with this name").help("give one of them another name"));
        }
    }
}

/// Parses a condition on its own, without actions: `stock == "A" and price > 5`. Aggregates are not allowed. Returns
/// `None` after a mistake, which is pushed to `diagnostics`.
pub fn condition(
    map: &mut SourceMap,
    name: &str,
    text: &str,
    format: &MessageFormat,
    diagnostics: &mut Diagnostics,
) -> Option<Condition> {
    let text = &text[..text.floor_char_boundary(u32::MAX as usize)];
    let file = map.add(name, text);
    let mut parser = RuleParser::new(text, file, format, diagnostics);
    parser.declares = true;
    let condition = parser.condition().ok()?;
    let refused = if parser.next.token != RuleToken::End {
        Diagnostic::error("rule-syntax", parser.next.span, "unexpected text after the condition")
            .help("join conditions with `and` or `or`; actions are not allowed here")
    } else if !parser.aggregates.is_empty() {
        let all = Span::new(file, 0, text.len() as u32);
        Diagnostic::error("aggregates", all, "aggregates cannot be tested here")
    } else {
        return Some(condition);
    };
    diagnostics.push(refused);
    None
}

/// Parses an aggregate on its own, as programs declare it: `avg(price) by stock over 100ms`. Returns `None` after a
/// mistake, which is pushed to `diagnostics`.
pub fn aggregate(
    map: &mut SourceMap,
    text: &str,
    format: &MessageFormat,
    diagnostics: &mut Diagnostics,
) -> Option<Aggregate> {
    let text = &text[..text.floor_char_boundary(u32::MAX as usize)];
    let file = map.add("aggregate", text);
    let mut parser = RuleParser::new(text, file, format, diagnostics);
    parser.declares = true;
    let Ok(subject) = parser.subject() else { return None };
    if parser.next.token == RuleToken::End && matches!(subject, Subject::Aggregate(_)) {
        return parser.aggregates.pop();
    }
    let error = Diagnostic::error("rule-syntax", parser.next.span, "this is not an aggregate");
    diagnostics.push(error.help("write `avg(price) by stock over 100ms`, `count() over 1000 packets`"));
    None
}

/// Parses the length of a window as in rules: `100ms`, `1000 packets`. Returns `None` for any other text.
pub fn window(text: &str) -> Option<Window> {
    let (format, mut diagnostics) = (MessageFormat::new(), Diagnostics::new());
    let mut parser = RuleParser::new(
        &text[..text.floor_char_boundary(u32::MAX as usize)],
        FileId::default(),
        &format,
        &mut diagnostics,
    );
    let window = parser.length().ok()?;
    (parser.next.token == RuleToken::End).then_some(window)
}

/// Parses a constant as in rules. Returns `None` unless the text is exactly one constant.
pub fn constant(text: &str) -> Option<Constant> {
    let mut lexer = Lexer::new(text, FileId::default());
    match (lexer.next().token, lexer.next().token) {
        (RuleToken::Constant(constant), RuleToken::End) => Some(constant),
        _ => None,
    }
}

/// Marker that a mistake was reported.
#[derive(Debug)]
struct Reported;

type RuleResult<T> = Result<T, Reported>;

struct RuleParser<'a> {
    lexer: Lexer<'a>,
    next: SpannedToken<'a>,
    after: Option<SpannedToken<'a>>,
    /// Location of the last token taken.
    end: Span,
    format: &'a MessageFormat,
    diagnostics: &'a mut Diagnostics,
    /// Name and location of the current rule, if it has a name.
    rule: Option<(&'a str, Span)>,
    aggregates: Vec<Aggregate>,
    depth: usize,
    parts: usize,
    /// Whether the current test has a range, and whether it has a prefix.
    stretches: (bool, bool),
    /// Whether any aggregate is allowed, as in declarations; one without `over` then has the default window.
    declares: bool,
}

impl<'a> RuleParser<'a> {
    fn new(text: &'a str, file: FileId, format: &'a MessageFormat, diagnostics: &'a mut Diagnostics) -> Self {
        let mut lexer = Lexer::new(text, file);
        let next = lexer.next();
        RuleParser {
            lexer,
            next,
            after: None,
            end: Span::new(file, 0, 0),
            format,
            diagnostics,
            rule: None,
            aggregates: Vec::new(),
            depth: 0,
            parts: 0,
            stretches: (false, false),
            declares: false,
        }
    }

    /// Parses the whole file. Returns its rules and its includes.
    fn file(mut self) -> (Vec<Rule>, Vec<(String, Span)>) {
        let (mut rules, mut includes) = (Vec::new(), Vec::new());
        while self.next.token != RuleToken::End && self.diagnostics.error_count() <= Diagnostics::MAX_KEPT {
            if self.next.token == RuleToken::Word("include") && matches!(self.peek_second(), RuleToken::Constant(_)) {
                self.take();
                match self.take() {
                    SpannedToken { token: RuleToken::Constant(Constant::Text(name)), span, .. } => {
                        includes.push((name, span));
                    }
                    SpannedToken { span, .. } => {
                        let error = Diagnostic::error("rule-syntax", span, "expected a file name");
                        self.diagnostics.push(error.help("write `include \"other.rules\"`"));
                    }
                }
                continue;
            }
            let start = self.next.span;
            match self.one_rule() {
                Ok(rule) => rules.push(rule),
                Err(Reported) => self.recover(start),
            }
        }
        (rules, includes)
    }

    fn one_rule(&mut self) -> RuleResult<Rule> {
        self.rule = None;
        self.depth = 0;
        self.parts = 0;
        self.aggregates.clear();
        let start = self.next.span;
        let mut name = None;
        if self.next.token == RuleToken::Word("rule") && matches!(self.peek_second(), RuleToken::Word(_)) {
            self.take();
            if let SpannedToken { token: RuleToken::Word(word), span, .. } = self.take() {
                self.rule = Some((word, span));
                name = Some(word.into());
            }
            self.expect(":", "write `:` after the name of a rule")?;
        } else if self.next.token == RuleToken::Word("rule")
            && let RuleToken::Sign(word) = *self.peek_second()
            && SIGN_WORDS.contains(&word)
        {
            self.take();
            let error = Diagnostic::error("rule-syntax", self.next.span, format!("a rule cannot be named `{word}`"));
            return self.fail(error.help("write `rule NAME: condition : action`"));
        }
        let condition = self.condition()?;
        self.expect(":", "write `:` before the actions")?;
        let actions = self.actions()?;
        let aggregates = std::mem::take(&mut self.aggregates);
        Ok(Rule { name, span: start.to(self.end), condition, actions, aggregates })
    }

    /// Skips to the next line that may begin a rule.
    fn recover(&mut self, start: Span) {
        loop {
            let continues = match &self.next.token {
                RuleToken::End => return,
                RuleToken::Sign(sign) => !matches!(*sign, "(" | "not"),
                RuleToken::Constant(_) | RuleToken::Odd(_) | RuleToken::Bad(_) => true,
                // Actions are sometimes indented below their rule.
                RuleToken::Word("fwd" | "drop" | "to_controller") => true,
                RuleToken::Word(_) => false,
            };
            // At least one token is consumed per rule, so that recovery terminates.
            if self.next.begins_line && !continues && self.next.span != start {
                return;
            }
            self.take();
        }
    }

    fn take(&mut self) -> SpannedToken<'a> {
        let next = match self.after.take() {
            Some(after) => after,
            None => self.lexer.next(),
        };
        self.end = self.next.span;
        std::mem::replace(&mut self.next, next)
    }

    fn peek_second(&mut self) -> &RuleToken<'a> {
        if self.after.is_none() {
            self.after = Some(self.lexer.next());
        }
        self.after.as_ref().map_or(&RuleToken::End, |at| &at.token)
    }

    fn is(&self, sign: &'static str) -> bool {
        self.next.token == RuleToken::Sign(sign)
    }

    /// Takes this sign if it is next.
    fn accept(&mut self, sign: &'static str) -> bool {
        let is = self.is(sign);
        if is {
            self.take();
        }
        is
    }

    fn expect(&mut self, sign: &'static str, why: &str) -> RuleResult<()> {
        if self.accept(sign) {
            return Ok(());
        }
        let mut error = self.unexpected(&format!("`{sign}`"));
        if error.help.is_none() {
            error = error.label(why);
        }
        error.help = error.help.or(match (sign, &self.next.token) {
            (":", RuleToken::Sign("-")) => Some("write a range as `10..20`".to_owned()),
            (":", RuleToken::Sign("=")) => Some("use `==` for equality".to_owned()),
            (":", RuleToken::Sign("&")) => Some("use `and` or `&&` for a conjunction".to_owned()),
            (":", RuleToken::Sign("|")) => Some("use `or` or `||` for a disjunction".to_owned()),
            _ => None,
        });
        self.fail(error)
    }

    /// Returns an error for an unexpected next token.
    fn unexpected(&self, expected: &str) -> Diagnostic {
        let message = match &self.next.token {
            RuleToken::Bad(why) => (*why).to_owned(),
            other => format!("expected {expected}, found {}", describe(other)),
        };
        let mut error = Diagnostic::error("rule-syntax", self.next.span, message);
        error.help = hint(&self.next.token).map(str::to_owned);
        error
    }

    /// Reports a mistake in the current rule.
    fn report(&mut self, error: Diagnostic) {
        let error = match self.rule {
            Some((name, span)) => error.also(span, format!("in rule `{name}`")),
            None => error,
        };
        self.diagnostics.push(error);
    }

    fn fail<T>(&mut self, error: Diagnostic) -> RuleResult<T> {
        self.report(error);
        Err(Reported)
    }

    /// Counts one test or value of the rule against the limit.
    fn count(&mut self, span: Span) -> RuleResult<()> {
        self.parts += 1;
        if self.parts > MAX_PARTS {
            let error =
                Diagnostic::error("rule-size", span, format!("a rule has at most {MAX_PARTS} tests and values"));
            return self
                .fail(error.help("split it into several rules with the same actions: all matching rules apply"));
        }
        Ok(())
    }
}

/// Returns a hint for spellings of other languages and of papers.
fn hint(token: &RuleToken<'_>) -> Option<&'static str> {
    Some(match token {
        RuleToken::Sign("^" | "/\\") => "use `and`, `&&` or `∧` for a conjunction",
        RuleToken::Sign("\\/") => "use `or`, `||` or `∨` for a disjunction",
        RuleToken::Sign("->" | "=>" | "→") => "write `:` between the condition and the actions",
        RuleToken::Word(word) => lower_case(word)?,
        _ => return None,
    })
}

/// Returns a hint for a keyword that is written with capital letters.
fn lower_case(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_lowercase().as_str() {
        "and" => "keywords are in lower case: `and`",
        "or" => "keywords are in lower case: `or`",
        "not" => "keywords are in lower case: `not`",
        "in" => "keywords are in lower case: `in`",
        _ => return None,
    })
}

/// Returns the description of a token for messages.
fn describe(token: &RuleToken<'_>) -> String {
    match token {
        RuleToken::Word(word) | RuleToken::Odd(word) => format!("`{}`", word.chars().take(60).collect::<String>()),
        RuleToken::Constant(constant) => constant.describe().to_owned(),
        RuleToken::Sign(sign) => format!("`{sign}`"),
        RuleToken::Bad(why) => (*why).to_owned(),
        RuleToken::End => "the end of the file".to_owned(),
    }
}
