//! Cells of keys.

use subscribe_p4::entries::Installer;

use crate::state::switch::{Made, TestSwitch};
use crate::state::{BOTH, METER, PORTS, compiled};

/// Returns a frame with a reading of 1 at a site, in a unit.
fn reading(site: u8, unit: u8) -> Vec<u8> {
    let value = [0, 0, 0, 1];
    let large = [0; 9];
    [&[1, 0, site][..], &value, &large, &[unit, 0]].concat()
}

/// Register of the number of evicted keys of the first slot with a pair of fields as its key.
const EVICTIONS: &str = "slot_2_kept_evictions";

/// Returns for each of some messages, 1 µs apart, whether it was delivered; and the number of evicted keys.
pub fn results(made: &Made, rules: &str, messages: &[(u8, u8)], evictions: &str) -> Vec<(Vec<bool>, u128)> {
    let all = compiled(made, rules);
    let run = |executor| {
        let mut switch = TestSwitch::new(made, executor);
        let mut installer = Installer::new(&made.format, &made.rules, all.layout(), &made.options, 510);
        installer.install(&all.tables()).expect("few groups").iter().for_each(|update| switch.apply(update));
        let went =
            |(at, (site, unit)): (usize, &(u8, u8))| !switch.message(at as u64, reading(*site, *unit)).is_empty();
        (messages.iter().enumerate().map(went).collect(), switch.register(evictions, 0))
    };
    BOTH.map(run).to_vec()
}

#[test]
fn keys_that_no_rule_names_share_cells_and_take_them_from_each_other() {
    // One of the two cells is for a key that a rule names, the other for all other keys.
    let made = Made::new(&METER.replace("over 4 packets\", 64", "over 4 packets\", 1"), PORTS, None, |program| program);
    let messages = [(1, b'A'), (1, b'A'), (2, b'A'), (1, b'A'), (1, b'A'), (1, b'B'), (1, b'A')];
    let rule = "count() by site, unit >= 1 : fwd(0)";
    let expected = (vec![false, true, false, false, true, false, false], 4);
    assert_eq!(results(&made, rule, &messages, EVICTIONS), [expected.clone(), expected]);
    // A named key keeps its cell.
    let rules = format!("{rule}\nsite == 1 and unit == \"A\" and count() by site, unit >= 1 : fwd(1)");
    let expected = (vec![false, true, false, true, true, false, false], 1);
    assert_eq!(results(&made, &rules, &messages, EVICTIONS), [expected.clone(), expected]);
}

#[test]
fn keys_that_a_rule_names_have_their_own_cells_however_they_are_written() {
    let made = Made::new(&METER.replace("over 4 packets\", 64", "over 4 packets\", 4"), PORTS, None, |program| program);
    let messages: Vec<(u8, u8)> = (0..3).flat_map(|_| (1..=4).map(|site| (site, b'A'))).collect();
    let expected: Vec<bool> = (0..12).map(|at| at >= 8).collect();
    for sites in ["site in {1, 2, 3, 4}", "(site == 1 or site == 2 or site in {3, 4})"] {
        let rule = format!("{sites} and unit == \"A\" and count() by site, unit >= 2 : fwd(0)");
        let expected = (expected.clone(), 0);
        assert_eq!(results(&made, &rule, &messages, EVICTIONS), [expected.clone(), expected], "{sites}");
    }
}
