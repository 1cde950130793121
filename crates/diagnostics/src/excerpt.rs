//! Excerpts of a source file for rendering. A renderer reads all of the text that it is passed, and a file may
//! hold 100 MB in one line, so text far from every label is left out.

use crate::{SourceFile, Span};

/// Maximum distance in bytes between two labels of one excerpt, and maximum length of text shown uncut.
const NEAR: usize = 1 << 14;
/// Bytes kept on each side of a cut within a line. More than a rendered line shows.
const BESIDE: usize = 400;

/// A contiguous part of a file that contains labels close to each other.
pub(crate) struct Excerpt<'a> {
    /// Text of the excerpt.
    pub text: &'a str,
    /// 0-based physical line in which the text begins.
    pub line: usize,
    /// File offset in bytes of the label that was passed first.
    pub first: u32,
    /// Whether the text begins or ends within a line, so columns cannot be counted in it.
    pub is_cut: bool,
    /// File offset in bytes at which the text begins.
    start: usize,
    /// File offsets of the labels. No label of another excerpt begins in this range.
    labels: std::ops::RangeInclusive<usize>,
}

impl Excerpt<'_> {
    /// Whether this excerpt shows the label at `span`.
    pub fn has(&self, span: Span) -> bool {
        self.labels.contains(&(span.start as usize))
    }

    /// Returns the byte range of `span` within the text, moved to character boundaries.
    pub fn range(&self, span: Span) -> std::ops::Range<usize> {
        let start = floor(self.text, (span.start as usize).saturating_sub(self.start));
        let end = ceil(self.text, (span.end as usize).saturating_sub(self.start));
        start..end.max(start)
    }
}

/// Returns the excerpts that show `spans`; the one that contains the first span comes first.
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
    // Take whole lines, and one more on each side: a position at the end of a file belongs to the line before
    // it.
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

/// Returns the last character boundary at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Returns the first character boundary at or after `at`.
fn ceil(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}
