//! Analyses of sets of rules: explanations, lints, sizes, refusals and equivalence.

use crate::support;
use diagnostics::SourceMap;
use rng::SplitMix64;
use subscribe::{
    ColumnLayout, CompileOptions, Condition, Limits, LintFinding, Message, Refusal, Subscriptions, Tables, difference,
    state, workload,
};

fn with(text: &str, options: CompileOptions) -> Subscriptions {
    let format = support::format();
    let rules = support::rules(text, &format);
    let mut all = Subscriptions::new(format.clone(), ColumnLayout::sensible(&format, &rules), options);
    all.change(&[], rules).expect("it fits");
    all
}

fn of(all: &Subscriptions, fields: &[(&str, u128)]) -> Message {
    let mut message = Message::empty(all.format());
    for (name, value) in fields {
        match all.format().subject(name).expect("a field") {
            subscribe::Subject::Field(id) => message.set(all.format(), id, *value),
            _ => panic!("{name} is not a field"),
        }
    }
    message
}

#[test]
fn explanations_name_the_test_that_decided() {
    let all = with(
        "rule a: shares == 3 and add_order.price > 5 : fwd(1)\n\
         rule b: shares == 3 and add_order.price > 9 : fwd(2)\n\
         rule c: not (trade.price > 1 and port == 2) : to_controller\n\
         rule d: trade.price > 1 or port == 1 : fwd(4)",
        CompileOptions::default(),
    );
    let message = of(&all, &[("shares", 3), ("add_order.price", 7)]);
    let explained = all.explain(&message, 10);
    assert_eq!(explained.delivery.shown(all.format()), "fwd(1); to_controller");
    let said = |verdict: &subscribe::Verdict| {
        let name = all.rule(verdict.rule).and_then(|rule| rule.name.clone()).unwrap_or_default();
        let because: Vec<String> =
            verdict.because.iter().map(|decided| format!("{} saw {}", decided.test, decided.saw)).collect();
        format!("{name}: {}", because.join(", "))
    };
    let matching: Vec<String> = explained.matching.iter().map(said).collect();
    assert_eq!(
        matching,
        [
            "a: add_order.shares == 3 saw 3, add_order.price >= 6 saw 7",
            "c: not (trade.price >= 2) saw `trade` is not valid"
        ]
    );
    let others: Vec<String> = explained.others.iter().map(said).collect();
    assert_eq!(
        others,
        ["b: add_order.price >= 10 saw 7", "d: trade.price >= 2 saw `trade` is not valid, meta.port == 1 saw 0"]
    );
}

