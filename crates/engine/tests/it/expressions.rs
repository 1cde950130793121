//! Every expression and every instruction of controls.

use crate::world::{self, World};
use engine::{Ending, Requested};

const STORAGE: &str = "
header_type t { a: 8  b: 4  c: 12 }
header_type v { len: 8  data: varbit 32 }
header h: t
header g: t
header s[0]: t
header s[1]: t
header w: v
header x: v
stack s: 2 from s[0] next s.next
metadata s.next: 32
metadata i: 8
metadata m: 8
metadata out: 8
";

/// Evaluates an expression in a packet of 3 bytes where `h` is valid, `h.a` is 0x12, `s[1].a` 0x34 and `i` is 1.
#[track_caller]
fn check(expr: &str, want: &str) {
    let width: u32 = want.split(':').nth(1).expect("value:width").parse().unwrap();
    let text = format!(
        "{STORAGE}metadata r: {width}
control c {{
  block b:
    i = 0x1:8
    set_valid h
    h.a = 0x12:8
    s[1].a = 0x34:8
    r = {expr}
    return
}}
"
    );
    let mut world = World::new(&text);
    assert_eq!(world.run("c", &[1, 2, 3]), Ending::Return);
    assert_eq!(world.slot("r").to_string(), want, "{expr}");
}

#[test]
fn operators() {
    for (expr, want) in [
        ("0xff:8 + 0x2:8", "0x1:8"),
        ("0x1:8 - 0x2:8", "0xff:8"),
        ("0x10:8 * 0x11:8", "0x10:8"),
        ("0x11:8 / 0x5:8", "0x3:8"),
        ("0x11:8 / 0x0:8", "0x0:8"),
        ("0x11:8 % 0x5:8", "0x2:8"),
        ("0x11:8 % 0x0:8", "0x0:8"),
        ("0xf0:8 |+| 0x20:8", "0xff:8"),
        ("0x10:8 |-| 0x20:8", "0x0:8"),
        ("0x7f:8 |+|s 0x1:8", "0x7f:8"),
        ("0x80:8 |-|s 0x1:8", "0x80:8"),
        ("0xf0:8 & 0x3c:8", "0x30:8"),
        ("0xf0:8 | 0x3c:8", "0xfc:8"),
        ("0xf0:8 ^ 0x3c:8", "0xcc:8"),
        ("0x81:8 << 0x1:4", "0x2:8"),
        ("0x81:8 << 0xffffffffffffffffffffffff:96", "0x0:8"),
        ("0x81:8 >> 0x1:4", "0x40:8"),
        ("0x81:8 >>s 0x1:4", "0xc0:8"),
        ("0x81:8 >>s 0xff:8", "0xff:8"),
        ("0x1:8 == 0x1:8", "0x1:1"),
        ("0x1:8 != 0x1:8", "0x0:1"),
        ("0x80:8 < 0x1:8", "0x0:1"),
        ("0x1:8 <= 0x1:8", "0x1:1"),
        ("0x80:8 <s 0x1:8", "0x1:1"),
        ("0x1:8 <=s 0x80:8", "0x0:1"),
        ("~0x1:8", "0xfe:8"),
        ("-0x1:8", "0xff:8"),
        ("0xab:8 ++ 0xc:4", "0xabc:12"),
        ("0xabc:12[11:4]", "0xab:8"),
        ("zext(0x80:8, 16)", "0x80:16"),
        ("sext(0x80:8, 16)", "0xff80:16"),
        ("choose(0x1:1, 0x5:8, 0x6:8)", "0x5:8"),
        ("choose(0x0:1, 0x5:8, 0x6:8)", "0x6:8"),
        ("packet_length()", "0x3:32"),
    ] {
        check(expr, want);
    }
}

#[test]
fn headers_and_stacks() {
    for (expr, want) in [
        ("h.a", "0x12:8"),
        ("h.c", "0x0:12"),
        ("valid(h)", "0x1:1"),
        ("valid(g)", "0x0:1"),
        ("s[1].a", "0x34:8"),
        ("s[i].a", "0x34:8"),
        ("s[i + 0x1:8].a", "0x0:8"),
        ("s[i + 0x1:8].c", "0x0:12"),
        ("valid(s[i + 0x1:8])", "0x0:1"),
        ("valid(s[0xffffffffffffffffffffff:88])", "0x0:1"),
        ("varbit_width(w.data)", "0x0:32"),
        ("varbit_eq(w.data, x.data)", "0x1:1"),
    ] {
        check(expr, want);
    }
}

