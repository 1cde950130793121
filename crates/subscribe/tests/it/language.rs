//! The rule language: round trips through text, and mistakes with their locations.

use crate::support;
use diagnostics::{Diagnostics, SourceMap, Span};
use rng::SplitMix64;
use subscribe::{
    ActionDeclaration, Condition, Counter, FieldDeclaration, IncludeError, Loader, Match, MessageFormat, NoIncludes,
    Parameter, Rule, RuleAction, ValueKind, parse,
};

/// Parses a text. Returns the rules and the rendered diagnostics.
fn read(text: &str, format: &MessageFormat) -> (Vec<Rule>, String) {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let rules = parse(&mut map, "a.rules", text, format, &mut NoIncludes, &mut diagnostics);
    (rules, diagnostics.render(&map, false))
}

fn without_places(condition: &mut Condition) {
    match condition {
        Condition::Valid { span, .. } => *span = Span::default(),
        Condition::Test(test) => test.span = Span::default(),
        Condition::Not(inner) => without_places(inner),
        Condition::All(list) | Condition::Any(list) => list.iter_mut().for_each(without_places),
        Condition::Always | Condition::Never => {}
    }
}

#[test]
fn printed_rules_parse_to_the_same_rules() {
    let mut rng = SplitMix64::new(21);
    let format = support::format();
    for _ in 0..500 {
        let text = support::rule(&mut rng);
        let mut rule = support::rules(&text, &format).remove(0);
        let shown = rule.shown(&format).to_string();
        let mut again = support::rules(&shown, &format).remove(0);
        for rule in [&mut rule, &mut again] {
            rule.span = Span::default();
            without_places(&mut rule.condition);
        }
        // Nested conjunctions parse to a different form of the same condition only if the text nests them.
        assert_eq!(rule, again, "{text}\n{shown}");
    }
}

#[test]
fn rules_may_be_written_in_many_ways() {
    let format = addresses();
    let text = r#"
        # comments of three kinds
        dst == 10.0.0.0/8 and not (src in {10.0.0.1, 192.168.0.0/16}) : fwd(1);   // one
            to_controller                                                        /* two,
        and three */
        rule six: six == fe80::/10 ∧ mac != 00:11:22:33:44:55:fwd(2)
        (port >= 0x50 && port ≤ 443) || 8_080 == port : drop
        port in 1000..2000 : fwd(3) ipv4.isValid() : fwd(4)
        name in [abc, "d e"] : fwd(5, 5, 1);
        true : to_controller()
    "#;
    let (rules, found) = read(text, &format);
    assert_eq!(found, "");
    let shown: Vec<String> = rules.iter().map(|rule| rule.shown(&format).to_string()).collect();
    assert_eq!(
        shown,
        [
            "ipv4.dst in {167772160..184549375} and not (ipv4.src in {10.0.0.1, 192.168.0.0/16}) : fwd(1); to_controller",
            "rule six: six in {fe80::/10} and mac != 00:11:22:33:44:55 : fwd(2)",
            "(port >= 80 and port <= 443) or port == 8080 : drop",
            "port in {1000..2000} : fwd(3)",
            "valid(ipv4) : fwd(4)",
            "name in {\"abc\", \"d e\"} : fwd(1, 5)",
            "true : to_controller",
        ]
    );
}

fn addresses() -> MessageFormat {
    let mut format = MessageFormat::new();
    let ipv4 = format.header("ipv4").expect("new");
    let mut field = |name: &str, width, kind, header| {
        let field = FieldDeclaration { name: name.to_owned(), width, kind, matching: Match::Any, header };
        format.field(field).expect("right");
    };
    field("ipv4.src", 32, ValueKind::Ipv4, Some(ipv4));
    field("ipv4.dst", 32, ValueKind::Unsigned, Some(ipv4));
    field("six", 128, ValueKind::Ipv6, None);
    field("mac", 48, ValueKind::Mac, None);
    field("port", 16, ValueKind::Unsigned, None);
    field("name", 32, ValueKind::Text(subscribe::Padding::ZEROS), None);
    format
}

