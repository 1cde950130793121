//! The part of a file that a finding is shown with. Rendering reads all it is given, and a file may have 100 MB in one
//! line: what is far from every label is left out.

use crate::{SourceFile, Span};

/// Labels further apart than so many bytes are shown apart, and longer texts cut.
const NEAR: usize = 1 << 14;
/// Bytes that are kept on each side where a line is cut: more than is shown of it.
const BESIDE: usize = 400;

/// A part of a file with the labels near each other.
pub(crate) struct Excerpt<'a> {
    /// The text.
    pub text: &'a str,
    /// The 0-based physical line that the text begins in.
    pub line: usize,
    /// Where the label that was given first begins, in bytes of the file.
    pub first: u32,
    /// The text begins or ends within a line, so that columns cannot be counted in it.
    pub is_cut: bool,
    /// Where the text begins in the file.
    start: usize,
    /// Where the labels lie in the file: no label of another excerpt begins there.
    labels: std::ops::RangeInclusive<usize>,
}

impl Excerpt<'_> {
    /// Whether a label of the file is shown here.
    pub fn has(&self, span: Span) -> bool {
        self.labels.contains(&(span.start as usize))
    }

    /// The bytes of the text that a span covers, moved to character boundaries within it.
    pub fn range(&self, span: Span) -> std::ops::Range<usize> {
        let start = floor(self.text, (span.start as usize).saturating_sub(self.start));
        let end = ceil(self.text, (span.end as usize).saturating_sub(self.start));
        start..end.max(start)
    }
}

/// The parts of a file that show these spans of it, that of the first span first.
pub(crate) fn excerpts(file: &SourceFile, spans: impl Iterator<Item = Span>) -> Vec<Excerpt<'_>> {
    let mut groups: Vec<Vec<Span>> = Vec::new();
    let mut sorted: Vec<(usize, Span)> = spans.enumerate().collect();
    sorted.sort_by_key(|(_, span)| span.start);
    let mut order = Vec::new();
    for (number, span) in sorted {
        match groups.last_mut() {
            Some(group) if ((span.start - group[group.len() - 1].start) as usize) < NEAR => group.push(span),
            _ => {
                groups.push(vec![span]);
                order.push((number, span.start));
                continue;
            }
        }
        let last = order.len() - 1;
        order[last] = order[last].min((number, span.start));
    }
    let mut parts: Vec<_> = order.into_iter().zip(groups).collect();
    parts.sort_by_key(|((number, _), _)| *number);
    parts.into_iter().map(|((_, first), group)| excerpt(file, first, &group)).collect()
}

fn excerpt<'a>(file: &'a SourceFile, first: u32, group: &[Span]) -> Excerpt<'a> {
    let all = file.text();
    let begin = group.first().map_or(0, |span| span.start as usize);
    let last = group.last().map_or(0, |span| span.start as usize);
    let end = group.iter().map(|span| span.end as usize).max().unwrap_or(0).clamp(last, last + NEAR);
    // Whole lines, and one more on each side: a place at the end of a file belongs to the line before it.
    let line = file.line_of(begin as u32).saturating_sub(1);
    let (lines_start, lines_end) = (file.line_start(line), file.line_start(file.line_of(end as u32) + 2));
    let start = if begin.saturating_sub(lines_start) > NEAR { floor(all, begin - BESIDE) } else { lines_start };
    let stop = if lines_end.saturating_sub(end) > NEAR { ceil(all, end + BESIDE) } else { lines_end };
    Excerpt {
        text: &all[start..stop],
        line: file.line_of(start as u32),
        first,
        is_cut: start != lines_start,
        start,
        labels: begin..=last,
    }
}

/// The last character boundary up to `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The first character boundary from `at` on.
fn ceil(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}
