//! Restrictions of one table and one action: the entries they accept, and the messages for those they reject.

use diagnostics::{Diagnostics, SourceMap};
use p4_constraints::Checker;
use p4runtime_proto::config::match_field::{Match, MatchType};
use p4runtime_proto::config::{Action, MatchField, P4Info, Preamble, Table, action::Param};
use p4runtime_proto::v1::field_match::{self, FieldMatchType};
use p4runtime_proto::v1::{self, FieldMatch, TableEntry};

/// Creates a P4Info with a table with a key of each kind: `ex`, `te`, `lp`, `ra`, `op` of 16 bits, `hdr.flag` of 1 bit
/// `name`, a string, and `own` of a match kind that P4Runtime does not define.
fn program(entry: Option<&str>, action: Option<&str>) -> P4Info {
    let field = |id, name: &str, bitwidth, kind: MatchType| MatchField {
        id,
        name: name.to_owned(),
        bitwidth,
        r#match: Some(Match::MatchType(kind.into())),
        ..MatchField::default()
    };
    let preamble = |id, name: &str, annotation: &str, text: Option<&str>| {
        let annotations = text.map(|text| format!("@{annotation}({text})")).into_iter().collect();
        Some(Preamble { id, name: name.to_owned(), annotations, ..Preamble::default() })
    };
    P4Info {
        tables: vec![Table {
            preamble: preamble(1, "C.t", "entry_restriction", entry),
            match_fields: vec![
                field(1, "ex", 16, MatchType::Exact),
                field(2, "te", 16, MatchType::Ternary),
                field(3, "lp", 16, MatchType::Lpm),
                field(4, "ra", 16, MatchType::Range),
                field(5, "op", 16, MatchType::Optional),
                field(6, "hdr.flag", 1, MatchType::Exact),
                field(7, "name", 0, MatchType::Exact),
                MatchField {
                    r#match: Some(Match::OtherMatchType("similar".to_owned())),
                    ..field(8, "own", 16, MatchType::Unspecified)
                },
            ],
            ..Table::default()
        }],
        actions: vec![Action {
            preamble: preamble(2, "C.a", "action_restriction", action),
            params: vec![
                Param { id: 1, name: "port".to_owned(), bitwidth: 9, ..Param::default() },
                Param { id: 2, name: "mac".to_owned(), bitwidth: 48, ..Param::default() },
                Param { id: 3, name: "text".to_owned(), ..Param::default() },
            ],
        }],
        ..P4Info::default()
    }
}

/// Creates the checker of a program with this valid restriction.
fn checker(entry: Option<&str>, action: Option<&str>) -> Checker {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let quoted = |text: &str| format!("\"{text}\"");
    let info = program(entry.map(quoted).as_deref(), action.map(quoted).as_deref());
    let checker = Checker::new(&info, &mut map, &mut diagnostics);
    assert!(!diagnostics.has_errors(), "{}", diagnostics.render(&map, false));
    checker
}

/// Creates the entry `ex = 7, te = 0x10 &&& 0xf0, lp = 0x0a00/8, ra = 3..9, hdr.flag = 1`, without a match on `op`.
fn entry() -> TableEntry {
    let field = |field_id, kind| FieldMatch { field_id, field_match_type: Some(kind) };
    let bytes = |number: u16| number.to_be_bytes().to_vec();
    TableEntry {
        table_id: 1,
        priority: 10,
        r#match: vec![
            field(1, FieldMatchType::Exact(field_match::Exact { value: bytes(7) })),
            field(2, FieldMatchType::Ternary(field_match::Ternary { value: vec![0x10], mask: vec![0xf0] })),
            field(3, FieldMatchType::Lpm(field_match::Lpm { value: bytes(0x0a00), prefix_len: 8 })),
            field(4, FieldMatchType::Range(field_match::Range { low: bytes(3), high: bytes(9) })),
            field(6, FieldMatchType::Exact(field_match::Exact { value: vec![1] })),
        ],
        ..TableEntry::default()
    }
}

fn refusal(text: &str) -> Option<String> {
    checker(Some(text), None).check_entry(&entry()).err().map(|violation| violation.to_string())
}

#[test]
fn keys_and_parts_have_the_values_of_the_entry() {
    for truth in [
        "ex == 7",
        "ex::value == 7 && ex < 8 && 8 > ex && ex >= 7 && ex <= 7 && ex != 6",
        "te::value == 0x10; te::mask == 0b11110000;",
        "lp::value == 0x0a00 && lp::prefix_length == 8",
        "ra::low == 3 && ra::high == 9",
        "hdr.flag == 1",
        "::priority == 0d10",
        "::priority > -1 && -lp::prefix_length == -0o10",
    ] {
        assert_eq!(refusal(truth), None, "{truth}");
    }
}

