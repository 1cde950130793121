//! Converts key elements of scripts by match kind.

use bits::Bits;
use ir::{KeyValue, MatchKind};

use crate::script::{Word, WrittenValue};
use crate::value::{digits, read};

/// Returns the match of a key element that the script does not mention.
pub(crate) fn unmentioned(kind: MatchKind, width: u32) -> KeyValue {
    match kind {
        MatchKind::Exact => KeyValue::Exact(Bits::zero(width)),
        MatchKind::Lpm => KeyValue::Lpm(Bits::zero(width), 0),
        MatchKind::Ternary => KeyValue::Ternary(Bits::zero(width), Bits::zero(width)),
        MatchKind::Range | MatchKind::Optional | MatchKind::Selector => KeyValue::Any,
    }
}

/// Converts a written value to a match of `kind` on `width` bits. The error is a message.
pub(crate) fn key_value(written: &WrittenValue, kind: MatchKind, width: u32) -> Result<KeyValue, String> {
    let full = |word: &Word| read(&word.text, width);
    match (kind, written) {
        (MatchKind::Exact | MatchKind::Optional, WrittenValue::One(word)) => Ok(KeyValue::Exact(full(word)?)),
        (MatchKind::Ternary, WrittenValue::One(word)) => ternary(&word.text, width),
        (MatchKind::Ternary, WrittenValue::Mask(value, mask)) => Ok(masked(full(value)?, full(mask)?)),
        (MatchKind::Lpm, WrittenValue::One(word)) => prefix(&word.text, width),
        (MatchKind::Lpm | MatchKind::Ternary, WrittenValue::Prefix(value, length)) => {
            let fits = length.text.parse().ok().filter(|length| *length <= width);
            let length = fits.ok_or_else(|| format!("`{}` is not a prefix length from 0 to {width}", length.text))?;
            let value = full(value)?;
            Ok(if kind == MatchKind::Lpm { lpm(value, length) } else { masked(value, leading(length, width)) })
        }
        (MatchKind::Range, WrittenValue::Range(low, high)) => Ok(KeyValue::Range(full(low)?, full(high)?)),
        (MatchKind::Range, WrittenValue::One(word)) => Ok(KeyValue::Range(full(word)?, full(word)?)),
        (MatchKind::Exact | MatchKind::Optional, _) => Err("an exact match takes one value".to_owned()),
        (MatchKind::Ternary, _) => Err("a ternary match takes a value with `*` digits, or `value&&&mask`".to_owned()),
        (MatchKind::Lpm, _) => {
            Err("a longest-prefix match takes a value with `*` digits, or `value/length`".to_owned())
        }
        (MatchKind::Range, _) => Err("a range match takes `low..high`".to_owned()),
        (MatchKind::Selector, _) => Err("a selector key takes no value".to_owned()),
    }
}

/// Returns ones in the upper `length` bits.
fn leading(length: u32, width: u32) -> Bits {
    let ones = Bits::ones(width).to_big();
    let below = Bits::ones(width).to_big() >> length;
    Bits::from_big(&(ones ^ below), width)
}

fn masked(value: Bits, mask: Bits) -> KeyValue {
    let covered = Bits::from_big(&(value.to_big() & mask.to_big()), value.width());
    KeyValue::Ternary(covered, mask)
}

fn lpm(value: Bits, length: u32) -> KeyValue {
    let width = value.width();
    let covered = value.to_big() & leading(length, width).to_big();
    KeyValue::Lpm(Bits::from_big(&covered, width), length)
}

/// Digits are matched as written; a decimal number is matched on all bits.
fn ternary(text: &str, width: u32) -> Result<KeyValue, String> {
    let (base, per_digit, body) = digits(text);
    if per_digit == 0 {
        return Ok(KeyValue::Ternary(read(text, width)?, Bits::ones(width)));
    }
    let open = char::from_digit(base - 1, base).unwrap_or('1');
    let mask: String = body.chars().map(|c| if c == '*' { '0' } else { open }).collect();
    let prefix = &text[..2];
    let value = read(&text.replace('*', "0"), width)?;
    // The digits' mask may be a few bits wider than the key where the value has zeros.
    let mask =
        read(&format!("{prefix}{mask}"), (body.len() as u32).saturating_mul(per_digit).clamp(width, bits::MAX_WIDTH))?;
    Ok(masked(value, Bits::from_big(&(mask.to_big() & Bits::ones(width).to_big()), width)))
}

/// The prefix covers the digits before the number's `*` digits.
fn prefix(text: &str, width: u32) -> Result<KeyValue, String> {
    let (_, per_digit, body) = digits(text);
    let value = read(&text.replace('*', "0"), width)?;
    let fixed = body.chars().filter(|c| *c != '*').count() as u32;
    let length = if per_digit == 0 { width } else { fixed.saturating_mul(per_digit).min(width) };
    Ok(lpm(value, length))
}

#[cfg(test)]
mod tests {
    use diagnostics::Span;

    use super::*;

    fn one(text: &str, kind: MatchKind, width: u32) -> KeyValue {
        let word = Word { text: text.to_owned(), span: Span::default() };
        key_value(&WrittenValue::One(word), kind, width).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn ternary_digits_say_what_is_matched() {
        let want = |value, mask, width| KeyValue::Ternary(Bits::new(value, width), Bits::new(mask, width));
        assert_eq!(one("0x****0101", MatchKind::Ternary, 32), want(0x0101, 0xffff, 32));
        assert_eq!(one("0x25", MatchKind::Ternary, 16), want(0x25, 0xff, 16), "left of the digits nothing is said");
        assert_eq!(one("0b1*0", MatchKind::Ternary, 3), want(4, 5, 3));
        assert_eq!(one("0x3", MatchKind::Ternary, 3), want(3, 7, 3), "a digit may be wider than the key");
        assert_eq!(one("37", MatchKind::Ternary, 16), want(37, 0xffff, 16));
    }

    #[test]
    fn digits_before_the_stars_are_the_prefix() {
        let want = |value, length, width| KeyValue::Lpm(Bits::new(value, width), length);
        assert_eq!(one("0x0a010065", MatchKind::Lpm, 32), want(0x0a01_0065, 32, 32));
        assert_eq!(one("0x0a01****", MatchKind::Lpm, 32), want(0x0a01_0000, 16, 32));
        assert_eq!(one("10", MatchKind::Lpm, 32), want(10, 32, 32));
    }

    #[test]
    fn values_that_do_not_suit_the_match_kind_are_refused() {
        let word = |text: &str| Word { text: text.to_owned(), span: Span::default() };
        let mask = WrittenValue::Mask(word("1"), word("1"));
        for (written, kind) in [
            (WrittenValue::One(word("0x**")), MatchKind::Exact),
            (WrittenValue::One(word("300")), MatchKind::Exact),
            (WrittenValue::Prefix(word("0"), word("9")), MatchKind::Lpm),
            (mask, MatchKind::Lpm),
            (WrittenValue::One(word("x")), MatchKind::Ternary),
        ] {
            assert!(key_value(&written, kind, 8).is_err(), "{written:?} as {kind:?}");
        }
    }
}
