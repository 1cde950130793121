//! Counters and aggregates over sequences of messages in time.

use crate::support;
use diagnostics::{Diagnostics, SourceMap};
use subscribe::{
    AggregateWindow, ColumnLayout, CompileOptions, ComputedAggregate, Memory, Message, MessageFormat, NoIncludes,
    Refusal, Subscriptions, Tables, TargetCapabilities, Window, aggregate, workload,
};

struct Feed {
    all: Subscriptions,
    memory: Memory,
    micros: u64,
}

impl Feed {
    fn new(format: subscribe::MessageFormat, text: &str) -> Feed {
        let rules = support::rules(text, &format);
        let mut memory = Memory::new(&format);
        let mut all =
            Subscriptions::new(format.clone(), ColumnLayout::sensible(&format, &rules), CompileOptions::default());
        memory.assign(&all.change(&[], rules).expect("it fits").slots);
        Feed { all, memory, micros: 0 }
    }

    /// Returns the ports of a message `later` microseconds after the previous one.
    fn message(&mut self, later: u64, stock: &str, price: u128) -> Vec<u32> {
        self.micros += later;
        let format = self.all.format().clone();
        let mut message = Message::empty(&format);
        let stock = format!("{stock:<8}").bytes().fold(0, |value, byte| value << 8 | u128::from(byte));
        message.set(&format, subscribe::FieldId(1), stock);
        message.set(&format, subscribe::FieldId(2), price);
        self.memory.fill(&format, &mut message, self.micros);
        let delivery = self.all.evaluate(&message);
        assert_eq!(self.all.evaluate_diagram(&message), delivery);
        self.memory.update(&format, &message, &delivery, self.micros);
        delivery.ports
    }
}

#[test]
fn averages_are_over_the_messages_of_the_rest_of_the_rule() {
    let mut feed = Feed::new(workload::itch(), "stock == A and avg(price over 100us) > 50 : fwd(1)");
    assert_eq!(feed.message(0, "A", 60), [], "before the first message there is no average");
    assert_eq!(feed.message(1, "A", 44), [1], "60");
    assert_eq!(feed.message(1, "B", 1), [], "another stock, which does not count either");
    assert_eq!(feed.message(1, "A", 1), [1], "52");
    assert_eq!(feed.message(1, "A", 1), [], "35");
    assert_eq!(feed.message(95, "A", 90), [], "28 up to the 99th microsecond");
    assert_eq!(feed.message(1, "A", 90), [], "a new window");
    assert_eq!(feed.message(1, "A", 90), [1]);
}

#[test]
fn averages_of_a_stock_that_trades_once_a_second_are_its_price() {
    for average in ["avg(price)", "avg(price over previous 1s)", "ewma(price)", "ewma(price over 1 packets)"] {
        let rules = format!("stock == GOOGL and {average} > 50 : fwd(1)\nstock == GOOGL and {average} < 50 : fwd(2)");
        let mut feed = Feed::new(workload::itch(), &rules);
        let ports: Vec<Vec<u32>> = (0..5).map(|_| feed.message(1_000_000, "GOOGL", 100)).collect();
        let expected: Vec<Vec<u32>> = vec![vec![], vec![1], vec![1], vec![1], vec![1]];
        assert_eq!(ports, expected, "{average}");
    }
    // Windows of one second are empty whenever the stock trades: no test of them holds, and `not` of each does.
    let rules = "stock == GOOGL and avg(price over 1s) > 50 : fwd(1)\nstock == GOOGL and avg(price over 1s) < 50 : fwd(2)\n\
                 stock == GOOGL and not (avg(price over 1s) < 50) : fwd(3)\nstock == GOOGL and count(over 1s) < 1 : fwd(4)";
    let mut feed = Feed::new(workload::itch(), rules);
    assert_eq!([feed.message(1_000_000, "GOOGL", 100), feed.message(1_000_000, "GOOGL", 100)], [[3, 4], [3, 4]]);
}

#[test]
fn moving_averages_reach_a_price_that_stays() {
    let mut feed = Feed::new(workload::itch(), "stock == A and ewma(price over 4 packets) == 100 : fwd(1)");
    for price in [50, 400] {
        feed.message(1, "A", price);
        let reached = (0..60).map(|_| feed.message(1, "A", 100)).skip_while(|ports| ports.is_empty());
        assert!(reached.filter(|ports| *ports == [1]).count() > 30, "from {price}");
    }
}

