//! The pieces that lines are made of: names, numbers, ports, values, rates, relations.

use diagnostics::{Diagnostic, Span};

use crate::lex::Line;
use crate::script::{Copies, Outlets, Rate, Relation, Word, Written};

pub(super) type Parsed<T> = Result<T, Box<Diagnostic>>;

pub(super) fn wrong(span: Span, message: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::error("stf-syntax", span, message))
}

pub(super) fn word(line: &mut Line, what: &str) -> Parsed<Word> {
    let here = line.here();
    match line.next() {
        Some(word) if word.is_word() => Ok(word),
        Some(other) => Err(wrong(other.span, format!("expected {what}, found `{}`", other.text))),
        None => Err(wrong(here, format!("expected {what}, found the end of the line"))),
    }
}

pub(super) fn name(line: &mut Line, what: &str) -> Parsed<Word> {
    word(line, &format!("the name of {what}"))
}

/// A number that fits.
pub(super) fn small<T: TryFrom<u64>>(line: &mut Line, what: &str) -> Parsed<T> {
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

pub(super) fn port(line: &mut Line) -> Parsed<u32> {
    let span = line.here();
    let port = small(line, "a port number")?;
    if port >= v1model::DROP_PORT {
        return Err(wrong(span, format!("ports are numbered 0 to {}", v1model::DROP_PORT - 1)));
    }
    Ok(port)
}

pub(super) fn queue(line: &mut Line) -> Parsed<(Option<u32>, Option<usize>)> {
    let port = line.peek().is_some().then(|| port(line)).transpose()?;
    let span = line.here();
    let queue = line.peek().is_some().then(|| small(line, "a queue")).transpose()?;
    if queue.is_some_and(|queue: usize| queue >= switch::PRIORITIES) {
        return Err(wrong(span, format!("queues are numbered 0 to {}", switch::PRIORITIES - 1)));
    }
    Ok((port, queue))
}

/// One or more, to the end of the line.
pub(super) fn many<T>(line: &mut Line, read: impl Fn(&mut Line) -> Parsed<T>) -> Parsed<Vec<T>> {
    let mut all = vec![read(line)?];
    while line.peek().is_some() {
        all.push(read(line)?);
    }
    Ok(all)
}

/// Text that may be long, for a message.
pub(super) fn shown(text: &str) -> String {
    text.chars().take(40).collect()
}

/// `PORT[:BACKUP...]... [| LAG...]`, one or more, to the end of the line.
pub(super) fn outlets(line: &mut Line) -> Parsed<Outlets> {
    let mut outlets = Outlets::default();
    let here = line.here();
    while line.peek().is_some_and(|word| word.text != "|") {
        let mut copies = Copies { port: port(line)?, backups: Vec::new() };
        while line.take(":") {
            copies.backups.push(port(line)?);
        }
        outlets.copies.push(copies);
    }
    if line.take("|") {
        outlets.lags = many(line, |line| small(line, "a LAG"))?;
    }
    match outlets.copies.is_empty() && outlets.lags.is_empty() {
        true => Err(wrong(here, "expected a port number, found the end of the line")),
        false => Ok(outlets),
    }
}

pub(super) fn expect_sign(line: &mut Line, sign: &str, what: &str) -> Parsed<()> {
    if line.take(sign) {
        return Ok(());
    }
    let found = line.peek().map_or("the end of the line".to_owned(), |word| format!("`{}`", shown(&word.text)));
    Err(wrong(line.here(), format!("expected {what}, found {found}")))
}

/// A number as it is written, with a sign before it if it has one.
pub(super) fn value(line: &mut Line) -> Parsed<Word> {
    let sign = line.peek().filter(|word| word.text == "-").cloned();
    line.take("-");
    let number = word(line, "a value")?;
    Ok(match sign {
        Some(sign) => Word { text: format!("-{}", number.text), span: sign.span.to(number.span) },
        None => number,
    })
}

pub(super) fn written(line: &mut Line) -> Parsed<Written> {
    let first = value(line)?;
    if line.take("/") {
        return Ok(Written::Prefix(first, word(line, "a prefix length")?));
    }
    if line.take("&&&") {
        return Ok(Written::Mask(first, word(line, "a mask")?));
    }
    if line.take("->") {
        return Ok(Written::Range(first, value(line)?));
    }
    if let Some((low, high)) = first.text.split_once("..") {
        // The two halves share the place of the whole.
        let half = |text: &str| Word { text: text.to_owned(), span: first.span };
        return Ok(Written::Range(half(low), half(high)));
    }
    Ok(Written::One(first))
}

pub(super) fn rate(line: &mut Line) -> Parsed<Rate> {
    let number = word(line, "a rate")?;
    let per_us: Option<f64> = number.text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate >= 0.0);
    let per_us = per_us.ok_or_else(|| wrong(number.span, format!("`{}` is not a rate", shown(&number.text))))?;
    expect_sign(line, ":", "`:` and a burst size")?;
    Ok(Rate { per_us, burst: small(line, "a burst size")? })
}

pub(super) fn relation(line: &mut Line) -> Parsed<Relation> {
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
