//! Line continuations: a backslash at the end of a line is removed together with the line terminator (specification
//! 6.1).

use std::borrow::Cow;

/// A text without line continuations, with a mapping of its offsets to the original text.
pub(crate) struct SplicedText<'a> {
    /// The text to scan.
    pub text: Cow<'a, str>,
    /// For each removed range: its offset in `text`, and the total number of bytes removed up to its end.
    cuts: Vec<(u32, u32)>,
}

impl<'a> SplicedText<'a> {
    /// Removes every backslash that is followed by a line terminator, and that terminator.
    pub fn new(original: &'a str) -> Self {
        if !original.contains("\\\n") && !original.contains("\\\r\n") {
            return SplicedText { text: Cow::Borrowed(original), cuts: Vec::new() };
        }
        let mut text = String::with_capacity(original.len());
        let mut cuts = Vec::new();
        let mut removed = 0;
        let mut rest = original;
        while let Some(at) = rest.find('\\') {
            let behind = &rest[at + 1..];
            let ending = if behind.starts_with('\n') {
                1
            } else if behind.starts_with("\r\n") {
                2
            } else {
                0
            };
            if ending == 0 {
                text.push_str(&rest[..=at]);
            } else {
                text.push_str(&rest[..at]);
                removed += 1 + ending as u32;
                cuts.push((text.len() as u32, removed));
            }
            rest = &behind[ending..];
        }
        text.push_str(rest);
        SplicedText { text: Cow::Owned(text), cuts }
    }

    /// Converts to a value that does not borrow from the original.
    pub fn into_owned(self) -> SplicedText<'static> {
        SplicedText { text: Cow::Owned(self.text.into_owned()), cuts: self.cuts }
    }

    /// Maps byte `offset` of the scanned text to the original. `is_end` marks the end of a token, so that a
    /// continuation directly after the token does not count as part of it.
    pub fn original(&self, offset: u32, is_end: bool) -> u32 {
        let before = self.cuts.partition_point(|(at, _)| if is_end { *at < offset } else { *at <= offset });
        offset + before.checked_sub(1).map_or(0, |last| self.cuts[last].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continuations_vanish_and_offsets_lead_back() {
        let spliced = SplicedText::new("a\\\nb\\x \\\r\nc");
        assert_eq!(spliced.text, "ab\\x c");
        assert_eq!(spliced.original(0, false), 0);
        assert_eq!(spliced.original(1, false), 3);
        assert_eq!(spliced.original(1, true), 1);
        assert_eq!(spliced.original(5, false), 10);
        assert_eq!(spliced.original(6, true), 11);
    }
}
