//! Renders diagnostics as text: message, position, source line, caret and suggested fix.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::excerpt::excerpts;
use crate::{Diagnostic, Diagnostics, Severity, SourceMap, Span};

impl Diagnostics {
    /// Renders every diagnostic, in the order of [`Diagnostics::in_order`], with ANSI colours if `color`.
    pub fn render(&self, map: &SourceMap, color: bool) -> String {
        let mut out = String::new();
        for diagnostic in self.in_order() {
            out.push_str(&diagnostic.render(map, color));
            out.push_str("\n\n");
        }
        if self.dropped() > 0 {
            out.push_str(&format!("... and {} more\n", self.dropped()));
        }
        out
    }
}

impl Diagnostic {
    /// Renders this diagnostic without a trailing line terminator, with ANSI colours if `color`.
    pub fn render(&self, map: &SourceMap, color: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut group = Group::with_title(level.primary_title(self.message.as_str()).id(self.code));
        let mut places = vec![(AnnotationKind::Primary, &self.primary)];
        places.extend(self.secondary.iter().map(|label| (AnnotationKind::Context, label)));
        let mut files: Vec<_> = Vec::new();
        for (_, label) in &places {
            if map.contains(label.span.file) && !files.contains(&label.span.file) {
                files.push(label.span.file);
            }
        }
        for id in files {
            let labels: Vec<_> = places.iter().filter(|(_, label)| label.span.file == id).collect();
            for near in excerpts(map.file(id), labels.iter().map(|(_, label)| label.span)) {
                // A line marker changes the names and numbers of a file's lines: show those of the region with
                // the label.
                let shown = map.position(Span::new(id, near.first, near.first));
                let physical = map.file(id).line_of(near.first);
                let line_start = (shown.line as usize + near.line).saturating_sub(physical).max(1);
                let mut snippet = Snippet::source(near.text).line_start(line_start);
                if near.is_cut {
                    let (line, column) = (shown.line as usize, shown.column as usize);
                    group = group.element(Origin::path(shown.file).line(line).char_column(column));
                } else {
                    snippet = snippet.path(shown.file);
                }
                for (kind, label) in labels.iter().filter(|(_, label)| near.has(label.span)) {
                    let mut annotation = kind.span(near.range(label.span));
                    if !label.text.is_empty() {
                        annotation = annotation.label(label.text.as_str());
                    }
                    snippet = snippet.annotation(annotation);
                }
                group = group.element(snippet);
            }
        }
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[group])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> (SourceMap, crate::FileId) {
        let mut map = SourceMap::new();
        let file = map.add("a.p4", "header h {\n  bit<8> f\n}\n");
        (map, file)
    }

    #[test]
    fn an_error_shows_line_caret_and_help() {
        let (map, file) = map();
        let text = Diagnostic::error("syntax", Span::new(file, 21, 21), "expected `;`")
            .label("a field ends with `;`")
            .also(Span::new(file, 0, 6), "in this header")
            .help("write `bit<8> f;`")
            .render(&map, false);
        for part in
            ["error[syntax]: expected `;`", "a.p4:2:11", "bit<8> f", "^ a field ends with `;`", "in this header"]
        {
            assert!(text.contains(part), "{part:?} is missing in:\n{text}");
        }
        assert!(text.contains("help: write `bit<8> f;`"), "{text}");
    }

    #[test]
    fn line_markers_rename_places() {
        let mut map = SourceMap::new();
        let file = map.add("x.i", "a\n# 40 \"orig.p4\"\nbad\n");
        map.mark_line(file, 2, 40, "orig.p4");
        let span = Span::new(file, 17, 20);
        assert_eq!(map.position(span).to_string(), "orig.p4:40:1");
        assert!(Diagnostic::error("x", span, "no").render(&map, false).contains("orig.p4:40"));
    }

    #[test]
    fn long_lines_and_distant_places_keep_their_numbers() {
        let mut map = SourceMap::new();
        let file = map.add("e.json", format!("{}bad{}\n\nfirst\n", "é,".repeat(200_000), ",x".repeat(200_000)));
        let (bad, first) = (Span::new(file, 600_000, 600_003), Span::new(file, 1_000_005, 1_000_010));
        let text = Diagnostic::error("x", bad, "no").label("this").also(first, "that").render(&map, false);
        for part in ["--> e.json:1:400001", "^^^ this", "::: e.json:3:1", "3 | first", "----- that"] {
            assert!(text.contains(part), "{part:?} is missing in:\n{text}");
        }
        assert!(text.len() < 2000, "{} bytes", text.len());
        let back = Diagnostic::error("x", first, "no").label("this").also(bad, "that").render(&map, false);
        for part in ["--> e.json:3:1", "^^^^^ this", "::: e.json:1:400001", "--- that"] {
            assert!(back.contains(part), "{part:?} is missing in:\n{back}");
        }
    }

    #[test]
    fn spans_outside_the_text_render_all_the_same() {
        let (map, file) = map();
        let text = Diagnostic::error("x", Span::new(file, 5000, 9000), "far away").render(&map, false);
        assert!(text.contains("far away"));
    }

    #[test]
    fn the_collection_is_bounded_and_drops_repeats() {
        let mut all = Diagnostics::new();
        for at in 0..5000u32 {
            all.push(Diagnostic::error("x", Span::new(crate::FileId(0), at / 2, at / 2), "again"));
        }
        assert_eq!(all.error_count(), all.iter().count() + all.dropped());
        assert!(all.iter().count() <= 200);
    }
}