#[test]
fn mistakes_are_reported_at_their_positions() {
    let mut format = support::format();
    format.max_port = 510;
    let cases = [
        ("stok == A : fwd(1)", "there is no field or counter `stok`", "did you mean `add_order.stock`?"),
        ("price > 5 : fwd(1)", "`price` is ambiguous: `add_order.price` or `trade.price`", "a.rules:1:1"),
        ("stock < A : fwd(1)", "`add_order.stock` is matched exactly", "`==`, `!=` or `in { … }`"),
        ("dst in 3..7 : fwd(1)", "matched by prefix", "compare it with values and prefixes"),
        ("shares = 5 : fwd(1)", "expected a comparison, found `=`", "use `==` for equality"),
        ("shares == 5 ^ port == 1 : fwd(1)", "expected `:`, found `^`", "use `and`, `&&` or `∧`"),
        ("shares == 5 /\\ port == 1 : fwd(1)", "expected `:`, found `/\\`", "use `and`, `&&` or `∧`"),
        ("shares == 5 \\/ port == 1 : fwd(1)", "expected `:`, found `\\/`", "use `or`, `||` or `∨`"),
        ("shares == 5 AND port == 1 : fwd(1)", "found `AND`", "keywords are in lower case: `and`"),
        ("NOT shares == 5 : fwd(1)", "there is no field or counter `NOT`", "keywords are in lower case: `not`"),
        ("shares == 5 -> fwd(1)", "found `->`", "write `:` between the condition and the actions"),
        ("shares in 1-5 : fwd(1)", "expected `:`, found `-`", "write a range as `10..20`"),
        ("shares between 1 and 5 : fwd(1)", "found `between`", "write a range as `price in 5..10`"),
        ("stock == 'A' : fwd(1)", "strings are in double quotes", "a.rules:1:10"),
        ("shares in [1, 5] : fwd(1)", "a range or a set", "write `1..5` for the range, `{1, 5}` for the two values"),
        ("shares == BUY : fwd(1)", "`BUY` is a string", "enumerators and constants of the program are not known"),
        ("shares == 16 : fwd(1)", "`16` does not fit in 4 bits: the maximum is 15", "a.rules:1:11"),
        ("shares == seen : fwd(1)", "`seen` is a string, expected a number of 4 bits", "not with other fields"),
        ("stock == ABCD : fwd(1)", "`ABCD` has 4 bytes, but the field has 3", "^^^^"),
        ("stock == 3M : fwd(1)", "expected a string of up to 3 bytes, found `3M`", "put a string in quotes"),
        ("shares == 5 fwd(1)", "expected `:`, found `fwd`", "write `:` before the actions"),
        ("shares == 5 : fwd(h2)", "expected a port, found `h2`", "for rules of a network with a topology"),
        ("shares == 5 : fwd(600)", "there is no port 600", "the ports are 0 to 510; use `drop` to drop messages"),
        ("shares == 5 : forward(1)", "there is no action `forward`", "`fwd`, `drop`, `to_controller`, `mark`"),
        ("shares == 5 : mark(1, 2)", "`mark` takes 1 argument, but has 2 here", "the parameters are `class`"),
        ("shares == 5 : seen <- port + 1", "an operand has at most one `*` or `-`", "`seen <- seen + …`"),
        ("shares == 5 : seen += port * 2 * 3", "at most one `*` or `-`", "the product or difference of two"),
        ("shares == 5 : seen <- seen / 2", "expected `+`, `-` or `*`, found `/`", "^"),
        ("shares == 5 : shares += 1", "`shares` is a field; rules cannot change fields", "`seen`"),
        ("valid(order) : fwd(1)", "there is no header `order`", "the headers are `add_order`, `trade`"),
        ("avg(stock) > 5 : fwd(1)", "is not a number, so it cannot be aggregated", "^^^^^"),
        ("avg() > 5 : fwd(1)", "`avg` needs a field", "only `count()` takes none"),
        ("count() over 5 parsecs > 5 : fwd(1)", "this is not a valid window", "`1000 packets`"),
        ("shares in {1, 2 : fwd(1)", "expected `}`, found `:`", "the set is not closed"),
        ("shares in 7..3 : fwd(1)", "empty range: its end is below its start", "ranges include both ends"),
        ("dst == 5/3 : fwd(1)", "bits are set beyond the 3-bit prefix", "write `0/3`"),
        ("rule big: shares == 16 : fwd(1)", "does not fit in 4 bits", "in rule `big`"),
        ("shares == \"5 : fwd(1)", "unterminated string", "a.rules:1:11"),
        ("shares == 5 /* : fwd(1)", "unterminated comment", "a.rules:1:13"),
        ("shares == -5 : fwd(1)", "found `-`", "a field cannot be negative"),
        ("shares & 1 == 1 : fwd(1)", "expected a comparison, found `&`", ""),
    ];
    for (text, message, detail) in cases {
        let (rules, found) = read(text, &format);
        assert!(found.contains(message) && found.contains(detail), "{text}:\n{found}");
        assert!(rules.is_empty(), "{text}: {rules:?}");
    }
}

