//! What there is to say about a place in a source file.

use crate::Span;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; the program means what it says.
    Warning,
    /// The program cannot be used.
    Error,
}

/// A place and what is to be said about it there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The stretch to underline.
    pub span: Span,
    /// What stands beside the underline; may be empty.
    pub text: String,
}

/// One finding: what is wrong, where, what was expected, and what to do instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// A short, stable, kebab-case name of the kind of finding (`unknown-name`); warnings are turned off by it.
    pub code: &'static str,
    /// One sentence without a full stop: what is wrong.
    pub message: String,
    /// Where. Diagnostics about a whole file use an empty span at its start.
    pub primary: Label,
    /// Other places that matter.
    pub secondary: Vec<Label>,
    /// What to write instead, if that is known.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at `span`.
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

    /// A warning at `span`.
    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Self::error(code, span, message) }
    }

    /// Says something beside the primary underline.
    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.primary.text = text.into();
        self
    }

    /// Points at a second place.
    #[must_use]
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        self.secondary.push(Label { span, text: text.into() });
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }
}

/// The findings of one run, in the order they were made.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    errors: usize,
    dropped: usize,
    silenced: std::collections::BTreeSet<String>,
}

impl Diagnostics {
    /// How many errors are kept; what follows is counted only, so that no input can fill the memory with findings.
    pub const MAX_KEPT: usize = 200;

    /// An empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Turns warnings of kind `code` off; `unused` also turns off `unused-table` and all other kinds that begin so.
    pub fn silence(&mut self, code: &str) {
        self.silenced.insert(code.to_owned());
    }

    fn is_silenced(&self, code: &str) -> bool {
        let families = code.match_indices('-').map(|(at, _)| &code[..at]);
        families.chain([code]).any(|kind| self.silenced.contains(kind))
    }

    /// Adds a finding. A second one of the same kind at the same place is not added: it is the same mistake again.
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
            // An error is worth more than a warning.
            let warning = self.list.iter().rposition(|kept| kept.severity == Severity::Warning);
            match warning.filter(|_| diagnostic.severity == Severity::Error) {
                Some(at) => self.list.remove(at),
                None => return,
            };
        }
        self.list.push(diagnostic);
    }

    /// Adds every finding of `other`.
    pub fn append(&mut self, other: Diagnostics) {
        self.dropped += other.dropped;
        for diagnostic in other.list {
            self.push(diagnostic);
        }
    }

    /// Whether any finding is an error.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// How many findings are errors, dropped ones included.
    pub fn error_count(&self) -> usize {
        self.errors
    }

    /// How many findings were counted but not kept.
    pub fn dropped(&self) -> usize {
        self.dropped
    }

    /// The findings that were kept, in the order they were made.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }

    /// The findings in the order for readers: by place, as in the text, files in the order they were read. At one place
    /// errors come before warnings, else the order they were made stays. Stages find mistakes in an order of their own,
    /// which says nothing to who wrote the text.
    pub fn in_order(&self) -> Vec<&Diagnostic> {
        let mut list: Vec<&Diagnostic> = self.list.iter().collect();
        list.sort_by_key(|finding| {
            (finding.primary.span.file, finding.primary.span.start, std::cmp::Reverse(finding.severity))
        });
        list
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}