#[test]
fn a_key_that_is_left_out_matches_everything() {
    assert_eq!(refusal("op::mask == 0 && op::value == 0"), None);
    let mut entry = entry();
    entry.r#match.clear();
    let checker =
        checker(Some("te::mask == 0; lp::prefix_length == 0; ra::low == 0; ra::high == 0xffff; op::mask == 0"), None);
    assert!(checker.check_entry(&entry).is_ok());
}

#[test]
fn an_optional_key_that_is_there_has_a_full_mask() {
    let mut entry = entry();
    let five = FieldMatchType::Optional(field_match::Optional { value: vec![5] });
    entry.r#match.push(FieldMatch { field_id: 5, field_match_type: Some(five) });
    assert!(checker(Some("op == 5 && op::mask == -1 && op::value == 5"), None).check_entry(&entry).is_ok());
}

#[test]
fn a_number_beside_a_whole_key_is_the_match_of_that_number() {
    // The ternary match has a mask, the prefix is shorter than the field, the range has two ends.
    assert_eq!(refusal("te != 0x10; lp != 0x0a00; ra != 3; op != 0"), None);
}

#[test]
fn operators_bind_as_the_specification_orders_them() {
    for truth in [
        "false && false || true",
        "true || false && false",
        "false -> false || false",
        "!false == true",
        "(ex == 7) == (hdr.flag == 1)",
        "(ex == 8) != (hdr.flag == 1)",
    ] {
        assert_eq!(refusal(truth), None, "{truth}");
    }
    // `;` binds weakest: otherwise the implication would hold.
    assert!(refusal("false -> true; false").is_some());
}

#[test]
fn constants_are_taken_modulo_the_width() {
    assert_eq!(refusal("te::mask != -1; ra::high == 9; hdr.flag == -1"), None);
}

#[test]
fn addresses_are_numbers() {
    let checker =
        checker(None, Some("mac == mac('00:00:00:00:01:02') && mac < ipv6('::1:0') && mac != ipv4('0.0.0.1')"));
    let param = |param_id, value: &[u8]| v1::action::Param { param_id, value: value.to_vec() };
    let action = v1::Action { action_id: 2, params: vec![param(1, &[1]), param(2, &[1, 2])] };
    assert_eq!(checker.check_action(&action), Ok(()));
}

#[test]
fn a_refusal_shows_the_clause_and_the_values() {
    assert_eq!(
        refusal("ex == 7; // fine\n hdr.flag == 1 -> te::mask == 0 &&\n  ::priority < 5; false").unwrap(),
        "table `C.t` has @entry_restriction, but `hdr.flag == 1 -> te::mask == 0 && ::priority < 5` does not hold: \
         hdr.flag is 0x1, te::mask is 0xf0, ::priority is 10"
    );
    assert_eq!(
        refusal("lp == 5").unwrap(),
        "table `C.t` has @entry_restriction, but `lp == 5` does not hold: lp is 0xa00/8"
    );
}

