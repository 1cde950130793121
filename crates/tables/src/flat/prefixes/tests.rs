use super::*;
use crate::{FieldKind, KeyLayout, Lpm, PackedLookup};
use rng::SplitMix64;

fn blank(shape: &FlatPrefixes) -> Vec<AtomicU64> {
    (0..shape.words()).map(|_| AtomicU64::new(0)).collect()
}

#[test]
fn it_agrees_with_the_ordinary_table_while_prefixes_come_and_go() {
    let small = [1, 3, 9, 16, 17, 21, 24, 32, 48, 64, 80, 100, 128].map(|width| (width, 150));
    let large = [16, 17, 20, 32, 64, 80, 84, 128].map(|width| (width, LARGE));
    for (width, capacity) in small.into_iter().chain(large) {
        let shape = FlatPrefixes::new(width, capacity).expect("a table");
        let words = blank(&shape);
        let mut writer = PrefixWriter::new(shape);
        let mut ordinary = Lpm::new(&KeyLayout::new([(width, FieldKind::Prefix)]));
        let mut rng = SplitMix64::new(width.into());
        let mut present: Vec<(u128, u32)> = Vec::new();
        let key = |value: u128| [value as u64, (value >> 64) as u64][..width.div_ceil(64) as usize].to_vec();
        let random = |rng: &mut SplitMix64| {
            // Few different bits at the start and the end, so that prefixes contain each other.
            let bits = u128::from(rng.below(8)) << (width.max(3) - 3) | u128::from(rng.below(8));
            bits & (u128::MAX >> (128 - width))
        };
        for step in 1..3000 {
            let length = rng.below(u64::from(width) + 1) as u32;
            let value = prefix_of(random(&mut rng), length, width);
            match present.iter().position(|one| *one == (value, length)) {
                Some(at) if rng.percent(60) => {
                    let number = ordinary.remove(&key(value), length).expect("the prefix is there");
                    assert_eq!(writer.remove(&words, value, length), number);
                    present.swap_remove(at);
                }
                None if present.len() < 150 => {
                    ordinary.insert(&key(value), length, step);
                    assert_eq!(writer.insert(&words, value, length, step), Ok(()));
                    present.push((value, length));
                }
                _ => {}
            }
            for value in [value, random(&mut rng)] {
                let expected = ordinary.lookup(&key(value)).unwrap_or(0);
                assert_eq!(shape.lookup(&words, value), expected, "{value:#x} of {width} bits, step {step}");
            }
        }
        assert!(!present.is_empty());
        present.iter().for_each(|(value, length)| _ = writer.remove(&words, *value, *length));
        assert!(words.iter().all(|word| load(std::slice::from_ref(word), 0) == 0), "nothing stays");
    }
}

#[test]
fn every_capacity_is_reached_and_nodes_are_used_again() {
    // Each two neighbours share two nodes, and there are no more.
    let shape = FlatPrefixes::new(24, 4).expect("a small table");
    assert_eq!(shape.children(), 4);
    let words = blank(&shape);
    let mut writer = PrefixWriter::new(shape);
    for round in 0..3u32 {
        let value = |number: u32| u128::from((number / 2) << 22 | round << 10 | (number % 2));
        for number in 0..4 {
            assert_eq!(writer.insert(&words, value(number), 24, number + 1), Ok(()));
        }
        assert_eq!(writer.insert(&words, 0xff_fff0, 24, 9), Ok(()), "a leaf needs no node");
        for _ in 0..2 {
            assert_eq!(writer.insert(&words, 0xff_fff1, 24, 10), Err(FlatFull));
        }
        assert_eq!(writer.insert(&words, 0xff_ff00, 16, 11), Ok(()), "the root has room");
        assert_eq!([0xff_fff0, 0xff_fff1].map(|value| shape.lookup(&words, value)), [9, 11]);
        assert_eq!([(0xff_ff00, 16), (0xff_fff0, 24)].map(|(v, length)| writer.remove(&words, v, length)), [11, 9]);
        for number in 0..4 {
            assert_eq!(shape.lookup(&words, value(number)), number + 1);
            assert_eq!(writer.remove(&words, value(number), 24), number + 1);
        }
    }
}