#[test]
fn hints_lead_to_what_was_meant() {
    let (_, mistakes) = read("port == \"AB\" : fwd(1)", &addresses());
    assert!(
        mistakes.contains("mark it `@format(TEXT)` in the format") && !mistakes.contains("enumerators"),
        "{mistakes}"
    );
    let (_, mistakes) = read("port == AB : fwd(1)", &addresses());
    assert!(mistakes.contains("enumerators") && mistakes.contains("@format(TEXT)"), "{mistakes}");
    let (_, mistakes) = read("port == 5 : fwd(1), fwd(2)", &addresses());
    assert!(mistakes.contains("separate actions with `;`, or write `fwd(2, 3)`"), "{mistakes}");
    // Two names are no range.
    let (rules, _) = read("name in [AB, CD] : fwd(1)", &addresses());
    assert_eq!(rules.len(), 1);
}

#[test]
fn all_mistakes_of_a_file_are_reported_and_correct_rules_are_kept() {
    let format = support::format();
    let text = "shares == 99 : fwd(1)\nshares == 1 : fwd(1)\nstock == A and\n   foo == 1 : fwd(2)\n\
                shares == 2 :\n   fwd(x);\n   drop\nshares == 3 : fwd(3)\n";
    let (rules, found) = read(text, &format);
    assert_eq!(rules.len(), 2, "{found}");
    for place in ["a.rules:1:11", "a.rules:4:4", "a.rules:6:8"] {
        assert!(found.contains(place), "{place} is missing:\n{found}");
    }
}

#[test]
fn hostile_files_end_in_findings() {
    let format = support::format();
    let deep = format!("{}shares == 1{} : fwd(1)", "(".repeat(100_000), ")".repeat(100_000));
    assert!(read(&deep, &format).1.contains("conditions can be nested at most 64 deep"));
    let long = format!("{} : fwd(1)", vec!["shares == 1"; 100_000].join(" or "));
    assert!(read(&long, &format).1.contains("a rule has at most 65536 tests and values"));
    let not = format!("{}shares == 1 : fwd(1)", "!".repeat(1_000_000));
    assert!(read(&not, &format).1.contains("a rule has at most"));
    let many = "x == 1 : fwd(1)\n".repeat(100_000);
    assert!(read(&many, &format).1.contains("and 1 more"), "reading stops");
    assert!(read(&"/* ".repeat(500_000), &format).1.contains("unterminated comment"));
    assert!(read(&"\"".repeat(500_001), &format).1.contains("rule-syntax"));
    assert!(read(&"9".repeat(1_000_000), &format).1.contains("too long"));
}