fn control(body: &str) -> World {
    let mut world = World::new(&format!("{STORAGE}\ncontrol c {{\n  block b:\n{body}\n}}\n"));
    assert_eq!(world.run("c", &[]), Ending::Return);
    world
}

#[test]
fn writes_beyond_a_stack_go_nowhere() {
    let world = control(
        "    i = 0x2:8
    s[i].a = 0x1:8
    set_valid s[i]
    copy s[i] = h
    return",
    );
    for header in ["h", "g", "s[0]", "s[1]"] {
        assert!(!world.valid(header));
        assert_eq!(world.fields(header), "[0x0:8, 0x0:4, 0x0:12]", "{header}");
    }
}

#[test]
fn copies_take_validity_and_fields() {
    let world = control(
        "    i = 0x9:8
    set_valid h
    h.b = 0x7:4
    copy g = h
    copy s[1] = g
    set_invalid g
    set_valid s[0]
    s[0].a = 0x1:8
    copy s[0] = s[i]
    return",
    );
    assert!(world.valid("s[1]") && !world.valid("g") && !world.valid("s[0]"));
    assert_eq!(world.fields("s[1]"), "[0x0:8, 0x7:4, 0x0:12]");
    assert_eq!(world.fields("g"), "[0x0:8, 0x7:4, 0x0:12]", "an invalid header keeps its fields");
    assert_eq!(world.fields("s[0]"), "[0x0:8, 0x0:4, 0x0:12]", "a copy from beyond the end is an invalid header");
}

#[test]
fn control_flow() {
    let text = format!(
        "{STORAGE}
control c {{
  block b:
    branch m == 0x9:8 -> nine else other
  block nine:
    out = 0x99:8
    exit
  block other:
    switch m {{
      0x1:8 -> one
      0x2:8 -> two
      default -> rest
    }}
  block one:
    out = 0x11:8
    goto rest
  block two:
    out = 0x22:8
    return
  block rest:
    out = out + 0x1:8
    return
}}
"
    );
    let mut world = World::new(&text);
    for (m, ending, out) in
        [(9, Ending::Exit, 0x99), (1, Ending::Return, 0x12), (2, Ending::Return, 0x22), (3, Ending::Return, 1)]
    {
        world.run("c", &[]);
        world.set("m", m);
        world.set("out", 0);
        assert_eq!((world.go_on("c"), world.get("out")), (ending, out), "m = {m}");
    }
}

#[test]
fn endless_loops_run_out_of_fuel() {
    let text = "
metadata n: 32
control c {
  block b:
    n = n + 0x1:32
    goto b
}
";
    let mut world = World::new(text);
    assert!(matches!(world.run("c", &[]), Ending::OutOfFuel(_)));
    assert_eq!(world.get("n"), u64::from(engine::FUEL_BLOCKS));
}

#[test]
fn loops_that_ask_or_emit_run_out_of_fuel_sooner() {
    let text = "
header_type large { a: 65536  b: 65536 }
header h: large
control ask {
  block b:
    recirculate
    goto b
}
control grow {
  block b:
    set_valid h
    emit h
    goto b
}
";
    let mut world = World::new(text);
    assert!(matches!(world.run("ask", &[]), Ending::OutOfFuel(_)));
    assert_eq!(world.state.requests().len(), engine::FUEL_BLOCKS as usize / 2);
    assert!(matches!(world.run("grow", &[]), Ending::OutOfFuel(_)));
    assert!(world.state.emitted().as_bytes().len() < engine::FUEL_BLOCKS as usize * 128);
}

#[test]
fn a_broken_assertion_ends_the_body() {
    let text = "
metadata n: 8
control c {
  block b:
    assert n == 0x0:8
    n = 0x1:8
    assert n == 0x0:8
    n = 0x2:8
    return
}
";
    let mut world = World::new(text);
    assert!(matches!(world.run("c", &[]), Ending::AssertFailed(_)));
    assert_eq!(world.get("n"), 1);
}

#[test]
fn emitting_joins_headers_and_payload() {
    let text = "
header_type odd { a: 4  b: 3 }
header_type v { len: 8  data: varbit 32 }
header o: odd
header p: odd
header w: v
parser p {
  state start:
    extract w varbit 0x10:32
    return
}
control c {
  block b:
    set_valid o
    o.a = 0xf:4
    o.b = 0x5:3
    emit w
    emit p
    emit o
    return
}
";
    let mut world = World::new(text);
    assert_eq!(world.run("p", &[1, 2, 3, 0xaa, 0xbb]), Ending::Return);
    assert_eq!(world.go_on("c"), Ending::Return);
    assert_eq!(world.state.finish(), [1, 2, 3, 0b1111_1010, 0xaa, 0xbb]);
    assert_eq!(world.events.iter().filter(|event| event.starts_with("Emitted")).count(), 2);
    world.state.clear_emitted();
    assert_eq!(world.state.finish(), [0xaa, 0xbb]);
}

