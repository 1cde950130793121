use super::*;
use rng::SplitMix64;

const KINDS: [RuleElement; 3] = [RuleElement::Ternary, RuleElement::Range, RuleElement::Ternary];

/// A table beside the rules that it should have.
struct Pair {
    shape: FlatRules,
    words: Vec<AtomicU64>,
    writer: RuleWriter,
    rules: BTreeMap<u32, FlatRule>,
}

impl Pair {
    fn new(kinds: &[RuleElement], capacity: u32) -> Pair {
        let shape = FlatRules::new(kinds, capacity);
        let words = (0..shape.words()).map(|_| AtomicU64::new(0)).collect();
        Pair { shape, words, writer: RuleWriter::new(shape), rules: BTreeMap::new() }
    }

    fn insert(&mut self, number: u32, rule: FlatRule) {
        self.writer.insert(&self.words, number, &rule).expect("there is room");
        self.rules.insert(number, rule);
    }

    fn remove(&mut self, number: u32) {
        self.writer.remove(&self.words, number);
        self.rules.remove(&number);
    }

    /// Looks a key up; `None` if the rule is not known.
    fn check(&mut self, key: &[u64]) -> Option<u32> {
        self.writer.finish(&self.words);
        let is_match = |rule: &FlatRule| {
            self.shape.elements().zip(key).zip(&rule.pairs).all(|((kind, word), pair)| kind.matches(*pair, *word))
        };
        let matches: Vec<(u32, (i32, u32))> =
            self.rules.iter().filter(|(_, rule)| is_match(rule)).map(|(number, rule)| (*number, rule.rank)).collect();
        let best = matches.iter().map(|(_, rank)| *rank).max();
        let best: Vec<u32> =
            matches.iter().filter(|(_, rank)| Some(*rank) == best).map(|(number, _)| *number).collect();
        let found = self.shape.lookup(&self.words, key);
        match (found, &best[..]) {
            (Some(found), [best]) => assert_eq!(found, *best),
            (Some(found), best) => assert!(found == 0 && best.is_empty(), "{found} of {best:?}"),
            (None, _) => {}
        }
        assert!(best.len() < 2 || found.is_none(), "the order of {best:?} is not known");
        found
    }
}

fn random_rule(rng: &mut SplitMix64) -> FlatRule {
    let mask = rng.below(16);
    let low = rng.below(16);
    let pairs = vec![[rng.below(16) & mask, mask], [low, low + rng.below(6)], [0, 0]];
    FlatRule { rank: (rng.below(4) as i32 - 2, rng.below(3) as u32), pairs }
}

#[test]
fn the_highest_rank_that_matches_is_found_unless_two_have_it() {
    let mut rng = SplitMix64::new(9);
    let (mut found, mut unknown) = (0, 0);
    for limit in [4, 12, 30] {
        let mut table = Pair::new(&KINDS, 40);
        for _ in 0..1500 {
            let number = 1 + rng.below(limit) as u32;
            table.remove(number);
            if rng.percent(60) {
                table.insert(number, random_rule(&mut rng));
            }
            for _ in 0..10 {
                match table.check(&[rng.below(16), rng.below(22), rng.below(3)]) {
                    Some(number) => found += u32::from(number != 0),
                    None => unknown += 1,
                }
            }
        }
    }
    assert!(found > 10_000 && (500..20_000).contains(&unknown), "{found} found, {unknown} unknown");
}

#[test]
fn thousands_of_rules_are_found_in_few_steps() {
    let mut rng = SplitMix64::new(3);
    let mut table = Pair::new(&KINDS, MAX_RULES);
    let rule = |rng: &mut SplitMix64, number: u32| {
        let prefix = |length: u64| u64::from(u32::MAX) & !u64::from(u32::MAX).checked_shr(length as u32).unwrap_or(0);
        let mask = prefix(16 + rng.below(17));
        let port = rng.below(1000);
        let range = if rng.percent(50) { [port, port] } else { [port & !7, port | 7] };
        let protocol = [[6, 255], [17, 255], [0, 0]][rng.below(3) as usize];
        FlatRule { rank: (number as i32, 0), pairs: vec![[rng.next_u64() & mask, mask], range, protocol] }
    };
    for number in 1..=3000 {
        table.insert(number, rule(&mut rng, number));
    }
    for round in 0..200 {
        let number = 1 + rng.below(3000) as u32;
        table.remove(number);
        table.insert(number, rule(&mut rng, number));
        let of = table.rules[&(1 + rng.below(3000) as u32)].pairs.clone();
        let key = [of[0][0], of[1][1], of[2][0]];
        let found = table.check(&key);
        assert!(found.is_some_and(|number| number != 0), "round {round}: {found:?}");
    }
    assert!(table.writer.tuples.len() < MAX_TUPLES, "{} tuples", table.writer.tuples.len());
}

