use super::*;

const HASH: SketchHash = SketchHash { bits: 1_024, seed: 7 };

fn link(switch: u32, port: u32) -> LinkPlace {
    LinkPlace { switch, port }
}

fn about(sketch: &BitmapSketch, link: LinkPlace) -> f64 {
    match sketch.estimate(link) {
        Cardinality::About(count) => count,
        Cardinality::Full => panic!("the bitmap is full"),
    }
}

/// Returns a sketch of elements at one link.
fn sketch(hash: SketchHash, elements: impl Iterator<Item = u64>) -> BitmapSketch {
    let mut sketch = BitmapSketch::new(hash);
    elements.for_each(|element| sketch.observe(link(1, 1), &element.to_be_bytes()));
    sketch
}

#[test]
fn estimates_have_the_error_of_linear_counting() {
    for (bits, elements) in [(1_024, 100), (1_024, 1_000), (1_024, 3_000), (1_000, 1_000), (65_536, 50_000)] {
        let (mut squares, mut far) = (0.0, 0);
        let error = standard_error(bits, elements as f64);
        const SEEDS: u64 = 40;
        for seed in 0..SEEDS {
            let counted = sketch(SketchHash { bits, seed }, (0..elements).map(|element| element * 3));
            let deviation = (about(&counted, link(1, 1)) - elements as f64) / error;
            assert!(deviation.abs() <= 5.0, "{bits} bits, {elements} elements, seed {seed}: {deviation} sigma");
            far += u32::from(deviation.abs() > 3.0);
            squares += deviation * deviation / SEEDS as f64;
        }
        assert!(far <= 2, "{bits} bits, {elements} elements: {far} of {SEEDS} are beyond 3 sigma");
        // The error is that of the formula, and not much less either.
        assert!((0.5..1.6).contains(&squares.sqrt()), "{bits} bits, {elements} elements: {}", squares.sqrt());
    }
}

#[test]
fn an_element_counts_once_however_often_it_passes() {
    let once = sketch(HASH, 0..300);
    assert_eq!(sketch(HASH, (0..300).chain(0..300).chain(50..100)), once);
    assert_eq!(about(&BitmapSketch::new(HASH), link(1, 1)), 0.0);
}

#[test]
fn the_merge_of_hosts_is_the_bitmap_of_one_that_sees_all() {
    let mut random = rng::SplitMix64::new(3);
    let mut central = BitmapSketch::new(HASH);
    let mut hosts = vec![BitmapSketch::new(HASH); 5];
    for _ in 0..5_000 {
        let (place, element) =
            (link(random.below(3) as u32, random.below(4) as u32), random.below(2_000).to_be_bytes());
        central.observe(place, &element);
        hosts[random.below(5) as usize].observe(place, &element);
    }
    let mut merged = BitmapSketch::new(HASH);
    // In any order, and one of them twice.
    for host in [3, 0, 4, 1, 3, 2] {
        merged.merge(&hosts[host]).expect("they have the same hash");
    }
    assert_eq!(merged, central);
    assert_eq!(merged.links().count(), 12);
}

#[test]
fn ports_of_different_switches_are_different_links() {
    let mut sketch = BitmapSketch::new(HASH);
    (0_u32..100).for_each(|element| sketch.observe(link(1, 2), &element.to_be_bytes()));
    (100_u32..400).for_each(|element| sketch.observe(link(2, 2), &element.to_be_bytes()));
    let counts = [link(1, 2), link(2, 2), link(2, 1)].map(|link| about(&sketch, link));
    assert!((80.0..120.0).contains(&counts[0]) && (250.0..350.0).contains(&counts[1]), "{counts:?}");
    assert_eq!(counts[2], 0.0);
}