#[test]
fn aggregates_are_apart_by_key_and_windows_may_count() {
    let mut feed =
        Feed::new(workload::itch(), "count() by stock over 3 packets >= 2 : fwd(2)\nmin(price) < 5 : fwd(3)");
    let ports: Vec<Vec<u32>> = ["A", "A", "B", "A", "A", "B", "B"].map(|stock| feed.message(1, stock, 9)).into();
    let expected: Vec<Vec<u32>> = vec![vec![], vec![], vec![], vec![2], vec![], vec![], vec![2]];
    assert_eq!(ports, expected, "the third of A ends its window");
    feed.message(1, "C", 3);
    assert_eq!(feed.message(1, "C", 9), [3], "the smallest was 3");
}

#[test]
fn counters_keep_to_their_width_and_window() {
    let mut format = workload::itch();
    let window = Some(subscribe::Window::Micros(10));
    format.counter(subscribe::Counter { name: "volume".to_owned(), width: 8, window }).expect("new");
    let text = "stock == A : volume += price\nvolume >= 200 : fwd(1)\nstock == R : volume <- 7\nvolume == 7 : fwd(2)\n\
                stock == S : volume -= 9";
    let mut feed = Feed::new(format, text);
    assert_eq!(feed.message(0, "A", 199), []);
    assert_eq!(feed.message(1, "A", 199), [], "199");
    assert_eq!(feed.message(1, "A", 1), [1], "255 at most");
    assert_eq!(feed.message(1, "R", 0), [1]);
    assert_eq!(feed.message(1, "S", 0), [2]);
    assert_eq!(feed.message(1, "A", 200), [], "0 at least");
    assert_eq!(feed.message(1, "B", 0), [1]);
    assert_eq!(feed.message(5, "B", 0), [], "the window is over");
}

#[test]
fn rules_that_differ_in_the_bound_share_an_aggregate() {
    let text = "stock == A and avg(price) > 50 : fwd(1)\nstock == A and avg(price) > 60 : fwd(2)\n\
                stock == B and avg(price) > 60 : fwd(3)\nnot (avg(price) > 9) and stock == A : fwd(4)";
    let feed = Feed::new(workload::itch(), text);
    assert_eq!(feed.all.slots().len(), 2);
}

#[test]
fn the_order_of_tests_does_not_matter_to_an_aggregate() {
    let text = "stock == A and price > 3 and avg(price) > 50 : fwd(1)\navg(price) > 60 and price > 3 and stock == A : fwd(2)\n\
                (price > 3 or shares > 5) and (stock == A or stock == B) and avg(price) > 6 : fwd(3)\n\
                (stock in {B, A} or stock == A) and (shares > 5 or (price > 3 or price > 3)) and avg(price) > 7 : fwd(4)\n\
                not (stock != A or price <= 3) and avg(price) > 60 : fwd(5)";
    let feed = Feed::new(workload::itch(), text);
    assert_eq!(feed.all.slots().len(), 4);
}

/// Returns a format whose program computes these aggregates, each with a number of slots and keys.
fn computing(list: &[(&str, u16, u32)]) -> MessageFormat {
    let mut format = workload::itch();
    for (text, slots, keys) in list {
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let aggregate = aggregate(&mut map, text, &format, &mut diagnostics);
        let aggregate = aggregate.unwrap_or_else(|| panic!("{}", diagnostics.render(&map, false)));
        format.compute(ComputedAggregate { aggregate: Some(aggregate), slots: *slots, keys: *keys });
    }
    format
}

#[test]
fn rules_that_differ_in_tests_of_the_key_share_an_aggregate_and_name_its_keys() {
    let text = "stock == A and avg(price) by stock > 50 : fwd(1)\nstock in {B, C} and avg(price) by stock > 60 : fwd(2)\n\
                avg(price) by stock > 70 and not (stock == B) : fwd(3)";
    let mut feed = Feed::new(computing(&[("avg(price) by stock over 100us", 1, 3)]), text);
    assert_eq!(feed.all.slots().len(), 1);
    let places = feed.all.tables().key_cells;
    assert_eq!(places.iter().map(|place| place.index).collect::<Vec<_>>(), [0, 1, 2]);
    let of_a = u128::from(u64::from_be_bytes(*b"A       "));
    assert_eq!((places[0].computed, &places[0].key), (0, &vec![of_a]));
    // State from messages of B and D does not affect that of A.
    let got: Vec<Vec<u32>> = [("B", 90), ("A", 55), ("D", 80), ("A", 1), ("B", 1), ("D", 1)]
        .map(|(of, price)| feed.message(1, of, price))
        .into();
    let expected: Vec<Vec<u32>> = vec![vec![], vec![], vec![], vec![1], vec![2], vec![3]];
    assert_eq!(got, expected);
    let ids: Vec<_> = feed.all.rules().map(|(id, _)| id).collect();
    let change = feed.all.change(&ids[1..], Vec::new()).expect("fewer").change;
    assert_eq!((change.new_key_cells.len(), change.old_key_cells.len()), (0, 2));
    assert_eq!(feed.all.tables().key_cells, places[..1]);
}