#[test]
fn rules_without_a_common_mask_are_compared_or_not_known() {
    let mut table = Pair::new(&[RuleElement::Ternary], 2000);
    // Each mask has two bits that no other has together.
    let masks = (0..64u64).flat_map(|a| (0..a).map(move |b| 1 << a | 1 << b));
    for (number, mask) in (1..).zip(masks.take(1500)) {
        let rule = FlatRule { rank: (number as i32, 0), pairs: vec![[mask, mask]] };
        if table.writer.insert(&table.words, number, &rule).is_ok() {
            table.rules.insert(number, rule);
        }
    }
    assert_eq!(table.writer.tuples.len(), MAX_TUPLES - 1, "with one for all that no other admits");
    assert!((1024..1500).contains(&table.rules.len()), "{} rules", table.rules.len());
    let best = *table.rules.keys().next_back().expect("there are rules");
    let key = table.rules[&best].pairs[0][0];
    assert_eq!(table.check(&[key]), Some(best), "the best rule comes first");
    assert_eq!(table.check(&[0]), None, "all would have to be compared");
    let numbers: Vec<u32> = table.rules.keys().copied().collect();
    numbers.iter().for_each(|number| table.remove(*number));
    assert_eq!(table.check(&[0]), Some(0));
    assert!(table.writer.tuples.is_empty() && table.writer.places.is_empty());
    table.insert(7, FlatRule { rank: (1, 0), pairs: vec![[0, 0]] });
    assert_eq!(table.check(&[5]), Some(7));
}

#[test]
fn rules_that_had_no_tuple_get_one_when_others_are_gone() {
    let mut table = Pair::new(&[RuleElement::Ternary], 2000);
    let odd_masks = [62, 63].into_iter().flat_map(|high| (16..43u64).map(move |low| 1 << high | 1 << low));
    for (number, mask) in (1..).zip(odd_masks) {
        table.insert(number, FlatRule { rank: (1, number), pairs: vec![[mask, mask]] });
    }
    assert_eq!(table.writer.tuples.len(), MAX_TUPLES - 1);
    let numbers = 101..=1000;
    for number in numbers.clone() {
        table.insert(number, FlatRule { rank: (number as i32, 0), pairs: vec![[number.into(), 0xffff]] });
    }
    let known = |table: &mut Pair| numbers.clone().filter(|number| table.check(&[(*number).into()]).is_some()).count();
    assert!(known(&mut table) < 200, "no tuple was left for their mask");
    assert!(!table.writer.finish(&table.words));
    (1..=53).for_each(|number| table.remove(number));
    assert!(table.writer.finish(&table.words), "there is room in the list");
    assert_eq!(known(&mut table), 900);
    assert!(!table.writer.finish(&table.words), "nothing is left to move");
    numbers.clone().chain([54]).for_each(|number| table.remove(number));
    assert!(table.writer.tuples.is_empty() && table.writer.places.is_empty());
}

#[test]
fn a_table_takes_its_capacity() {
    let mut table = Pair::new(&[RuleElement::Ternary], 64);
    let rule = |number: u32| FlatRule { rank: (1, 0), pairs: vec![[number.into(), u64::MAX]] };
    (1..=64).for_each(|number| table.insert(number, rule(number)));
    assert_eq!(table.writer.insert(&table.words, 65, &rule(65)), Err(FlatFull));
    for key in 0..=65 {
        assert_eq!(table.check(&[key]), Some(if key > 64 { 0 } else { key as u32 }));
    }
    assert_eq!(FlatRules::new(&KINDS, u32::MAX).capacity(), MAX_RULES);
}

#[test]
fn masks_become_coarse_by_whole_bytes() {
    let cases = [
        (0, 0),
        (0xff, 0xff),
        (0x1ff, 0x1fe),
        (0xfffe_0000, 0xff00_0000),
        (0xf0, 0),
        (0b101, 0b101),
        (u64::MAX, u64::MAX),
    ];
    for (mask, expected) in cases {
        assert_eq!(coarse(mask), expected, "{mask:#x}");
    }
}