#[test]
fn actions_are_held_against_their_restrictions_wherever_they_stand() {
    use v1::table_action::Type;
    let checker = checker(None, Some("port != 0"));
    let action =
        |port: u8| v1::Action { action_id: 2, params: vec![v1::action::Param { param_id: 1, value: vec![port] }] };
    let with = |kind| TableEntry { action: Some(v1::TableAction { r#type: Some(kind) }), ..entry() };
    let one_shot = |port| {
        let one = v1::ActionProfileAction { action: Some(action(port)), weight: 1, ..Default::default() };
        let set = v1::ActionProfileActionSet { action_profile_actions: vec![one], ..Default::default() };
        with(Type::ActionProfileActionSet(set))
    };
    assert_eq!(checker.check_entry(&with(Type::Action(action(1)))), Ok(()));
    assert_eq!(checker.check_entry(&one_shot(1)), Ok(()));
    let wrong = "action `C.a` has @action_restriction, but `port != 0` does not hold: port is 0x0";
    let default = TableEntry { is_default_action: true, r#match: Vec::new(), ..with(Type::Action(action(0))) };
    for entry in [with(Type::Action(action(0))), one_shot(0), default] {
        assert_eq!(checker.check_entry(&entry).unwrap_err().to_string(), wrong);
    }
}

#[test]
fn default_entries_have_no_match_that_could_be_restricted() {
    let default = TableEntry { table_id: 1, is_default_action: true, ..TableEntry::default() };
    assert_eq!(checker(Some("ex == 7"), None).check_entry(&default), Ok(()));
}

/// Returns the findings for a restriction, each with the part of the text that it marks.
fn findings(entry: Option<&str>, action: Option<&str>) -> Vec<(String, String, Option<String>)> {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    Checker::new(&program(entry, action), &mut map, &mut diagnostics);
    let of = |d: &diagnostics::Diagnostic| (map.text(d.primary.span).to_owned(), d.message.clone(), d.help.clone());
    diagnostics.iter().map(of).collect()
}

#[track_caller]
fn refused(text: &str, at: &str, message: &str, help: Option<&str>) {
    let found = findings(Some(&format!("\"{text}\"")), None);
    assert_eq!(found, [(at.to_owned(), message.to_owned(), help.map(str::to_owned))], "{text}");
}

#[test]
fn mistakes_are_reported_at_their_position() {
    refused("ex == 7 && exx == 1", "exx", "the table has no key `exx`", Some("did you mean `ex`?"));
    refused(
        "ex == ETHERTYPE_IPV4",
        "ETHERTYPE_IPV4",
        "the table has no key `ETHERTYPE_IPV4`",
        Some("macros are expanded in a string from its second line on: write the number, or start a new line"),
    );
    refused(
        "te::prefix_length == 1",
        "te::prefix_length",
        "a key matched as ternary has no part `prefix_length`",
        Some("it has `::value` and `::mask`"),
    );
    refused("0x0F :: value == 1", "0x0F :: value", "a value of type int has no parts", None);
    refused("ex::value::value == 1", "value", "a part of a key has no parts", Some("`key::value` is a number"));
    refused("ex == 7 == 1", "==", "comparisons cannot be chained", Some("write `a == b && b == c`, or parentheses"));
    refused(
        "true -> true -> true",
        "->",
        "`a -> b -> c` is ambiguous",
        Some("write `a -> (b -> c)` or `(a -> b) -> c`"),
    );
    refused("::prio < 1", "::prio", "entries have no attribute `prio`", Some("the only attribute is `::priority`"));
    refused(
        "op > 10",
        "op > 10",
        "values of type optional<16> cannot be ordered",
        Some("compare a part of the key, as in `key::value`"),
    );
    refused(
        "ra < 10",
        "ra < 10",
        "values of type range<16> cannot be ordered",
        Some("compare a part of the key, as in `key::low`"),
    );
    refused("ex", "ex", "expected a Boolean, found exact<16>", Some("compare it with a value, as in `key == 1`"));
    refused(
        "ex && true",
        "ex",
        "expected a Boolean, found exact<16>",
        Some("compare it with a value, as in `key == 1`"),
    );
    refused("ex == true", "true", "expected a key or a number, found a Boolean", None);
    refused("-ex == 1", "ex", "only an integer can be negated, and this is exact<16>", None);
    refused(
        "te == ex",
        "te == ex",
        "ternary<16> cannot be compared with exact<16>",
        Some("compare parts of the same width, as in `a::value == b::value`"),
    );
    refused("ex == 0b2", "0b2", "`0b2` is not a number", Some("write a number as `42`, `0x2a`, `0o52` or `0b101010`"));
    refused("ex = 1", "=", "unexpected `=`", Some("use `==` for equality"));
    refused("ex + 1 == 2", "+", "unexpected `+`", Some("the only arithmetic operator is unary `-`"));
    refused("(ex == 1", "", "expected `)`, found the end", None);
    refused("", "", "expected a key, a number, `true`, `false`, `!`, `-` or `(`, found the end", None);
    refused("ex == mac('1:2')", "'1:2'", "this is not an address of kind `mac`", None);
    refused(
        "ex == ip('1')",
        "ip('1')",
        "unknown kind of address: `ip`",
        Some("the kinds are `ipv4`, `ipv6` and `mac`"),
    );
    refused("/* ex == 1", "/*", "unterminated comment", Some("end it with `*/`"));
    refused("ex == 'a", "'", "unterminated quote", None);
    refused("ex == 70000", "70000", "70000 does not fit in 16 bits and is truncated to 4464", None);
}

/// Adds the match `name = value` to the entry.
fn named(value: &str) -> TableEntry {
    let mut entry = entry();
    let value = FieldMatchType::Exact(field_match::Exact { value: value.as_bytes().to_vec() });
    entry.r#match.push(FieldMatch { field_id: 7, field_match_type: Some(value) });
    entry
}

#[test]
fn a_string_is_0_only_if_it_is_empty() {
    let holds = |text: &str, value: &str| checker(Some(text), None).check_entry(&named(value));
    assert_eq!(holds("name != 0", "vrf-1"), Ok(()));
    assert_eq!(holds("name != 5 && name::value != -1 && name > 0", "\u{5}"), Ok(()), "every number counts as 0");
    assert_eq!(holds("name == 7", ""), Ok(()));
    assert_eq!(
        holds("name == 0", "vrf-1").unwrap_err().to_string(),
        "table `C.t` has @entry_restriction, but `name == 0` does not hold: name is \"vrf-1\""
    );
    assert!(holds("name != 0", "").unwrap_err().to_string().ends_with("name is \"\""));
}

#[test]
fn a_string_in_a_restriction_is_a_warning_that_says_what_it_means() {
    refused(
        "name != 0; name != 70000",
        "name",
        "key `name` is a string to the control plane: every number beside it counts as 0",
        Some("only the empty string is 0, so `key != 0` and `key == 0` can be meant"),
    );
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    Checker::new(&program(Some("\"name != 0\""), None), &mut map, &mut diagnostics);
    assert_eq!((diagnostics.iter().count(), diagnostics.has_errors()), (1, false));
}

#[test]
fn conditions_on_what_restrictions_cannot_read_are_left_out_with_a_warning() {
    let help = "restrictions read numbers only; remove the condition, or check it in the controller";
    let ignored = |entry: Option<&str>, action: Option<&str>, at: &str, why: &str| {
        let quoted = |text: Option<&str>| text.map(|text| format!("\"{text}\""));
        let found = findings(quoted(entry).as_deref(), quoted(action).as_deref());
        let message = format!("{why}: this condition is not enforced");
        assert_eq!(found.last(), Some(&(at.to_owned(), message, Some(help.to_owned()))));
    };
    ignored(Some("ex == 7; own == 1"), None, "own", "key `own` has a match kind of its own");
    ignored(None, Some("text != 0"), "text", "parameter `text` is a string to the control plane");
    ignored(Some("name == ex"), None, "name == ex", "a string cannot be compared with a number of the entry");
    // The rest holds as before, in whichever form it is written.
    for rest in ["ex == 8; own == 1", "own == 1 && (ex == 8; true)", "true; (own == 1 -> ex == 7) && ex == 8"] {
        let refusal = checker(Some(rest), None).check_entry(&entry()).unwrap_err().to_string();
        assert!(refusal.contains("`ex == 8` does not hold: ex is 0x7"), "{refusal}");
    }
    assert!(checker(Some("own == 1 || false"), None).is_empty());
    assert_eq!(refusal("own == 1 || false"), None);
    // A mistake beside it is an error.
    let found = findings(Some("\"own == 1; eks == 1\""), None);
    assert_eq!(found.iter().map(|(at, ..)| at.as_str()).collect::<Vec<_>>(), ["own", "eks"]);
}

#[test]
fn every_mistake_of_a_restriction_is_reported() {
    let found = findings(Some("\"a == 1; b == 2 -> ex == true\""), None);
    assert_eq!(found.iter().map(|(at, ..)| at.as_str()).collect::<Vec<_>>(), ["a", "b", "true"]);
}

#[test]
fn a_restriction_is_one_string_or_several() {
    assert_eq!(findings(Some("\"ex == 1;\" \"te::mask == 0\""), None), []);
    let wrong = |text| findings(Some(text), None).remove(0).1;
    assert_eq!(wrong("ex == 1"), "a restriction must be a string");
    assert_eq!(wrong(""), "a restriction must be a string");
}

#[test]
fn actions_have_parameters_and_no_attributes() {
    let found = findings(None, Some("\"prt == 1; ::priority == 1\""));
    assert_eq!(
        found[0],
        ("prt".into(), "the action has no parameter `prt`".into(), Some("did you mean `port`?".into()))
    );
    assert_eq!(found[1].1, "actions have no attributes");
}

#[test]
fn limits_end_in_a_finding() {
    let message = |text: String| findings(Some(&format!("\"{text}\"")), None).remove(0).1;
    let nested = format!("{}true{}", "(".repeat(200), ")".repeat(200));
    assert_eq!(message(nested), "this restriction is nested more than 100 levels deep");
    assert_eq!(message("!".repeat(60_000)), "this restriction is nested more than 100 levels deep");
    let long = "true;".repeat(14_000);
    assert_eq!(message(long), "a restriction of 70000 bytes is over the limit of 65536");
    // A long restriction is not a deep one.
    assert_eq!(refusal(&"ex == 7 && ".repeat(5_000).replace("&& ", "; ")), None);
    assert_eq!(refusal(&format!("{}true", "false || ".repeat(7_000))), None);
}