#[test]
fn checksums_cover_values_variable_fields_and_payload() {
    let text = "
header_type v { len: 8  data: varbit 32 }
header w: v
metadata c: 16
metadata narrow: 8
metadata wide: 40
metadata id: 24
parser p {
  state start:
    extract w varbit 0x8:32
    compute csum16(0x12:8, varbit w.data, payload) -> c
    compute crc32(payload) -> wide
    compute csum16(0x12:8, varbit w.data, payload) -> narrow
    compute identity(0x1:4, 0x23:8) -> id
    return
}
";
    let mut world = World::new(text);
    world.run("p", &[0xff, 0x34, 0x56, 0x78]);
    assert_eq!(world.get("c"), 0xffff - (0x1234 + 0x5678));
    assert_eq!(world.get("narrow"), (0xffff - (0x1234 + 0x5678)) & 0xff);
    assert_eq!(world.get("wide") >> 32, 0);
    assert_eq!(world.get("id"), 0x123);
}

#[test]
fn requests_are_evaluated_and_kept_in_order() {
    let text = "
metadata n: 32
digest d {  a: 32  b: 8 }
field_list 3 { slot n }
control c {
  block b:
    n = 0x7:32
    clone ingress session n keep 3
    n = 0x8:32
    clone egress session n
    resubmit keep 3
    recirculate
    truncate n
    digest d(n, 0x2:8)
    return
}
";
    let mut world = World::new(text);
    world.run("c", &[]);
    let requests: Vec<_> = world.state.take_requests().into_iter().map(|(request, _)| request).collect();
    let digest = world.program.digests.keys().next().unwrap();
    assert_eq!(
        requests,
        [
            Requested::Clone { ingress: true, session: 7, keep: Some(3) },
            Requested::Clone { ingress: false, session: 8, keep: None },
            Requested::Resubmit(Some(3)),
            Requested::Recirculate(None),
            Requested::Truncate(8),
            Requested::Digest(digest, vec![world.slot("n"), world::byte(2)]),
        ]
    );
    assert!(world.state.requests().is_empty());
    let kept = world.state.preserve(&world.program.field_lists[&3]);
    world.run("c", &[]);
    world.set("n", 0);
    world.state.restore(&kept);
    assert_eq!(world.get("n"), 8);
}

#[test]
fn logs_put_values_where_the_brackets_are() {
    let text = "
metadata n: 8
control c {
  block b:
    n = 0x2a:8
    log \"n is {}, twice {}\", n, n + n
    log \"{} and {}\", n
    return
}
";
    let mut world = World::new(text);
    world.run("c", &[]);
    let logs: Vec<_> = world.events.iter().filter(|event| event.starts_with("Log")).collect();
    assert!(logs[0].contains("\"n is 42, twice 84\""), "{logs:?}");
    assert!(logs[1].contains("\"42 and {}\""), "{logs:?}");
}

#[test]
fn random_numbers_follow_the_seed() {
    let text = "
metadata n: 8
control c {
  block b:
    random 0xa:8, 0x13:8 -> n
    return
}
";
    let mut world = World::new(text);
    let mut draw = |seed| {
        world.objects.seed(seed);
        let one = |_| {
            world.run("c", &[]);
            world.get("n")
        };
        (0..20).map(one).collect::<Vec<_>>()
    };
    let (first, again, other) = (draw(1), draw(1), draw(2));
    assert_eq!(first, again);
    assert_ne!(first, other);
    assert!(first.iter().all(|n| (10..20).contains(n)));
}

#[test]
fn a_restarted_state_is_a_new_one() {
    let mut world = control(
        "    set_valid h
    h.a = 0x1:8
    out = 0x5:8
    emit h
    truncate 0x1:32
    return",
    );
    let fresh = engine::PacketState::new(&world.program, vec![1]);
    assert_ne!(format!("{:?}", world.state), format!("{fresh:?}"));
    world.state.reset(&world.program, vec![1]);
    assert_eq!(format!("{:?}", world.state), format!("{fresh:?}"));
}