/// Files by name.
struct Files(Vec<(&'static str, String)>);

impl Loader for Files {
    fn load(&mut self, name: &str, _: &str) -> Result<(String, String), IncludeError> {
        let file = self.0.iter().find(|(other, _)| *other == name);
        let file = file.map(|(name, text)| ((*name).to_owned(), text.clone()));
        file.ok_or_else(|| IncludeError::Unreadable("does not exist".into()))
    }
}

#[test]
fn files_include_others() {
    let format = support::format();
    let mut files = Files(vec![
        ("b", "shares == 2 : fwd(2)\ninclude \"c\"".to_owned()),
        ("c", "shares == 3 : fwd(3)\nshares == 77 : fwd(3)\ninclude \"b\"".to_owned()),
    ]);
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let text = "include \"b\"\nshares == 1 : fwd(1)\n#include \"d\"\n";
    let rules = parse(&mut map, "a.rules", text, &format, &mut files, &mut diagnostics);
    let shown: Vec<String> = rules.iter().map(|rule| rule.shown(&format).to_string()).collect();
    assert_eq!(
        shown,
        ["add_order.shares == 1 : fwd(1)", "add_order.shares == 2 : fwd(2)", "add_order.shares == 3 : fwd(3)"]
    );
    let found = diagnostics.render(&map, false);
    for part in ["`d` does not exist", "c:2:11", "`b` includes itself", "c:3:9"] {
        assert!(found.contains(part), "{part} is missing:\n{found}");
    }
    // Each file includes two others, which must terminate.
    let mut bomb = Files((0..20).map(|_| ("x", String::new())).collect());
    bomb.0[0].1 = "include \"y\" include \"z\"".to_owned();
    let names: Vec<&'static str> = (0..16).map(|at| &*Box::leak(format!("f{at}").into_boxed_str())).collect();
    let pair = |next: &str| format!("include \"{next}\"\ninclude \"{next}\"\n");
    bomb.0 = names.windows(2).map(|pair_of| (pair_of[0], pair(pair_of[1]))).collect();
    bomb.0.push((names[15], "shares == 1 : fwd(1)".to_owned()));
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let rules = parse(&mut map, "a.rules", pair("f0"), &format, &mut bomb, &mut diagnostics);
    assert!(rules.len() < 1000);
    assert!(diagnostics.render(&map, false).contains("too many files"));
}

#[test]
fn actions_take_text_where_there_is_room_for_it() {
    let mut format = support::format();
    let parameters = vec![Parameter { name: "name".to_owned(), width: 24 }];
    format.action(ActionDeclaration { name: "tag".to_owned(), parameters }).expect("new");
    let (rules, found) = read("shares == 5 : tag(\"AB\"); tag(7)", &format);
    let arguments = rules[0].actions.iter().map(|action| match action {
        RuleAction::Call(_, arguments) => arguments.clone(),
        other => panic!("{other:?}"),
    });
    assert_eq!((arguments.collect::<Vec<_>>(), found.as_str()), (vec![vec![0x41_42_20], vec![7]], ""));
    // Actions without parameters may stand alone anywhere.
    format.action(ActionDeclaration { name: "stop".to_owned(), parameters: Vec::new() }).expect("new");
    let (rules, found) =
        read("shares == 5 : stop; tag(7); stop;\nshares == 6 : fwd(1); stop\nshares == 7 : stop()", &format);
    assert_eq!((rules.iter().map(|rule| rule.actions.len()).collect::<Vec<_>>(), found.as_str()), (vec![3, 2, 1], ""));
    for (text, said) in [
        ("shares == 5 : tag(\"ABCD\")", "the argument for `name` has 4 bytes, but the field has 3"),
        ("shares == 5 : mark(\"A\")", "the argument for `class` is a string, expected a number of 4 bits"),
    ] {
        let (_, found) = read(text, &format);
        assert!(found.contains(said), "{text}: {found}");
    }
}

#[test]
fn suspicious_rules_get_a_warning() {
    let mut format = support::format();
    format.controller_port = Some(9);
    format.counter(Counter { name: "all".to_owned(), width: 8, window: None }).expect("new");
    for (text, said) in [
        ("stock == dst : fwd(1)", "warning[word-is-text]: `dst` is a string here, not the field of this name"),
        ("stock in {A, all} : fwd(1)", "`all` is a string here, not the counter"),
        ("seen == stock : fwd(1)", "a field is compared with constants, not with other fields"),
        ("stock != price : fwd(1)", "a field is compared with constants, not with other fields"),
        ("stock == A : fwd(1, 9)", "warning[controller-port]: port 9 is the port of the controller"),
    ] {
        let (rules, found) = read(text, &format);
        assert!(found.contains(said), "{text}: {found}");
        assert_eq!(rules.len(), usize::from(found.contains("warning")), "{text}: {found}");
    }
    for text in ["stock == \"dst\" : fwd(1)", "stock == DST : fwd(1)", "stock == A : fwd(8); to_controller"] {
        assert_eq!(read(text, &format).1, "", "{text}");
    }
}
