//! Writes program text with indentation.

/// Program text under construction.
#[derive(Default)]
pub(super) struct Text {
    out: String,
    depth: usize,
}

impl Text {
    /// Appends a line; an empty one stays empty.
    pub(super) fn line(&mut self, line: impl AsRef<str>) {
        let line = line.as_ref();
        if !line.is_empty() {
            self.out.extend(std::iter::repeat_n("    ", self.depth));
            self.out.push_str(line);
        }
        self.out.push('\n');
    }

    /// Appends `head {`, the output of `body`, and `}`.
    pub(super) fn block(&mut self, head: impl AsRef<str>, body: impl FnOnce(&mut Text)) {
        self.line(format!("{} {{", head.as_ref()));
        self.indented(body);
        self.line("}");
    }

    /// Appends `if (condition) {`, the output of `then`, `} else {`, the output of `otherwise`, and `}`.
    pub(super) fn choice(
        &mut self,
        condition: impl std::fmt::Display,
        then: impl FnOnce(&mut Text),
        otherwise: impl FnOnce(&mut Text),
    ) {
        self.line(format!("if ({condition}) {{"));
        self.indented(then);
        self.line("} else {");
        self.indented(otherwise);
        self.line("}");
    }

    /// Writes `if (…) { … } else if (…) { … }` with one line per case.
    pub(super) fn cases(&mut self, cases: impl IntoIterator<Item = (String, String)>) {
        for (at, (condition, line)) in cases.into_iter().enumerate() {
            self.line(format!("{} ({condition}) {{", if at == 0 { "if" } else { "} else if" }));
            self.indented(|text| text.line(line));
        }
        self.line("}");
    }

    /// Indents the output of `body` by one level.
    pub(super) fn indented(&mut self, body: impl FnOnce(&mut Text)) {
        self.depth += 1;
        body(self);
        self.depth -= 1;
    }

    pub(super) fn finish(self) -> String {
        self.out
    }
}

/// Converts a name in rules to a P4 identifier: underscores replace characters that identifiers cannot have.
pub(crate) fn identifier(name: &str) -> String {
    let of_names = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let parts: Vec<&str> = name.split(|c| !of_names(c)).filter(|part| !part.is_empty()).collect();
    parts.join("_")
}
