//! Program text, line by line.

/// Text that is being written, with its indentation.
#[derive(Default)]
pub(super) struct Text {
    out: String,
    depth: usize,
}

impl Text {
    /// A line; an empty one stays empty.
    pub(super) fn line(&mut self, line: impl AsRef<str>) {
        let line = line.as_ref();
        if !line.is_empty() {
            self.out.extend(std::iter::repeat_n("    ", self.depth));
            self.out.push_str(line);
        }
        self.out.push('\n');
    }

    /// `head {`, what `body` writes, `}`.
    pub(super) fn block(&mut self, head: impl AsRef<str>, body: impl FnOnce(&mut Text)) {
        self.line(format!("{} {{", head.as_ref()));
        self.indented(body);
        self.line("}");
    }

    /// `if (condition) {`, what `then` writes, `} else {`, what `otherwise` writes, `}`.
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

    /// What `body` writes, one step further in.
    pub(super) fn indented(&mut self, body: impl FnOnce(&mut Text)) {
        self.depth += 1;
        body(self);
        self.depth -= 1;
    }

    pub(super) fn finish(self) -> String {
        self.out
    }
}

/// A name of rules as a name of P4: underscores stand for what names cannot have.
pub(crate) fn identifier(name: &str) -> String {
    let of_names = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let parts: Vec<&str> = name.split(|c| !of_names(c)).filter(|part| !part.is_empty()).collect();
    parts.join("_")
}
