//! Defines diagnostics: messages about a position in a source file.

use crate::Span;

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The program is valid, but this is worth knowing.
    Warning,
    /// The program cannot be used.
    Error,
}

/// A span of source text and the message to print beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The text to underline.
    pub span: Span,
    /// Text printed beside the underline; may be empty.
    pub text: String,
}

/// One problem: its location, a description of what is wrong and what was expected, and a suggested fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// Short, stable, kebab-case name of this kind of problem (`unknown-name`). Warnings are disabled by this
    /// name.
    pub code: &'static str,
    /// One sentence without a full stop that says what is wrong.
    pub message: String,
    /// Location of the problem. Diagnostics about a whole file use an empty span at its start.
    pub primary: Label,
    /// Other relevant locations.
    pub secondary: Vec<Label>,
    /// Suggested fix, if one is known.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Creates an error at `span`.
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Diagnostic {
            severity: Severity::Error,
            code,
            message: message.into(),
            primary: Label { span, text: String::new() },
            secondary: Vec::new(),
            help: None,
        }
    }

    /// Creates a warning at `span`.
    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Self::error(code, span, message) }
    }

    /// Sets the text beside the primary underline.
    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.primary.text = text.into();
        self
    }

    /// Adds a secondary location.
    #[must_use]
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        self.secondary.push(Label { span, text: text.into() });
        self
    }

    /// Sets the suggested fix.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }
}

/// The diagnostics of one run, in the order in which they were reported.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    errors: usize,
    dropped: usize,
    silenced: std::collections::BTreeSet<String>,
}

impl Diagnostics {
    /// Maximum number of diagnostics that are kept. Further ones are only counted, so no input can exhaust
    /// memory with diagnostics.
    pub const MAX_KEPT: usize = 200;

    /// Creates an empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Disables warnings with code `code`. `unused` also disables `unused-table` and every other code with that
    /// prefix.
    pub fn silence(&mut self, code: &str) {
        self.silenced.insert(code.to_owned());
    }

    fn is_silenced(&self, code: &str) -> bool {
        let families = code.match_indices('-').map(|(at, _)| &code[..at]);
        families.chain([code]).any(|kind| self.silenced.contains(kind))
    }

    /// Adds a diagnostic. A second one with the same code at the same location is dropped as a repetition of
    /// the same mistake.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if diagnostic.severity == Severity::Warning && self.is_silenced(diagnostic.code) {
            return;
        }
        let repeats = |d: &Diagnostic| d.code == diagnostic.code && d.primary.span == diagnostic.primary.span;
        if self.list.iter().any(repeats) {
            return;
        }
        self.errors += usize::from(diagnostic.severity == Severity::Error);
        if self.list.len() >= Self::MAX_KEPT {
            self.dropped += 1;
            // Errors displace warnings.
            let warning = self.list.iter().rposition(|kept| kept.severity == Severity::Warning);
            match warning.filter(|_| diagnostic.severity == Severity::Error) {
                Some(at) => self.list.remove(at),
                None => return,
            };
        }
        self.list.push(diagnostic);
    }

    /// Appends `text` to the suggested fix of every diagnostic with code `code`. A caller can name its own options
    /// there, which the code that found the problem does not know.
    pub fn extend_help(&mut self, code: &str, text: &str) {
        for diagnostic in self.list.iter_mut().filter(|diagnostic| diagnostic.code == code) {
            diagnostic.help.get_or_insert_default().push_str(text);
        }
    }

    /// Replaces the suggested fix of every diagnostic with code `code` for which `fix` returns another.
    pub fn set_help(&mut self, code: &str, fix: impl Fn(&Diagnostic) -> Option<String>) {
        for diagnostic in self.list.iter_mut().filter(|diagnostic| diagnostic.code == code) {
            diagnostic.help = fix(diagnostic).or(diagnostic.help.take());
        }
    }

    /// Adds every diagnostic of `other`, and its numbers of those that were not kept.
    pub fn append(&mut self, other: Diagnostics) {
        let kept_errors = other.list.iter().filter(|kept| kept.severity == Severity::Error).count();
        self.errors += other.errors - kept_errors;
        self.dropped += other.dropped;
        for diagnostic in other.list {
            self.push(diagnostic);
        }
    }

    /// Whether any diagnostic is an error.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Number of errors, including dropped ones.
    pub fn error_count(&self) -> usize {
        self.errors
    }

    /// Number of diagnostics that were counted but not kept.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// Iterates over the kept diagnostics in the order in which they were reported.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }

    /// Returns the diagnostics in reading order: by position in the text, files in the order in which they were
    /// loaded. At one position, errors precede warnings; otherwise the order of reporting is kept. The order in
    /// which the compiler's stages report means nothing to the author of the text.
    pub fn in_order(&self) -> Vec<&Diagnostic> {
        let mut list: Vec<&Diagnostic> = self.list.iter().collect();
        list.sort_by_key(|finding| {
            (finding.primary.span.file, finding.primary.span.start, std::cmp::Reverse(finding.severity))
        });
        list
    }

    /// Whether there are no diagnostics.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileId;

    fn at(start: u32) -> Span {
        Span::new(FileId(0), start, start + 1)
    }

    #[test]
    fn appended_diagnostics_are_counted_like_pushed_ones() {
        let many = 3 * Diagnostics::MAX_KEPT as u32;
        let findings = (0..many).map(|number| match number % 3 {
            0 => Diagnostic::warning("odd", at(number), "strange"),
            _ => Diagnostic::error("bad", at(number), "wrong"),
        });
        let (mut pushed, mut other) = (Diagnostics::new(), Diagnostics::new());
        for finding in findings {
            pushed.push(finding.clone());
            other.push(finding);
        }
        let mut appended = Diagnostics::new();
        appended.append(other);
        assert_eq!(appended.error_count(), 2 * Diagnostics::MAX_KEPT);
        assert_eq!((appended.error_count(), appended.dropped()), (pushed.error_count(), pushed.dropped()));
        assert!(appended.iter().eq(pushed.iter()));
    }
}