#[test]
fn cells_of_keys_that_no_rule_names_any_more_are_given_to_others() {
    let format = computing(&[("avg(price) by stock over 100us", 1, 2)]);
    let mut all = Subscriptions::new(format.clone(), ColumnLayout::sensible(&format, &[]), CompileOptions::default());
    let mut gone = Vec::new();
    for number in 0..9 {
        let rule = support::rules(&format!("stock == S{number} and avg(price) by stock > 50 : fwd(1)"), &format);
        let applied = all.change(&gone, rule).expect("one key is named at a time");
        let places = all.tables().key_cells;
        assert_eq!(places.len(), 1);
        assert_eq!(places, applied.change.new_key_cells);
        gone = applied.added;
    }
}

#[test]
fn aggregates_that_the_program_lacks_are_refused() {
    let format = computing(&[("avg(price) by stock over 100us", 1, 2), ("count() over 7 packets", 2, 1)]);
    let found = |text: &str| {
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let rules = subscribe::parse(&mut map, "rules", text, &format, &mut NoIncludes, &mut diagnostics);
        (rules, diagnostics.render(&map, false))
    };
    // An omitted window is that of the only declared aggregate of its kind.
    let windows = |text: &str| found(text).0[0].aggregates.iter().map(|of| of.window).collect::<Vec<_>>();
    let lengths = [Window::Micros(100), Window::Packets(7)].map(AggregateWindow::Tumbling);
    assert_eq!(windows("avg(price) by stock > 1 and count() > 2 : drop"), lengths);
    // If there are several, it is none.
    let several = computing(&[("count() over 7 packets", 1, 1), ("count()", 1, 1)]);
    let (mut map, mut findings) = (SourceMap::new(), Diagnostics::new());
    let rules = subscribe::parse(&mut map, "rules", "count() > 2 : drop", &several, &mut NoIncludes, &mut findings);
    assert_eq!(rules[0].aggregates[0].window, AggregateWindow::All);
    for (text, part) in [
        ("avg(price) > 1 : drop", "the program does not compute `avg(add_order.price) over all`"),
        (
            "avg(price) by stock over 2 s > 1 : drop",
            "it computes `avg(add_order.price) by add_order.stock over 100us`, `count() over 7",
        ),
        ("count() over 8 packets > 1 : drop", "write `@query_aggregate(\"count() over 8 packets\")`"),
    ] {
        let (rules, findings) = found(text);
        assert!(rules.is_empty() && findings.contains(part), "{findings}");
    }
    let target = TargetCapabilities { one_update: true, ..TargetCapabilities::default() };
    let options = CompileOptions { target, ..CompileOptions::default() };
    let mut all = Subscriptions::new(format.clone(), ColumnLayout::sensible(&format, &[]), options);
    let mut add = |text: &str| all.change(&[], support::rules(text, &format)).map(|_| ());
    add("stock in {A, B} and avg(price) by stock > 1 : fwd(1)").expect("two keys, one condition");
    let other = add("shares > 5 and avg(price) by stock > 1 : fwd(1)");
    assert!(matches!(other, Err(Refusal::Slots { slots: 1, computed: true, .. })), "{other:?}");
    let third = add("stock == C and avg(price) by stock > 1 : fwd(1)");
    assert!(matches!(&third, Err(Refusal::Keys { keys: 2, .. })), "{third:?}");
    add("avg(price) by stock > 1 : fwd(1)").expect("no key is named");
    add("shares > 5 and count() > 1 : fwd(1)").expect("of two conditions the first");
    assert_eq!(all.tables().key_cells.len(), 2);
}

#[test]
fn a_message_updates_a_counter_once_where_the_target_takes_no_more() {
    let mut format = workload::itch();
    format.counter(subscribe::Counter { name: "volume".to_owned(), width: 64, window: None }).expect("new");
    let text = "rule one: stock == A : volume += 1\nrule two: price > 5 : volume += price";
    for one_update in [false, true] {
        let options = CompileOptions {
            target: TargetCapabilities { one_update, ..TargetCapabilities::default() },
            ..CompileOptions::default()
        };
        let mut all = Subscriptions::new(format.clone(), ColumnLayout::sensible(&format, &[]), options);
        let done = all.change(&[], support::rules(text, &format)).map(|_| ());
        match (one_update, done) {
            (false, Ok(())) => {}
            (true, Err(Refusal::Updates { counter, rules })) => {
                assert_eq!((counter.as_str(), rules.len()), ("volume", 2));
                assert_eq!(all.tables(), Tables::default());
                all.change(&[], support::rules("stock == A : volume += 1\nstock == B : volume <- 1", &format))
                    .expect("no message is both");
            }
            (_, other) => panic!("{other:?}"),
        }
    }
}