#[test]
fn sketches_of_different_hashes_are_not_merged() {
    let mut merged = sketch(HASH, 0..100);
    let before = merged.clone();
    let other = sketch(SketchHash { seed: 8, ..HASH }, 0..100);
    assert_eq!(merged.merge(&other), Err(MergeRefusal::Seed(8, 7)));
    let other = sketch(SketchHash { bits: 2_048, ..HASH }, 0..100);
    let refused = merged.merge(&other).expect_err("it has more bits");
    assert_eq!(refused.to_string(), "a sketch with 2048 bits a link cannot be merged into one with 1024");
    assert_eq!(merged, before);
    let mut aggregator = SketchAggregator::new(HASH);
    assert!(aggregator.accept(&SketchReport { period: 4, sketch: other }).is_err());
    assert_eq!(aggregator.periods().count(), 0);
}

#[test]
fn a_full_bitmap_has_no_estimate() {
    let hash = SketchHash { bits: 64, seed: 1 };
    let counted = sketch(hash, 0..10_000);
    assert_eq!(counted.estimate(link(1, 1)), Cardinality::Full);
    let nearly = sketch(hash, 0..50);
    assert!(about(&nearly, link(1, 1)).is_finite());
    // Bits that fill no word.
    assert_eq!(sketch(SketchHash { bits: 100, seed: 1 }, 0..10_000).estimate(link(1, 1)), Cardinality::Full);
}

#[test]
fn hosts_report_each_period_and_links_that_they_saw_in_it() {
    let mut host = HostSketch::new(HASH, 1_000);
    assert_eq!(host.observe(10, link(1, 1), b"a"), None);
    assert_eq!(host.observe(999, link(1, 2), b"a"), None);
    let first = host.observe(2_500, link(2, 1), b"b").expect("the first period is over");
    assert_eq!((first.period, first.sketch.links().collect::<Vec<_>>()), (0, vec![link(1, 1), link(1, 2)]));
    // A clock that was set back does not open an old period again.
    assert_eq!(host.observe(1_500, link(2, 2), b"b"), None);
    let second = host.poll(3_000).expect("it is over");
    assert_eq!((second.period, second.sketch.links().count()), (2, 2));
    assert_eq!(host.poll(9_000), None, "nothing was seen");
    let mut aggregator = SketchAggregator::new(HASH);
    for report in [&second, &first, &second] {
        aggregator.accept(report).expect("it has the hash");
    }
    let periods: Vec<_> = aggregator.periods().map(|(period, sketch)| (period, sketch.links().count())).collect();
    assert_eq!(periods, [(0, 2), (2, 2)]);
}

#[test]
fn links_and_bits_are_bounded() {
    let mut sketch = BitmapSketch::new(SketchHash { bits: 0, seed: 0 });
    assert_eq!(sketch.hash().bits, 8);
    assert_eq!(BitmapSketch::new(SketchHash { bits: u32::MAX, seed: 0 }).hash().bits, 1 << 20);
    (0..MAX_LINKS as u32 + 5).for_each(|port| sketch.observe(link(1, port), b"x"));
    assert_eq!((sketch.links().count(), sketch.left_out()), (MAX_LINKS, 5));
    // A merge keeps to the maximum too, and a repeated report counts again.
    let mut other = BitmapSketch::new(sketch.hash());
    [link(1, 0), link(2, 1)].into_iter().for_each(|place| other.observe(place, b"x"));
    for left_out in [6, 7] {
        sketch.merge(&other).expect("they have the same hash");
        assert_eq!((sketch.links().count(), sketch.left_out()), (MAX_LINKS, left_out));
    }
}

#[test]
fn an_aggregator_keeps_the_latest_periods() {
    let mut aggregator = SketchAggregator::new(HASH);
    let seen = sketch(HASH, 0..1);
    // The first period comes once more when it was dropped.
    for period in (0..4_097).chain([0]) {
        aggregator.accept(&SketchReport { period, sketch: seen.clone() }).expect("it has the hash");
    }
    assert_eq!(aggregator.periods().count(), 4_096);
    assert_eq!(aggregator.periods().next().map(|(period, _)| period), Some(1));
}
