//! Reads the values of a TOML document with their locations, and the diagnostics about them.

use std::ops::Range;
use std::str::FromStr;

use diagnostics::{Diagnostic, Diagnostics, FileId, Span, names};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and its location.
pub(crate) type Value<'a> = (&'a DeValue<'a>, Span);

/// Reads values and turns every mistake into a diagnostic.
pub(crate) struct Reader<'d> {
    pub(crate) file: FileId,
    pub(crate) diagnostics: &'d mut Diagnostics,
    /// The largest port number of a switch.
    pub(crate) max_port: u32,
}

/// Parses the document. If it is not TOML, reports every syntax error and returns `None`.
pub(crate) fn parse<'t>(file: FileId, text: &'t str, diagnostics: &mut Diagnostics) -> Option<Spanned<DeTable<'t>>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let range = error.span().unwrap_or(0..0);
        let span = Span::new(file, range.start as u32, range.end as u32);
        diagnostics.push(Diagnostic::error("toml-syntax", span, error.message().trim_end_matches('.').to_owned()));
    }
    errors.is_empty().then_some(document)
}

impl Reader<'_> {
    pub(crate) fn span(&self, range: Range<usize>) -> Span {
        Span::new(self.file, range.start as u32, range.end as u32)
    }

    pub(crate) fn wrong(&mut self, span: Span, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error("topology", span, message));
    }

    /// Reports the unknown keys of a table.
    pub(crate) fn known(&mut self, table: &DeTable<'_>, what: &str, keys: &[&str]) {
        for (key, _) in table.iter() {
            let name: &str = key.get_ref();
            if !keys.contains(&name) {
                let finding = Diagnostic::error("topology", self.span(key.span()), format!("{what} has no `{name}`"));
                let help = match names::nearest(name, keys.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the keys are {}", keys.join(", ")),
                };
                self.diagnostics.push(finding.help(help));
            }
        }
    }

    pub(crate) fn get<'a>(&self, table: &'a DeTable<'a>, key: &str) -> Option<Value<'a>> {
        let value = table.get(key)?;
        Some((value.get_ref(), self.span(value.span())))
    }

    pub(crate) fn table<'a>(&mut self, table: &'a DeTable<'a>, key: &str) -> Option<&'a DeTable<'a>> {
        let (value, span) = self.get(table, key)?;
        if value.as_table().is_none() {
            self.wrong(span, format!("`{key}` must be a table: write [{key}] and its keys below"));
        }
        value.as_table()
    }

    pub(crate) fn text<'a>(&mut self, table: &'a DeTable<'a>, key: &str) -> Option<(&'a str, Span)> {
        let (value, span) = self.get(table, key)?;
        if value.as_str().is_none() {
            self.wrong(span, format!("`{key}` must be a string: write it in double quotes"));
        }
        value.as_str().map(|text| (text, span))
    }

    /// Reports a name with control characters, which would act on the terminal that shows it.
    pub(crate) fn showable(&mut self, name: &str, span: Span) {
        if name.chars().any(char::is_control) {
            self.wrong(span, format!("the name {name:?} contains control characters"));
        }
    }

    pub(crate) fn parsed<T>(&mut self, table: &DeTable<'_>, key: &str) -> Option<T>
    where
        T: FromStr<Err: std::fmt::Display>,
    {
        let (text, span) = self.text(table, key)?;
        text.parse().map_err(|error| self.wrong(span, format!("{error}"))).ok()
    }

    /// One of a few words.
    pub(crate) fn word<T: Copy>(&mut self, table: &DeTable<'_>, key: &str, words: &[(&str, T)]) -> Option<T> {
        let (text, span) = self.text(table, key)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let quoted: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            let (last, others) = quoted.split_last().expect("there are words");
            self.wrong(span, format!("`{key}` must be {} or {last}, not \"{text}\"", others.join(", ")));
        }
        found.map(|(_, value)| *value)
    }

    pub(crate) fn integer(
        &mut self,
        table: &DeTable<'_>,
        key: &str,
        range: std::ops::RangeInclusive<u32>,
    ) -> Option<u32> {
        let (value, span) = self.get(table, key)?;
        let number = value.as_integer().and_then(|n| u32::from_str_radix(n.as_str(), n.radix()).ok());
        let fits = number.filter(|number| range.contains(number));
        if fits.is_none() {
            self.wrong(span, format!("`{key}` must be an integer from {} to {}", range.start(), range.end()));
        }
        fits
    }

    pub(crate) fn chance(&mut self, table: &DeTable<'_>, key: &str) -> Option<f64> {
        let (value, span) = self.get(table, key)?;
        let fits = number(value).filter(|number| (0.0..=1.0).contains(number));
        if fits.is_none() {
            self.wrong(span, format!("`{key}` must be a probability from 0 to 1"));
        }
        fits
    }

    pub(crate) fn number(&mut self, table: &DeTable<'_>, key: &str) -> Option<f64> {
        let (value, span) = self.get(table, key)?;
        let found = number(value);
        if found.is_none() {
            self.wrong(span, format!("`{key}` must be a number"));
        }
        found
    }
}

/// An integer or a float; neither infinite nor NaN.
pub(crate) fn number(value: &DeValue<'_>) -> Option<f64> {
    let number = match value {
        DeValue::Float(float) => float.as_str().parse().ok()?,
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix()).ok()? as f64,
        _ => return None,
    };
    Some(number).filter(|number: &f64| number.is_finite())
}
