use num_bigint::BigUint;

use crate::Bits;

fn wide(hex: &str, width: u32) -> Bits {
    Bits::from_big(&BigUint::parse_bytes(hex.as_bytes(), 16).unwrap(), width)
}

#[test]
fn arithmetic_wraps_at_every_width() {
    for width in [1, 7, 8, 64, 127, 128, 129, 300] {
        let max = Bits::ones(width);
        let one = Bits::new(1, width);
        assert!(max.add(&one).is_zero(), "width {width}");
        assert_eq!(Bits::zero(width).sub(&one), max, "width {width}");
        assert_eq!(max.mul(&max), one, "(-1)*(-1), width {width}");
        assert_eq!(one.neg(), max);
    }
}

#[test]
fn saturation_clamps_both_ways() {
    let b = |v| Bits::new(v, 8);
    assert_eq!(b(250).saturating_add(&b(10)), b(255));
    assert_eq!(b(3).saturating_sub(&b(10)), b(0));
    assert_eq!(b(0x7f).signed_saturating_add(&b(1)), b(0x7f));
    assert_eq!(b(0x80).signed_saturating_sub(&b(1)), b(0x80));
    assert_eq!(b(0x80).signed_saturating_add(&b(0x80)), b(0x80));
    assert_eq!(b(5).signed_saturating_sub(&b(7)), b(0xfe));
}

#[test]
fn slices_and_concatenation_cross_the_inline_limit() {
    let value = wide("0123456789abcdef0123456789abcdef0123456789abcdef", 192);
    assert_eq!(value.slice(191, 128), Bits::new(0x0123_4567_89ab_cdef, 64));
    let joined = value.slice(191, 96).concat(&value.slice(95, 0));
    assert_eq!(joined, value);
    let patched = value.with_slice(131, 124, &Bits::new(0xff, 8));
    assert_eq!(patched.slice(131, 124), Bits::new(0xff, 8));
    assert_eq!(patched.slice(123, 0), value.slice(123, 0));
}

#[test]
fn reading_and_writing_unaligned_fields_agree() {
    for width in [1u32, 3, 8, 13, 48, 64, 121, 128, 130, 200] {
        for offset in 0..16usize {
            let mut data = vec![0xa5u8; 48];
            let before = data.clone();
            let value = Bits::ones(width).sub(&Bits::new(2u128.min((1 << width.min(2)) - 1), width));
            value.write(&mut data, offset);
            assert_eq!(Bits::read(&data, offset, width), value, "width {width} offset {offset}");
            for bit in (0..48 * 8).filter(|bit| *bit < offset || *bit >= offset + width as usize) {
                let mask = 0x80 >> (bit % 8);
                assert_eq!(data[bit / 8] & mask, before[bit / 8] & mask, "bit {bit} disturbed");
            }
        }
    }
}

#[test]
fn signed_views() {
    let minus_two = Bits::new(0xfe, 8);
    assert_eq!(minus_two.sign_extend(16), Bits::new(0xfffe, 16));
    assert_eq!(minus_two.signed_shr(1), Bits::new(0xff, 8));
    assert_eq!(minus_two.signed_shr(200), Bits::new(0xff, 8));
    assert!(minus_two.signed_cmp(&Bits::new(1, 8)).is_lt());
    assert_eq!(minus_two.to_signed_big(), (-2).into());
    assert_eq!(Bits::from_signed_big(&(-2).into(), 8), minus_two);
}

#[test]
fn text_form_round_trips_and_refuses_overflow() {
    for value in [Bits::new(0x2a, 8), Bits::zero(0), wide("ff00ff00ff00ff00ff00ff00ff00ff00ff", 140)] {
        assert_eq!(Bits::parse(&value.to_string()), Some(value));
    }
    assert_eq!(Bits::parse("256:8"), None);
    assert_eq!(Bits::parse("0x:8"), None);
    assert_eq!(Bits::parse("1:999999999"), None);
}

#[test]
fn words_and_back() {
    for width in [0, 1, 63, 64, 65, 128, 129, 300] {
        let value = Bits::ones(width).sub(&Bits::new(2, width));
        let words: Vec<u64> = (0..(width as usize).div_ceil(64)).map(|i| value.word(i)).collect();
        assert_eq!(Bits::from_words(&words, width), value);
        assert_eq!(value.word(words.len()), 0);
    }
    assert_eq!(Bits::from_words(&[u64::MAX; 4], 130), Bits::ones(130));
}
