//! Rules that test separate states of aggregates: their cost and their refusal.

use crate::support;
use diagnostics::{Diagnostics, SourceMap};
use subscribe::{
    ColumnLayout, CompileOptions, ComputedAggregate, MessageFormat, Refusal, Subscriptions, TargetCapabilities,
    aggregate, workload,
};

/// Returns a format whose program computes these aggregates, each with `slots` slots.
fn format(aggregates: &[&str], slots: u16) -> MessageFormat {
    let plain = workload::itch();
    let computed = |text: &&str| {
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let aggregate = aggregate(&mut map, text, &plain, &mut diagnostics).expect("an aggregate");
        ComputedAggregate { aggregate: Some(aggregate), slots, keys: 16 }
    };
    let mut format = plain.clone();
    aggregates.iter().map(computed).for_each(|computed| format.compute(computed));
    format
}

/// Compiles `rules` rules, whose text depends on their number.
fn compile(format: &MessageFormat, rules: u32, text: impl Fn(u32) -> String) -> (Subscriptions, Result<(), Refusal>) {
    let rules = support::rules(&(0..rules).map(|rule| text(rule) + "\n").collect::<String>(), format);
    let target = TargetCapabilities { max_group: 0xdfff, ..TargetCapabilities::default() };
    let layout = ColumnLayout::sensible(format, &rules);
    let mut all = Subscriptions::new(format.clone(), layout, CompileOptions { target, ..CompileOptions::default() });
    let done = all.change(&[], rules).map(drop);
    (all, done)
}

fn own_count(rule: u32) -> String {
    format!("rule r{rule}: price > {rule} and count() by stock > {} : fwd({})", 100 + rule, rule + 1)
}

fn two_of_its_own(rule: u32) -> String {
    format!("price > {rule} and count() by stock > 9 and avg(price) by stock > {rule} : fwd({})", rule + 1)
}

#[test]
fn a_few_cross_and_more_are_refused_by_name_before_they_fill_the_memory() {
    let format = format(&["count() by stock"], 64);
    let (all, done) = compile(&format, 10, own_count);
    assert_eq!(done, Ok(()));
    assert!(all.stats().entries() < 5_000);
    for rules in [16, 22, 64] {
        let (all, done) = compile(&format, rules, own_count);
        let Err(refusal @ Refusal::StateExplosion(_)) = done else { panic!("{rules} rules: {done:?}") };
        assert!(all.kept() < 1 << 20, "{rules} rules needed {} nodes", all.kept());
        let diagnostic = refusal.diagnostic(&SourceMap::new());
        assert!(diagnostic.message.contains(&format!("{rules} rules")), "{}", diagnostic.message);
        let help = diagnostic.help.expect("what to do");
        assert!(help.contains("rule `r0`, rule `r1`") && help.contains(&format!("{} others", rules - 4)), "{help}");
    }
}

#[test]
fn rules_that_are_refused_leave_what_was_before() {
    let format = format(&["count() by stock"], 64);
    let (mut all, done) = compile(&format, 6, own_count);
    assert_eq!(done, Ok(()));
    let before = all.tables();
    let more = (6..30).map(own_count).collect::<Vec<_>>().join("\n");
    assert!(matches!(all.change(&[], support::rules(&more, &format)), Err(Refusal::StateExplosion(_))));
    assert_eq!(all.tables(), before);
    // Rules added one by one are refused as soon as they are too many.
    let refused = (6..30).find(|rule| all.change(&[], support::rules(&own_count(*rule), &format)).is_err());
    assert!(refused.is_some_and(|rule| (12..16).contains(&rule)), "{refused:?}");
}

#[test]
fn rules_for_one_port_cost_little_also_with_two_aggregates() {
    let two = format(&["count() by stock", "avg(price) by stock"], 32);
    let (all, done) = compile(&two, 32, |rule| two_of_its_own(rule).replace(&format!("fwd({})", rule + 1), "fwd(1)"));
    assert_eq!(done, Ok(()));
    assert!(all.stats().entries() < 5_000, "{}", all.stats().entries());
    let (_, done) = compile(&two, 32, two_of_its_own);
    assert!(matches!(&done, Err(Refusal::StateExplosion(rules)) if rules.len() == 32), "{done:?}");
}

#[test]
fn rules_whose_conditions_exclude_each_other_do_not_cross() {
    let format = format(&["count() by stock"], 64);
    let apart = |rule| format!("price == {rule} and count() by stock > {} : fwd({})", 100 + rule, rule + 1);
    let (all, done) = compile(&format, 64, apart);
    assert_eq!(done, Ok(()));
    assert!(all.stats().entries() < 1_000);
}