#[test]
fn useless_rules_are_found_with_the_reason() {
    let all = with(
        "rule never: shares == 3 and add_order.price > 1 and shares > 5 : fwd(1)\n\
         rule nots: not (shares < 4 or shares > 2) and valid(add_order) : fwd(1)\n\
         rule empty: shares < 0 : fwd(1)\n\
         rule wide: add_order.price > 5 : fwd(2)\n\
         rule narrow: add_order.price > 7 : fwd(2)\n\
         rule other: add_order.price > 7 : fwd(3)\n\
         rule long: trade.isValid() and not (trade.price > 3 or port == 1) and (port == 1 or trade.price > 8) : fwd(1)",
        CompileOptions::default(),
    );
    let name = |id: subscribe::RuleId| all.rule(id).and_then(|rule| rule.name.clone()).unwrap_or_default().to_string();
    let never: Vec<(String, usize)> = all
        .lint_never_matches(&Condition::Always)
        .into_iter()
        .map(|useless| match useless {
            LintFinding::NeverMatches { rule, because } => (name(rule), because.len()),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [("never", 2), ("nots", 2), ("empty", 1), ("long", 0)];
    assert_eq!(never, expected.map(|(name, spans)| (name.to_owned(), spans)));
    let shown =
        all.lint_never_matches(&Condition::Always)[0].diagnostic(&all, &SourceMap::new()).expect("the rule is there");
    assert_eq!(shown.message, "rule `never` never matches");
    let covered = all.lint_covered(&Condition::Always);
    assert!(covered.is_complete);
    let covered: Vec<(String, Vec<String>)> = covered
        .found
        .into_iter()
        .map(|useless| match useless {
            LintFinding::Covered { rule, by } => {
                let name = |id| all.rule(id).and_then(|rule| rule.name.clone()).unwrap_or_default().to_string();
                (name(rule), by.into_iter().map(name).collect())
            }
            other => panic!("{other:?}"),
        })
        .filter(|(rule, _)| ["wide", "narrow", "other"].contains(&&**rule))
        .collect();
    assert_eq!(covered, [("narrow".to_owned(), vec!["wide".to_owned()])]);
}

/// Returns the redundant rules of a text: `narrow < wide` for a rule covered by one, `a < b + c` for a rule covered by
/// several.
fn covered(text: &str) -> Vec<String> {
    let all = with(text, CompileOptions::default());
    let covered = all.lint_covered(&Condition::Always);
    assert!(covered.is_complete);
    let name = |id: subscribe::RuleId| all.rule(id).and_then(|rule| rule.name.clone()).unwrap_or_default().to_string();
    let told = covered.found.iter().map(|useless| match useless {
        LintFinding::Covered { rule, by } => {
            format!("{} < {}", name(*rule), by.iter().map(|by| name(*by)).collect::<Vec<_>>().join(" + "))
        }
        other => panic!("{other:?}"),
    });
    told.collect()
}

#[test]
fn redundant_rules_are_found_in_every_order_of_their_tests() {
    let wide = "rule wide: add_order.price > 5 : fwd(2)\n";
    assert_eq!(covered(&format!("{wide}rule value: add_order.price == 9 : fwd(2)")), ["value < wide"]);
    assert_eq!(covered(&format!("{wide}rule both: stock == A and add_order.price > 10 : fwd(2)")), ["both < wide"]);
    assert_eq!(covered(&format!("{wide}rule more: stock == A and add_order.price > 10 : fwd(2, 3)")), [""; 0]);
    assert_eq!(covered("rule any: port == 2 || port == 1 : fwd(2)\nrule one: port == 2 : fwd(2)"), ["one < any"]);
    assert_eq!(covered("rule two: port == 2 : fwd(4, 5)\nrule one: port == 2 : fwd(5)"), ["one < two"]);
    let halves = "rule low: shares < 9 : fwd(2)\nrule high: shares > 5 : fwd(2)\nrule mid: shares in 4..12 : fwd(2)";
    assert_eq!(covered(halves), ["mid < low + high"]);
    let acts = "rule a: port == 2 : fwd(2)\nrule b: port == 2 : fwd(3)\nrule c: port == 2 and shares > 1 : fwd(2, 3)";
    assert_eq!(covered(acts), ["c < a + b"]);
    // Of two equal rules, one stays.
    assert_eq!(covered("rule a: port == 2 : fwd(2)\nrule b: port == 2 : fwd(2)"), ["b < a"]);
    // A general rule can also be covered by rules for all values together.
    let each: Vec<String> = (0..8).map(|port| format!("port == {port} : fwd(2)")).collect();
    assert_eq!(covered(&format!("{}\nrule all: shares > 3 : fwd(2)", each.join("\n"))), ["all < "]);
}

#[test]
fn a_rule_that_only_drops_what_others_deliver_is_reported() {
    let vetoes = |text: &str| {
        let all = with(text, CompileOptions::default());
        let name = |id: &subscribe::RuleId| all.rule(*id).and_then(|rule| rule.name.clone()).unwrap_or_default();
        let told = all.lint_ineffective_drops(&Condition::Always);
        let told = told.iter().map(|useless| match useless {
            LintFinding::IneffectiveDrop { rule, delivered } => format!("{} {}", name(rule), name(delivered)),
            other => panic!("{other:?}"),
        });
        told.collect::<Vec<String>>()
    };
    let rules = "rule a: port == 2 : fwd(2)\nrule b: shares > 4 : fwd(2)\nrule c: shares == 3 : drop\n";
    assert_eq!(vetoes(rules), ["c a"]);
    assert_eq!(vetoes("rule a: shares > 4 : fwd(2)\nrule b: shares == 3 : drop"), [""; 0]);
    assert_eq!(vetoes("rule a: shares > 2 : to_controller\nrule b: shares == 3 : drop; fwd(2)"), [""; 0]);
    assert_eq!(vetoes("rule a: shares > 2 : drop\nrule b: shares == 3 : drop"), [""; 0]);
}

#[test]
fn headers_that_exclude_each_other_make_rules_that_never_match() {
    let all = with(
        "rule both: valid(add_order) and valid(trade) : fwd(2)\n\
         rule fields: shares > 3 and trade.price > 2 : fwd(2)\n\
         rule absent: not valid(add_order) and shares > 3 : fwd(2)\n\
         rule one: shares > 3 : fwd(2)",
        CompileOptions::default(),
    );
    let valid = |name: &str| {
        let header = all.format().header_named(name).expect("a header");
        Condition::Valid { header, span: diagnostics::Span::default() }
    };
    let both = Condition::All(vec![valid("add_order"), valid("trade")]);
    let never: Vec<(String, usize)> = all
        .lint_never_matches(&Condition::Not(Box::new(both)))
        .into_iter()
        .map(|useless| match useless {
            LintFinding::NeverMatches { rule, because } => {
                (all.rule(rule).and_then(|rule| rule.name.clone()).unwrap_or_default().to_string(), because.len())
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(never, [("both", 2), ("fields", 2), ("absent", 2)].map(|(name, spans)| (name.to_owned(), spans)));
    // These rules are not reported as covered by `one` as well.
    let covered = all.lint_covered(&Condition::Not(Box::new(Condition::All(vec![valid("add_order"), valid("trade")]))));
    assert_eq!(covered.found, []);
}

#[test]
fn all_rules_that_are_found_can_go_at_once_and_no_other() {
    let mut rng = SplitMix64::new(47);
    let mut found = 0;
    for _ in 0..400 {
        let text: Vec<String> = (0..1 + rng.below(9)).map(|_| support::plain_rule(&mut rng)).collect();
        // Conflicting arguments or updates for one message would be refused.
        let format = support::format();
        let rules = support::rules(&text.join("\n"), &format);
        let layout = ColumnLayout::sensible(&format, &[]);
        let compile = |rules: Vec<subscribe::Rule>| {
            let mut all = Subscriptions::new(format.clone(), layout.clone(), CompileOptions::default());
            all.change(&[], rules).expect("it fits");
            all
        };
        let all = compile(rules.clone());
        let covered = all.lint_covered(&Condition::Always);
        let never: Vec<_> = all.lint_never_matches(&Condition::Always).iter().map(LintFinding::rule).collect();
        let goes: Vec<_> = covered.found.iter().map(LintFinding::rule).collect();
        assert!(never.iter().all(|id| !goes.contains(id)), "told once: {text:#?}");
        found += goes.len();
        let same = |without: &[subscribe::RuleId]| {
            let kept = all.rules().filter(|(id, _)| !without.contains(id)).map(|(_, rule)| rule.clone()).collect();
            let (one, other) = (all.tables(), compile(kept).tables());
            difference(&one, &other, &format, &layout, &Condition::Always, Limits::default()).expect("small").is_none()
        };
        assert!(same(&goes), "{goes:?} of {text:#?}");
        // Rules that only drop change nothing, and are no findings.
        let drops = |rule: &subscribe::Rule| rule.actions.iter().all(|action| *action == subscribe::RuleAction::Drop);
        let only_drops: Vec<_> = all.rules().filter(|(_, rule)| drops(rule)).map(|(id, _)| id).collect();
        assert!(only_drops.iter().all(|id| !goes.contains(id)) && same(&only_drops), "{text:#?}");
        let is_kept = |id: &subscribe::RuleId| ![&goes, &never, &only_drops].into_iter().any(|of| of.contains(id));
        for (id, _) in all.rules().filter(|(id, _)| is_kept(id)) {
            assert!(!same(&[goes.as_slice(), &[id]].concat()), "{id:?} of {text:#?}");
        }
    }
    assert!(found > 50, "{found}");
}

#[test]
fn tables_are_compared_as_functions() {
    let mut rng = SplitMix64::new(31);
    let format = support::format();
    let mut different = 0;
    for _ in 0..60 {
        let text: Vec<String> = (0..5).map(|_| support::plain_rule(&mut rng)).collect();
        let rules = support::rules(&text.join("\n"), &format);
        let layout = ColumnLayout::sensible(&format, &[]);
        let tables: Vec<Tables> = support::targets()
            .into_iter()
            .map(|options| {
                let mut all = Subscriptions::new(format.clone(), layout.clone(), options);
                // With another order of rules, states have other numbers.
                let mut rules = rules.clone();
                rules.rotate_left(rng.below(5) as usize);
                rules.into_iter().for_each(|rule| drop(all.change(&[], vec![rule]).expect("it fits")));
                all.tables()
            })
            .collect();
        for other in &tables {
            let same =
                difference(&tables[0], other, &format, &layout, &Condition::Always, Limits::default()).expect("small");
            assert_eq!(same, None, "{}", text.join("\n"));
        }
        // A missing or redirected entry must be detected; the message proves it.
        let mut broken = tables[0].clone();
        if broken.entries.is_empty() {
            continue;
        }
        let at = rng.below(broken.entries.len() as u64) as usize;
        if rng.percent(50) {
            broken.entries.remove(at);
        } else {
            broken.entries[at].next = broken.entries[0].next;
        }
        let found =
            difference(&tables[0], &broken, &format, &layout, &Condition::Always, Limits::default()).expect("small");
        if let Some(found) = found {
            let run = |tables: &Tables| {
                let mut delivery = tables.run(&format, &layout, &found.message);
                delivery.group = None;
                delivery
            };
            assert_eq!((run(&tables[0]), run(&broken)), (found.first.clone(), found.second.clone()));
            assert_ne!(found.first, found.second);
            different += 1;
        }
    }
    assert!(different > 30, "broken tables differ: {different}");
}

#[test]
fn sets_that_grow_too_large_are_refused_and_nothing_changes() {
    let of = workload::ranges(1, 2000, 10);
    let rules = support::rules(&of.text, &of.format);
    let limits = Limits { nodes: 100_000, ..Limits::default() };
    let mut all = Subscriptions::new(
        of.format.clone(),
        ColumnLayout::sensible(&of.format, &[]),
        CompileOptions { limits, ..CompileOptions::default() },
    );
    all.change(&[], rules[..10].to_vec()).expect("ten are few");
    let before = (all.tables(), all.stats().rules);
    let refusal = all.change(&[subscribe::RuleId(3)], rules[10..].to_vec()).expect_err("2000 are many");
    let text = refusal.diagnostic(&SourceMap::new()).render(&SourceMap::new(), false);
    for part in ["needs more than 100000 nodes", "test a field for equality"] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    assert!(matches!(refusal, Refusal::TooLarge { ranges, .. } if ranges.len() == 3 && ranges[0].1 > 1000));
    assert_eq!((all.tables(), all.stats().rules), before);
    all.change(&[], rules[10..20].to_vec()).expect("twenty are few too");
}

#[test]
fn tables_have_the_given_capacity_and_states_identify_their_stage() {
    let of = workload::ranges(1, 200, 10);
    let rules = support::rules(&of.text, &of.format);
    let limits = Limits { entries: 1000, ..Limits::default() };
    let layout = ColumnLayout::sensible(&of.format, &[]);
    let mut all = Subscriptions::new(of.format.clone(), layout, CompileOptions { limits, ..CompileOptions::default() });
    let refusal = all.change(&[], rules.clone()).expect_err("many cross");
    let diagnostic = refusal.diagnostic(&SourceMap::new());
    assert_eq!(diagnostic.primary.span, rules[0].span);
    let text = diagnostic.message;
    assert!(text.contains("these 200 rules need more than 1000 entries for `add_order."), "{text}");
    assert_eq!(all.tables(), Tables::default());
    let applied = all.change(&[], rules[..30].to_vec()).expect("thirty are few");
    let most = all.stats().stages.iter().map(subscribe::StageSize::all).max();
    assert!(most.is_some_and(|most| (100..=1000).contains(&most)), "{most:?}");
    for entry in applied.change.inserted.iter().filter(|entry| entry.stage > 0) {
        assert_eq!(state::tag(entry.state), state::stage_tag(entry.stage.into()));
    }
    assert!(all.tables().leaves.iter().all(|leaf| state::tag(leaf.state) == state::LEAF));
    // Removed rules free their space.
    let ids: Vec<_> = all.rules().map(|(id, _)| id).collect();
    all.change(&ids, Vec::new()).expect("none are fewer");
    all.change(&[], rules[30..60].to_vec()).expect("thirty are few");
}

#[test]
fn other_refusals_name_the_rules_and_change_nothing() {
    let mut all = with("rule one: shares == 3 : mark(1)", CompileOptions::default());
    let format = all.format().clone();
    let add = |all: &mut Subscriptions, text: &str| all.change(&[], support::rules(text, &format));
    add(&mut all, "rule apart: shares == 4 : mark(2)").expect("they exclude each other");
    let refusal =
        add(&mut all, "rule two: add_order.price > 3 : mark(1); fwd(1)\nrule three: trade.price == 3 : mark(3)");
    let refusal = refusal.expect_err("a message may be both");
    match &refusal {
        Refusal::Conflict { action, rules } => {
            assert_eq!((action.as_str(), rules.len()), ("mark", 2));
            assert!(rules.iter().all(|rule| rule.name.as_deref() != Some("apart")) || rules.len() == 2);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(all.rules().count(), 2);
    let rules: Vec<String> =
        (0..65).map(|at| format!("count() > 1 and add_order.price > {at} : fwd(1)")).take(31).collect();
    add(&mut all, &rules.join("\n")).expect("31 slots of 64");
    let more: Vec<String> =
        (0..40).map(|at| format!("count() > 1 and add_order.price < {} : fwd(1)", at % 31 + 1)).collect();
    let more = more.join("\n")
        + "\nsum(shares) > 1 and dst == 3 : fwd(2)\nsum(shares) > 1 and dst == 4 : fwd(2)\n\
                                  sum(shares) > 1 and dst == 5 : fwd(2)";
    assert!(matches!(add(&mut all, &more), Err(Refusal::Slots { slots: 64, .. })));
    assert_eq!((all.rules().count(), all.slots().len()), (33, 31));
    // Rules that were removed by a refused change get their slots back, in any order of removal.
    let before = (all.tables(), all.slots());
    let out: Vec<_> = all.rules().map(|(id, _)| id).collect();
    for out in [vec![out[9], out[3], out[20]], vec![out[3], out[9]]] {
        all.change(&out, support::rules("true : mark(5)\ntrue : mark(6)", &format)).expect_err("a conflict");
        assert_eq!((all.tables(), all.slots()), before);
    }
}

#[test]
fn pictures_have_every_node_once() {
    let all = with("shares == 3 and add_order.price > 5 : fwd(1)\nstock == A : fwd(2)", CompileOptions::default());
    let dot = all.dot(1000).expect("it is small");
    let stats = all.stats();
    assert_eq!(dot.matches("[label=").count(), stats.binary_nodes, "{dot}");
    assert_eq!(dot.matches("shape=box").count(), stats.sets, "{dot}");
    assert!(dot.contains("== \\\"A\\\"") && dot.contains("fwd(1, 2)"), "{dot}");
    assert_eq!(all.dot(3), None);
}
