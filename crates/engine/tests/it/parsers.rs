//! Parsers: extraction, lookahead, selection, and every cause of rejection.

use crate::world::{World, byte};
use engine::Ending;
use ir::KeyValue;

const ETHERNET: &str = "
header_type t { kind: 8  low: 4  high: 4 }
header_type v { len: 8  data: varbit 32  tail: 8 }
header_type odd { a: 4  data: varbit 32 }
header a: t
header b: t
header s[0]: t
header s[1]: t
header w: v
header x: v
header o: odd
stack s: 2 from s[0] next s.next
metadata s.next: 32
metadata peek: 12
metadata m: 8
";

fn parser(body: &str) -> World {
    World::new(&format!("{ETHERNET}\nparser p {{\n  state start:\n{body}\n}}\n"))
}

#[test]
fn headers_come_off_in_order() {
    let mut world = parser("    extract a\n    advance 0x4:32\n    extract b\n    return");
    assert_eq!(world.run("p", &[1, 0x23, 0x45, 0x67, 0x89]), Ending::Return);
    assert_eq!(world.fields("a"), "[0x1:8, 0x2:4, 0x3:4]");
    assert_eq!(world.fields("b"), "[0x56:8, 0x7:4, 0x8:4]");
    assert_eq!(world.error(), "NoError");
    assert_eq!(world.state.cursor_bits(), 36);
    assert_eq!(world.state.payload(), [] as [u8; 0], "a byte taken in part is not payload");
}

#[test]
fn too_short_a_packet_keeps_what_came_before() {
    let mut world = parser("    extract a\n    extract b\n    return");
    for len in 0..4 {
        assert_eq!(world.run("p", &[9; 4][..len]), Ending::Reject);
        assert_eq!(world.error(), "PacketTooShort");
        assert_eq!((world.valid("a"), world.valid("b")), (len >= 2, false));
    }
    assert_eq!(world.run("p", &[9; 4]), Ending::Return);
}

#[test]
fn lookahead_leaves_the_packet_alone() {
    let mut world = parser("    lookahead peek\n    lookahead m skip 12\n    extract a\n    return");
    assert_eq!(world.run("p", &[0x12, 0x34, 0x56]), Ending::Return);
    assert_eq!((world.get("peek"), world.get("m")), (0x123, 0x45));
    assert_eq!(world.fields("a"), "[0x12:8, 0x3:4, 0x4:4]");
    assert_eq!(world.run("p", &[0x12, 0x34]), Ending::Reject);
    assert_eq!((world.error(), world.get("peek")), ("PacketTooShort", 0x123));
    assert_eq!(world.run("p", &[0x12]), Ending::Reject);
    assert_eq!((world.error(), world.get("peek")), ("PacketTooShort", 0));
}

#[test]
fn advancing_too_far_is_too_short() {
    let mut world = parser("    advance 0x11:32\n    return");
    assert_eq!(world.run("p", &[0; 3]), Ending::Return);
    assert_eq!((world.run("p", &[0; 2]), world.error()), (Ending::Reject, "PacketTooShort"));
    let mut world = parser("    advance 0xffffffff:32\n    return");
    assert_eq!((world.run("p", &[0; 2]), world.error()), (Ending::Reject, "PacketTooShort"));
}

#[test]
fn variable_fields() {
    let mut world = parser("    lookahead m\n    extract w varbit zext(m, 32)\n    return");
    assert_eq!(world.run("p", &[16, 1, 2, 3, 4]), Ending::Return);
    assert_eq!(world.fields("w"), "[0x10:8, 0x102:16, 0x3:8]");
    assert_eq!(world.state.payload(), [4]);
    assert_eq!(world.run("p", &[0, 1]), Ending::Return);
    assert_eq!(world.fields("w"), "[0x0:8, 0x0:0, 0x1:8]");
    for (packet, error) in [
        (&[40u8; 9][..], "HeaderTooShort"),
        (&[40; 5], "PacketTooShort"),
        (&[12; 9], "ParserInvalidArgument"),
        (&[32; 5], "PacketTooShort"),
    ] {
        assert_eq!((world.run("p", packet), world.error()), (Ending::Reject, error), "{packet:?}");
        assert!(!world.valid("w"));
    }
    let mut world = parser("    extract o varbit 0xc:32\n    return");
    assert_eq!(world.run("p", &[0x12, 0x34]), Ending::Return, "4 + 12 bits are whole bytes");
    assert_eq!(world.fields("o"), "[0x1:4, 0x234:12]");
}

