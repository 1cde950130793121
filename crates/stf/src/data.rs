//! Matches packets against expected ones, and describes differences.

use std::fmt::Write as _;

/// Digits with which a packet must begin, some of them arbitrary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketPattern {
    /// Hexadecimal digits from the packet's first on; `None` for any digit.
    pub nibbles: Vec<Option<u8>>,
    /// Whether the packet must end after the digits.
    pub exact: bool,
}

impl PacketPattern {
    /// Whether a packet is as expected.
    pub fn matches(&self, packet: &[u8]) -> bool {
        let long_enough = packet.len() * 2 >= self.nibbles.len();
        let not_longer = !self.exact || packet.len() * 2 <= self.nibbles.len();
        let same = |(at, want): (usize, &Option<u8>)| want.is_none_or(|want| want == nibble(packet, at));
        long_enough && not_longer && self.nibbles.iter().enumerate().all(same)
    }

    /// Returns the number of differing digits, plus the difference of the lengths in digits.
    pub(crate) fn distance(&self, packet: &[u8]) -> usize {
        let common = self.nibbles.len().min(packet.len() * 2);
        let differ = |at: &usize| self.nibbles[*at].is_some_and(|want| want != nibble(packet, *at));
        let length = if self.exact || packet.len() * 2 < self.nibbles.len() {
            self.nibbles.len().abs_diff(packet.len() * 2)
        } else {
            0
        };
        (0..common).filter(differ).count() + length
    }

    /// Returns the digits in bytes, in the notation of scripts.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (at, want) in self.nibbles.iter().enumerate() {
            if at > 0 && at.is_multiple_of(2) {
                text.push(' ');
            }
            text.push(want.map_or('*', digit));
        }
        if self.exact {
            text.push('$');
        }
        text
    }
}

/// Returns digit `at`, which the packet must have.
fn nibble(packet: &[u8], at: usize) -> u8 {
    let byte = packet[at / 2];
    if at.is_multiple_of(2) { byte >> 4 } else { byte & 15 }
}

fn digit(value: u8) -> char {
    char::from_digit(u32::from(value), 16).unwrap_or('?')
}

/// Formats bytes in the notation of scripts.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (at, byte) in bytes.iter().enumerate() {
        let _ = write!(text, "{}{byte:02x}", if at > 0 { " " } else { "" });
    }
    text
}

/// Number of bytes per line.
const ROW: usize = 16;

/// Renders expectation and packet above each other, sixteen bytes per line, with `^` below every digit that differs.
/// Lines without a difference are left out, except for the one before a difference. Each line begins with the offset
/// of its first byte.
pub fn difference(pattern: &PacketPattern, packet: &[u8]) -> String {
    let bytes = pattern.nibbles.len().div_ceil(2).max(packet.len());
    let rows = bytes.div_ceil(ROW);
    let differs = |at: usize| match (pattern.nibbles.get(at), at < packet.len() * 2) {
        (Some(want), true) => want.is_some_and(|want| want != nibble(packet, at)),
        (Some(_), false) => true,
        (None, there) => there && pattern.exact,
    };
    let row_differs = |row: usize| (row * ROW * 2..(row + 1) * ROW * 2).any(differs);
    let mut text = String::new();
    let mut skipped = 0;
    for row in 0..rows {
        let before_one = row + 1 < rows && row_differs(row + 1);
        if !before_one && !row_differs(row) {
            skipped += bytes.min((row + 1) * ROW) - row * ROW;
            continue;
        }
        skip(&mut text, &mut skipped);
        let (mut want, mut got, mut mark) = (String::new(), String::new(), String::new());
        for at in row * ROW * 2..((row + 1) * ROW * 2).min(bytes * 2) {
            if at.is_multiple_of(2) {
                [&mut want, &mut got, &mut mark].into_iter().for_each(|line| line.push(' '));
            }
            want.push(pattern.nibbles.get(at).map_or(' ', |want| want.map_or('*', digit)));
            got.push(if at < packet.len() * 2 { digit(nibble(packet, at)) } else { ' ' });
            mark.push(if differs(at) { '^' } else { ' ' });
        }
        if pattern.exact && pattern.nibbles.len().div_ceil(ROW * 2).max(1) == row + 1 {
            want = format!("{}$", want.trim_end());
        }
        let _ = writeln!(text, "  {:>5}  expected {}", row * ROW, want.trim_end());
        let _ = writeln!(text, "         got      {}", got.trim_end());
        if !mark.trim().is_empty() {
            let _ = writeln!(text, "                  {}", mark.trim_end());
        }
    }
    skip(&mut text, &mut skipped);
    text
}

fn skip(text: &mut String, bytes: &mut usize) {
    match std::mem::take(bytes) {
        0 => {}
        1 => text.push_str("         (1 byte as expected)\n"),
        count => _ = writeln!(text, "         ({count} bytes as expected)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> PacketPattern {
        let nibbles = text.chars().filter(|c| !matches!(c, ' ' | '$')).map(|c| c.to_digit(16).map(|d| d as u8));
        PacketPattern { nibbles: nibbles.collect(), exact: text.ends_with('$') }
    }

    #[test]
    fn a_pattern_is_a_beginning_unless_it_says_that_it_is_all() {
        let packet = [0x12, 0x34, 0x56];
        for text in ["1234", "1*34", "123456$", "123", "", "******$"] {
            assert!(pattern(text).matches(&packet), "{text}");
        }
        for text in ["1235", "1234$", "12345678", "$"] {
            assert!(!pattern(text).matches(&packet), "{text}");
        }
    }

    #[test]
    fn differing_digits_are_marked() {
        let shown = difference(&pattern("0a ** 33 44$"), &[0x0a, 0xff, 0x3b]);
        assert_eq!(
            shown,
            "      0  expected  0a ** 33 44$\n         got       0a ff 3b\n                          ^ ^^\n"
        );
    }

    #[test]
    fn lines_without_a_difference_are_left_out() {
        let mut packet = [0; 64];
        let all: String = "00".repeat(64);
        packet[60] = 1;
        let shown = difference(&pattern(&all), &packet);
        assert!(shown.starts_with("         (32 bytes as expected)\n     32  expected"), "{shown}");
        assert_eq!(shown.lines().count(), 1 + 2 + 3, "{shown}");
    }

    #[test]
    fn bytes_of_an_incomplete_row_are_counted() {
        let mut packet = [0; 54];
        packet[0] = 1;
        let shown = difference(&pattern(&"00".repeat(54)), &packet);
        assert!(shown.ends_with("         (38 bytes as expected)\n"), "{shown}");
    }
}
