//! Finds the rules of a file that a change of its text concerns, so that only they are parsed again.
//!
//! A change of text is what remains between the longest common beginning and end. It concerns the rules that it
//! touches, the one before, which the new text may continue, and the one behind. These are parsed alone. If that part
//! is free of mistakes, it ends with a whole rule; no token that begins a rule continues another one. So the parser
//! would be at the same place of the same text, and everything after it is as it was.

use std::ops::Range;

/// The text of a rules file without includes, and where its rules are.
#[derive(Debug)]
pub(crate) struct FileText {
    text: String,
    /// Offsets in bytes of the beginning and the end of each rule, ascending.
    rules: Vec<(u32, u32)>,
}

/// The part of a file that has to be parsed again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Rules of the old text that the part replaces, by number.
    old: Range<usize>,
    /// The part of the new text, in bytes.
    pub new: Range<usize>,
}

impl FileText {
    /// Creates the text of a file with its rules by their offsets.
    pub fn new(text: String, rules: Vec<(u32, u32)>) -> FileText {
        FileText { text, rules }
    }

    /// Returns the part of a new text that has to be parsed; `None` if the texts are equal.
    pub fn difference(&self, new: &str) -> Option<Difference> {
        let (old, new) = (self.text.as_bytes(), new.as_bytes());
        let begin = common(old.iter(), new.iter());
        if begin == old.len() && begin == new.len() {
            return None;
        }
        let end = common(old[begin..].iter().rev(), new[begin..].iter().rev());
        let changed = begin..old.len() - end;
        // The rule before the change may go on in the new text.
        let first = self.rules.partition_point(|(_, end)| (*end as usize) < changed.start).saturating_sub(1);
        let behind = self.rules.partition_point(|(start, _)| (*start as usize) < changed.end).max(first);
        let last = (behind + 1).min(self.rules.len());
        let start = if first == 0 { 0 } else { self.rules[first].0 as usize };
        let stop = self.rules.get(last).map_or(old.len(), |(start, _)| *start as usize);
        let stop = stop + new.len() - old.len();
        Some(Difference { old: first..last, new: start..stop })
    }

    /// Returns the texts of the rules that a part replaces.
    pub fn replaced(&self, part: &Difference) -> impl Iterator<Item = &str> {
        self.rules[part.old.clone()].iter().map(|(start, end)| &self.text[*start as usize..*end as usize])
    }

    /// Replaces the text. `rules` are those of the part, by their offsets in it.
    pub fn replace(&mut self, part: &Difference, new: String, rules: &[(u32, u32)]) {
        let grown = new.len() as i64 - self.text.len() as i64;
        let moved = |offset: u32| (i64::from(offset) + grown) as u32;
        for (start, end) in &mut self.rules[part.old.end..] {
            (*start, *end) = (moved(*start), moved(*end));
        }
        let begin = part.new.start as u32;
        self.rules.splice(part.old.clone(), rules.iter().map(|(start, end)| (start + begin, end + begin)));
        self.text = new;
    }
}

/// Returns the number of equal bytes at the beginning of both.
fn common<'b>(one: impl Iterator<Item = &'b u8>, other: impl Iterator<Item = &'b u8>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use diagnostics::{Diagnostics, SourceMap};
    use rng::SplitMix64;
    use subscribe::{FieldDeclaration, Match, MessageFormat, NoIncludes, ValueKind};

    use super::*;

    fn format() -> MessageFormat {
        let mut format = MessageFormat::new();
        let (name, kind, matching) = ("a".to_owned(), ValueKind::Unsigned, Match::Any);
        format.field(FieldDeclaration { name, width: 16, kind, matching, header: None }).expect("new");
        format
    }

    /// Returns the places of the rules of a text, or `None` if anything is wrong with it.
    fn parse(text: &str, format: &MessageFormat) -> Option<Vec<(u32, u32)>> {
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let rules = subscribe::parse(&mut map, "rules", text, format, &mut NoIncludes, &mut diagnostics);
        let is_right = diagnostics.iter().next().is_none();
        is_right.then(|| rules.iter().map(|rule| (rule.span.start, rule.span.end)).collect())
    }

    /// A piece of a rules file.
    fn piece(rng: &mut SplitMix64) -> String {
        match rng.below(12) {
            0 => "# a == 1 : fwd(1)\n".to_owned(),
            1 => "/* a == 1 :\n fwd(1) */\n".to_owned(),
            2 => format!("; fwd({})\n", rng.below(9)),
            3 => "/* ".to_owned(),
            4 => " */".to_owned(),
            5 => "\n\n".to_owned(),
            6 => "and ".to_owned(),
            7 => format!("rule n{}: a > {} : drop\n", rng.below(1_000), rng.below(9)),
            _ => format!("a == {} : fwd({})\n", rng.below(50), rng.below(5)),
        }
    }

    /// Replaces a random part of a text.
    fn edited(rng: &mut SplitMix64, text: &str) -> String {
        let place = |rng: &mut SplitMix64| {
            let lines: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).chain([0]).collect();
            match rng.below(3) {
                0 => text.floor_char_boundary(rng.below(text.len() as u64 + 1) as usize),
                _ => lines[rng.below(lines.len() as u64) as usize],
            }
        };
        let (one, other) = (place(rng), place(rng));
        let (start, end) = if rng.below(4) == 0 { (one.min(other), one.max(other)) } else { (one, one) };
        let new: String = (0..rng.below(3)).map(|_| piece(rng)).collect();
        // Mostly short parts go.
        let end = if rng.below(3) > 0 { text.floor_char_boundary(end.min(start + 20)) } else { end };
        format!("{}{new}{}", &text[..start], &text[end.max(start)..])
    }

    #[test]
    fn a_part_has_the_rules_that_the_whole_text_has_there() {
        let format = format();
        let (mut parts, mut whole, mut short) = (0, 0, 0);
        for seed in 0..400 {
            let mut rng = SplitMix64::new(seed);
            let text: String = (0..30).map(|number| format!("a == {number} : fwd(1)\n")).collect();
            let mut file = FileText { rules: parse(&text, &format).unwrap(), text };
            for _ in 0..40 {
                let new = edited(&mut rng, &file.text);
                let Some(part) = file.difference(&new) else {
                    assert_eq!(new, file.text);
                    continue;
                };
                let expected = parse(&new, &format);
                let found = parse(&new[part.new.clone()], &format);
                let Some(rules) = found else {
                    // The whole text has to be parsed.
                    whole += 1;
                    if let Some(rules) = expected {
                        file = FileText { text: new, rules };
                    }
                    continue;
                };
                parts += 1;
                short += usize::from(part.new.len() < new.len() / 2);
                let before = file.rules.len();
                let replaced = file.replaced(&part).count();
                file.replace(&part, new, &rules);
                assert_eq!(Some(&file.rules), expected.as_ref(), "seed {seed}: {}", file.text);
                assert_eq!(file.rules.len(), before - replaced + rules.len());
            }
        }
        assert!(parts > 4_000 && whole > 500 && short > 3_000, "{parts} parts, {short} short; {whole} times the whole");
    }
}