#[test]
fn a_prefix_that_needs_more_nodes_than_there_are_changes_nothing() {
    let shape = FlatPrefixes::new(24, 4).expect("a small table");
    let words = blank(&shape);
    let mut writer = PrefixWriter::new(shape);
    // Two that need two nodes, and two that need one.
    for (number, value) in (1..).zip([0x10_0000, 0x10_0001, 0x20_0000, 0x20_0010, 0x30_0000]) {
        assert_eq!(writer.insert(&words, value, 24, number), Ok(()));
    }
    let before: Vec<u64> = words.iter().map(|word| load(std::slice::from_ref(word), 0)).collect();
    assert_eq!(writer.insert(&words, 0x30_0001, 24, 6), Err(FlatFull));
    assert!(words.iter().zip(&before).all(|(word, before)| load(std::slice::from_ref(word), 0) == *before));
    assert_eq!(writer.insert(&words, 0x30_0010, 24, 6), Ok(()), "one node is enough");
    assert_eq!([0x30_0000, 0x30_0001, 0x30_0010].map(|value| shape.lookup(&words, value)), [5, 0, 6]);
}

#[test]
fn a_prefix_that_is_alone_again_gives_its_nodes_back() {
    let shape = FlatPrefixes::new(24, 4).expect("a small table");
    let words = blank(&shape);
    let mut writer = PrefixWriter::new(shape);
    for number in 0..4u32 {
        let value = u128::from(number) << 22;
        // One that is in the words of its node, and one that is a leaf.
        for (length, number) in [(24, 2 * number + 1), (22, 2 * number + 2)] {
            assert_eq!(writer.insert(&words, value, length, number), Ok(()));
        }
        let (goes, stays) = if number % 2 == 0 { (24, 22) } else { (22, 24) };
        assert_ne!(writer.remove(&words, value, goes), 0);
        let expected = writer.present[&(stays, value)];
        assert_eq!(shape.lookup(&words, value), expected);
        assert_eq!(shape.lookup(&words, value | 1), if stays == 22 { expected } else { 0 });
        assert!(
            words[shape.first_child()..].iter().all(|word| load(std::slice::from_ref(word), 0) == 0),
            "all are free"
        );
    }
}

#[test]
fn long_prefixes_have_room_whether_they_share_bits_or_not() {
    // Those of more than 30 bits are too long for leaves of the root, so each may have nodes of its own.
    for (width, spread) in [(32, 0), (32, 8), (32, 20), (64, 0), (64, 20), (64, 40), (64, 52)] {
        let shape = FlatPrefixes::new(width, 256).expect("a small table");
        let words = blank(&shape);
        let mut writer = PrefixWriter::new(shape);
        let value = |number: u128| ((number / 2) << spread << 1) | (number % 2);
        // All alone.
        let apart = |number: u128| number << (width - 8);
        for value in [&value as &dyn Fn(u128) -> u128, &apart] {
            for number in 0..256 {
                assert_eq!(writer.insert(&words, value(number), width, number as u32 + 1), Ok(()), "{width}, {spread}");
            }
            assert!((0..256).all(|number| shape.lookup(&words, value(number)) == number as u32 + 1));
            (0..256).for_each(|number| assert_ne!(writer.remove(&words, value(number), width), 0));
        }
    }
}

#[test]
fn too_many_nodes_are_no_shape() {
    assert_eq!(FlatPrefixes::new(64, 1 << 21), None);
    assert_eq!(FlatPrefixes::new(128, 1 << 22), None);
    assert!([65, 79, 81, 126, 132].into_iter().all(|width| FlatPrefixes::new(width, 1).is_none()));
    assert!(FlatPrefixes::new(16, (1 << TARGET_BITS) - 1).is_some(), "the root covers all bits");
    assert_eq!(FlatPrefixes::new(16, 1 << TARGET_BITS), None, "too many numbers");
}