#[test]
fn variable_fields_compare_and_copy() {
    let mut world = World::new(&format!(
        "{ETHERNET}metadata eq: 1
metadata width: 32
parser p {{
  state start:
    extract w varbit 0x8:32
    extract x varbit 0x10:32
    return
}}
control c {{
  block b:
    eq = varbit_eq(w.data, x.data)
    copy_varbit w.data = x.data
    m = zext(eq, 8)
    eq = varbit_eq(w.data, x.data)
    width = varbit_width(w.data)
    return
}}
"
    ));
    assert_eq!(world.run("p", &[0, 0, 9, 0, 0, 0, 9]), Ending::Return);
    assert_eq!(world.go_on("c"), Ending::Return);
    assert_eq!((world.get("m"), world.get("eq"), world.get("width")), (0, 1, 16));
    assert_eq!(world.fields("w"), "[0x0:8, 0x0:16, 0x9:8]");
}

#[test]
fn stacks_end() {
    let mut world = parser(
        "    extract s[s.next]
    s.next = s.next + 0x1:32
    goto more
  state more:
    branch s.next == 0x3:32 -> end else start
  block end:
    return",
    );
    assert_eq!((world.run("p", &[1; 6]), world.error()), (Ending::Reject, "StackOutOfBounds"));
    assert!(world.valid("s[0]") && world.valid("s[1]"));
    assert_eq!(world.get("s.next"), 2);
}

#[test]
fn verify_raises_the_error_it_is_given() {
    let mut world = parser("    lookahead m\n    verify m == 0x1:8, 0x7:32\n    return");
    assert_eq!((world.run("p", &[1]), world.error()), (Ending::Return, "NoError"));
    assert_eq!((world.run("p", &[2]), world.error()), (Ending::Reject, "Mine"));
    let mut world = parser("    reject");
    assert_eq!((world.run("p", &[]), world.error()), (Ending::Reject, "NoError"));
}

#[test]
fn selection_takes_the_first_case_that_matches() {
    let mut world = World::new(&format!(
        "{ETHERNET}
value_set vs: size 4 {{  x: exact 8  y: ternary 4 }}
parser p {{
  state start:
    extract a
    select a.kind, a.low {{
      0x1:8, _ -> one
      0x10:8 .. 0x1f:8, 0x0:4 -> between
      0x80:8 ..s 0xff:8, 0x1:4 -> negative
      0x42:8 &&& 0x4f:8, 0x2:4 -> masked
      in vs -> set
    }}
  state one:
    m = 0x1:8
    return
  state between:
    m = 0x2:8
    return
  state negative:
    m = 0x3:8
    return
  state masked:
    m = 0x4:8
    return
  state set:
    m = 0x5:8
    return
}}
"
    ));
    let set = world.program.value_sets.keys().next().unwrap();
    let nibble = |value: u8| bits::Bits::new(u128::from(value), 4);
    let member = vec![KeyValue::Exact(byte(0x77)), KeyValue::Ternary(nibble(0x4), nibble(0x4))];
    for (packet, want) in [
        ([0x01, 0xf0], Some(1)),
        ([0x10, 0x00], Some(2)),
        ([0x1f, 0x00], Some(2)),
        ([0x20, 0x00], None),
        ([0xff, 0x10], Some(3)),
        ([0x7f, 0x10], None),
        ([0x72, 0x20], Some(4)),
        ([0x77, 0x50], None),
    ] {
        let ending = world.run("p", &packet);
        match want {
            Some(m) => assert_eq!((ending, world.get("m")), (Ending::Return, m), "{packet:x?}"),
            None => assert_eq!((ending, world.error()), (Ending::Reject, "NoMatch"), "{packet:x?}"),
        }
    }
    world.objects.insert_value_set_member(set, member.clone()).unwrap();
    assert_eq!(world.run("p", &[0x77, 0x50]), Ending::Return);
    assert_eq!(world.get("m"), 5);
    assert_eq!(world.run("p", &[0x77, 0x80]), Ending::Reject);
    world.objects.remove_value_set_member(set, member).unwrap();
    assert_eq!(world.run("p", &[0x77, 0x50]), Ending::Reject);
}

#[test]
fn a_parser_that_consumes_nothing_runs_out_of_fuel() {
    let mut world = parser("    goto start");
    assert!(matches!(world.run("p", &[0; 100]), Ending::OutOfFuel(_)));
}

#[test]
fn watchers_see_states_and_headers() {
    let mut world = parser("    extract a\n    extract b\n    return");
    world.run("p", &[0; 3]);
    let kinds: Vec<_> = world.events.iter().map(|event| event.split_once(' ').unwrap().0).collect();
    assert_eq!(kinds, ["BodyBegins", "State", "Extracted", "ParserError", "BodyEnds"]);
}
