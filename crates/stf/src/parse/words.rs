//! Parses parts of lines: names, numbers, ports, values, rates, relations.

use diagnostics::{Diagnostic, Span};

use crate::lex::TokenLine;
use crate::script::{MeterRate, NodeReplica, NodeTargets, Relation, Word, WrittenValue};

pub(super) type LineResult<T> = Result<T, Box<Diagnostic>>;

pub(super) fn wrong(span: Span, message: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::error("stf-syntax", span, message))
}

pub(super) fn word(line: &mut TokenLine, what: &str) -> LineResult<Word> {
    let here = line.here();
    match line.next() {
        Some(word) if word.is_word() => Ok(word),
        Some(other) => Err(wrong(other.span, format!("expected {what}, found `{}`", other.text))),
        None => Err(wrong(here, format!("expected {what}, found the end of the line"))),
    }
}

pub(super) fn name(line: &mut TokenLine, what: &str) -> LineResult<Word> {
    word(line, &format!("the name of {what}"))
}

/// Parses a number that fits into `T`.
pub(super) fn small<T: TryFrom<u64>>(line: &mut TokenLine, what: &str) -> LineResult<T> {
    let word = word(line, what)?;
    let digits = word.text.to_ascii_lowercase();
    let parsed = match digits.get(..2) {
        Some("0x") => u64::from_str_radix(&digits[2..], 16),
        Some("0b") => u64::from_str_radix(&digits[2..], 2),
        _ => digits.parse(),
    };
    let fits = parsed.ok().and_then(|value| T::try_from(value).ok());
    fits.ok_or_else(|| wrong(word.span, format!("`{}` is not {what}", shown(&word.text))))
}

/// Parses a port number, which is checked when the script is bound to a program.
pub(super) fn port(line: &mut TokenLine) -> LineResult<u32> {
    let span = line.here();
    let port = small(line, "a port number")?;
    line.ports.push((port, span));
    Ok(port)
}

pub(super) fn queue(line: &mut TokenLine) -> LineResult<(Option<u32>, Option<usize>)> {
    let port = line.peek().is_some().then(|| port(line)).transpose()?;
    let span = line.here();
    let queue = line.peek().is_some().then(|| small(line, "a queue")).transpose()?;
    if queue.is_some_and(|queue: usize| queue >= switch::PRIORITIES) {
        return Err(wrong(span, format!("queues are numbered 0 to {}", switch::PRIORITIES - 1)));
    }
    Ok((port, queue))
}

/// Parses one or more elements, to the end of the line.
pub(super) fn many<T>(line: &mut TokenLine, read: impl Fn(&mut TokenLine) -> LineResult<T>) -> LineResult<Vec<T>> {
    let mut all = vec![read(line)?];
    while line.peek().is_some() {
        all.push(read(line)?);
    }
    Ok(all)
}

/// Shortens a long text for a message.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(40).collect()
}

/// `PORT[:BACKUP...]... [| LAG...]`, one or more, to the end of the line.
pub(super) fn targets(line: &mut TokenLine) -> LineResult<NodeTargets> {
    let mut targets = NodeTargets::default();
    let here = line.here();
    while line.peek().is_some_and(|word| word.text != "|") {
        let mut replica = NodeReplica { port: port(line)?, backups: Vec::new() };
        while line.take(":") {
            replica.backups.push(port(line)?);
        }
        targets.replicas.push(replica);
    }
    if line.take("|") {
        targets.lags = many(line, |line| small(line, "a LAG"))?;
    }
    if targets.replicas.is_empty() && targets.lags.is_empty() {
        Err(wrong(here, "expected a port number, found the end of the line"))
    } else {
        Ok(targets)
    }
}

pub(super) fn expect_sign(line: &mut TokenLine, sign: &str, what: &str) -> LineResult<()> {
    if line.take(sign) {
        return Ok(());
    }
    let found = line.peek().map_or("the end of the line".to_owned(), |word| format!("`{}`", shown(&word.text)));
    Err(wrong(line.here(), format!("expected {what}, found {found}")))
}

/// Parses a number with an optional sign.
pub(super) fn value(line: &mut TokenLine) -> LineResult<Word> {
    let sign = line.peek().filter(|word| word.text == "-").cloned();
    line.take("-");
    let number = word(line, "a value")?;
    Ok(match sign {
        Some(sign) => Word { text: format!("-{}", number.text), span: sign.span.to(number.span) },
        None => number,
    })
}

pub(super) fn written(line: &mut TokenLine) -> LineResult<WrittenValue> {
    let first = value(line)?;
    if line.take("/") {
        return Ok(WrittenValue::Prefix(first, word(line, "a prefix length")?));
    }
    if line.take("&&&") {
        return Ok(WrittenValue::Mask(first, word(line, "a mask")?));
    }
    if line.take("->") {
        return Ok(WrittenValue::Range(first, value(line)?));
    }
    if let Some((low, high)) = first.text.split_once("..") {
        // The two halves share the span of the whole.
        let half = |text: &str| Word { text: text.to_owned(), span: first.span };
        return Ok(WrittenValue::Range(half(low), half(high)));
    }
    Ok(WrittenValue::One(first))
}

pub(super) fn rate(line: &mut TokenLine) -> LineResult<MeterRate> {
    let number = word(line, "a rate")?;
    let per_us: Option<f64> = number.text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate >= 0.0);
    let per_us = per_us.ok_or_else(|| wrong(number.span, format!("`{}` is not a rate", shown(&number.text))))?;
    expect_sign(line, ":", "`:` and a burst size")?;
    Ok(MeterRate { per_us, burst: small(line, "a burst size")? })
}

pub(super) fn relation(line: &mut TokenLine) -> LineResult<Relation> {
    let here = line.here();
    let sign = line.next();
    match sign.as_ref().map(|word| word.text.as_str()) {
        Some("==") => Ok(Relation::Equal),
        Some("!=") => Ok(Relation::Unequal),
        Some("<") => Ok(Relation::Less),
        Some("<=") => Ok(Relation::LessEqual),
        Some(">") => Ok(Relation::Greater),
        Some(">=") => Ok(Relation::GreaterEqual),
        _ => Err(wrong(here, "expected `==`, `!=`, `<`, `<=`, `>` or `>=`")),
    }
}
