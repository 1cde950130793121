//! Rows of `@resilient` registers: ownership, dependencies, and the undoing of passes.

use bits::Bits;
use engine::{CounterValue, Dependency, Ending, MeterConfig, RowRefusal, RowState, RowWrite, StateRow, TableEntry};
use ir::{KeyValue, RegisterId};

use crate::world::{World, byte};

const PROGRAM: &str = r#"
metadata i: 32
metadata v: 24
metadata colour: 2
metadata k: 8
argument set.v: 8
register a: 24 size 10 @resilient("group = \"g\"")
register b: 24 size 10 @resilient("group = \"g\"")
register other: 24 size 10 @resilient
register plain: 24 size 10
counter c: packets_and_bytes size 10
counter hits: packets direct
meter m: packets size 10
action set(v: set.v) body set
table t {
  key k: exact 8 = k
  action set
  default set(0x0:8)
  counter hits
}
action_body set {
  block b:
    k = set.v
    return
}
control effects {
  block b:
    count c[0x0:32]
    execute_meter m[0x0:32] -> colour
    random 0x0:24, 0xffffff:24 -> v
    write plain[0x0:32] = v
    apply t
    read a[i] -> v
    write a[i] = v + 0x1:24
    return
}
control read_a {
  block b:
    read a[i] -> v
    return
}
control write_b {
  block b:
    write b[i] = v
    return
}
control two {
  block b:
    write a[i] = 0x7:24
    write plain[0x1:32] = 0x1:24
    read other[i] -> v
    return
}
control twice {
  block b:
    write a[i] = 0x7:24
    read a[i + 0x1:32] -> v
    return
}
"#;

const A3: StateRow = StateRow { group: 0, index: 3 };

fn world() -> World {
    let mut world = World::new(PROGRAM);
    let groups = world.program.resilient_groups().unwrap();
    world.objects.own_rows(&world.program, &groups);
    world
}

/// Runs a pass of a packet with this index and value, and returns its ending and what its outputs depend on.
fn pass(world: &mut World, body: &str, i: u64, v: u64) -> (Ending, Option<Dependency>) {
    world.objects.begin_pass(None);
    world.state.reset(&world.program, vec![0; 5]);
    world.set("i", i);
    world.set("v", v);
    let ending = world.go_on(body);
    (ending, world.objects.end_pass())
}

fn own(world: &mut World, row: StateRow) {
    world.objects.set_row_state(row, RowState::Owned);
}

#[test]
fn values_of_any_width_are_bytes() {
    let program = "register a: 1 size 4 @resilient(\"group = \\\"g\\\"\")
register b: 32 size 4 @resilient(\"group = \\\"g\\\"\")
register c: 75 size 4 @resilient(\"group = \\\"g\\\"\")
";
    let mut world = World::new(program);
    let groups = world.program.resilient_groups().unwrap();
    world.objects.own_rows(&world.program, &groups);
    let row = StateRow { group: 0, index: 2 };
    world.objects.set_row_values(row, &[Bits::new(1, 1), Bits::new(0xdead_beef, 32), Bits::ones(75)]);
    let mut bytes = vec![9];
    world.objects.append_row_bytes(row, &mut bytes);
    assert_eq!(bytes, [9, 1, 0xde, 0xad, 0xbe, 0xef, 7, 255, 255, 255, 255, 255, 255, 255, 255, 255]);
}

#[test]
fn a_row_is_used_only_by_its_owner() {
    let mut world = world();
    assert_eq!(pass(&mut world, "read_a", 3, 0).0, Ending::RowRefused);
    assert_eq!(world.objects.take_refusal(), Some(RowRefusal::Absent(A3)));
    assert_eq!(world.objects.take_refusal(), None);
    own(&mut world, A3);
    let used = Some(Dependency { row: A3, writes: 0 });
    assert_eq!(pass(&mut world, "read_a", 3, 0), (Ending::Return, used));
    assert_eq!(pass(&mut world, "read_a", 4, 0).0, Ending::RowRefused);
    assert_eq!(world.objects.take_refusal(), Some(RowRefusal::Absent(StateRow { group: 0, index: 4 })));
    // Elements beyond the end belong to no row.
    assert_eq!(pass(&mut world, "read_a", 10, 0), (Ending::Return, None));
}

#[test]
fn a_shared_row_is_read_and_a_pass_that_changes_it_is_undone_and_takes_it_away() {
    let mut world = world();
    let used = Some(Dependency { row: A3, writes: 0 });
    world.objects.set_row_values(A3, &[Bits::new(7, 24), Bits::new(8, 24)]);
    world.objects.set_row_state(A3, RowState::Shared);
    assert_eq!(pass(&mut world, "read_a", 3, 0), (Ending::Return, used));
    assert_eq!(pass(&mut world, "write_b", 3, 8), (Ending::Return, used), "an equal value changes nothing");
    assert_eq!(world.objects.row_state(A3), RowState::Shared);
    assert!(!world.objects.has_write_wish(A3));
    world.objects.begin_pass(None);
    world.state.reset(&world.program, vec![0; 5]);
    world.set("i", 3);
    assert_eq!(world.go_on("effects"), Ending::RowRefused);
    assert_eq!(world.objects.take_refusal(), Some(RowRefusal::Absent(A3)));
    world.objects.undo_pass();
    assert!(world.objects.take_row_writes().is_empty());
    assert_eq!(world.objects.row_values(A3)[0], Bits::new(7, 24));
    // Packets that only read the row wait after the one that writes it.
    assert!(world.objects.has_write_wish(A3));
    assert_eq!(pass(&mut world, "read_a", 3, 0).0, Ending::RowRefused);
    own(&mut world, A3);
    assert!(!world.objects.has_write_wish(A3));
    assert_eq!(pass(&mut world, "write_b", 3, 9).0, Ending::Return);
    // A packet whose first access is a write counts as a writer, too.
    assert_eq!(pass(&mut world, "write_b", 4, 9).0, Ending::RowRefused);
    assert!(world.objects.has_write_wish(StateRow { group: 0, index: 4 }));
}

#[test]
fn what_follows_a_write_depends_on_it_until_it_is_acknowledged() {
    let mut world = world();
    own(&mut world, A3);
    assert_eq!(pass(&mut world, "write_b", 3, 5), (Ending::Return, Some(Dependency { row: A3, writes: 1 })));
    assert_eq!(world.objects.row_state(A3), RowState::Unacknowledged);
    assert_eq!(world.objects.row_values(A3), [Bits::zero(24), Bits::new(5, 24)]);
    assert_eq!(pass(&mut world, "read_a", 3, 0), (Ending::Return, Some(Dependency { row: A3, writes: 1 })));
    // The same value again is no write, but depends on the one before.
    assert_eq!(pass(&mut world, "write_b", 3, 5), (Ending::Return, Some(Dependency { row: A3, writes: 1 })));
    assert_eq!(pass(&mut world, "write_b", 3, 6), (Ending::Return, Some(Dependency { row: A3, writes: 2 })));
    let writes = [1, 2].map(|writes| RowWrite { row: A3, writes });
    assert_eq!(world.objects.take_row_writes(), writes);
    own(&mut world, A3);
    assert!(!pass(&mut world, "read_a", 3, 0).1.unwrap().must_wait());
    assert!(!pass(&mut world, "write_b", 3, 6).1.unwrap().must_wait(), "the value is there already");
    assert_eq!(world.objects.take_row_writes(), []);
}

#[test]
fn a_packet_uses_one_row() {
    let mut world = world();
    let second = StateRow { group: 1, index: 3 };
    for row in [A3, second, StateRow { group: 0, index: 4 }] {
        own(&mut world, row);
    }
    for (body, row) in [("two", second), ("twice", StateRow { group: 0, index: 4 })] {
        world.objects.begin_pass(None);
        world.state.reset(&world.program, vec![0; 5]);
        world.set("i", 3);
        assert_eq!(world.go_on(body), Ending::RowRefused);
        assert_eq!(world.objects.take_refusal(), Some(RowRefusal::Second(row)));
        world.objects.undo_pass();
    }
    assert_eq!(world.objects.row_values(A3), [Bits::zero(24), Bits::zero(24)], "nothing is half done");
    assert_eq!(world.objects.register(RegisterId::from_u32(3), 1).unwrap(), Bits::zero(24));
    assert_eq!(world.objects.row_state(A3), RowState::Owned);
    assert_eq!(world.objects.take_row_writes(), []);
    // A packet that used another row in an earlier pass may not use this one either.
    world.objects.begin_pass(Some(Dependency { row: second, writes: 0 }));
    assert_eq!(world.go_on("read_a"), Ending::RowRefused);
    assert_eq!(world.objects.take_refusal(), Some(RowRefusal::Second(A3)));
}

#[test]
fn a_pass_that_is_undone_and_runs_again_leaves_what_one_run_leaves() {
    let prepared = || {
        let mut world = world();
        world.objects.seed(7);
        let m = world.program.meters.keys().next().unwrap();
        let config = MeterConfig { cir: 1, cbs: 2, pir: 1, pbs: 3 };
        world.objects.configure_meter(m, 0, Some(config)).unwrap();
        let (table, set) = (world.table("t"), world.action("set"));
        let entry = TableEntry::new(vec![KeyValue::Exact(byte(0))], 0, set, vec![byte(9)]);
        world.objects.insert(table, entry).unwrap();
        world
    };
    let (mut once, mut undone) = (prepared(), prepared());
    for round in 0..4 {
        undone.objects.set_row_state(A3, RowState::Absent);
        undone.objects.begin_pass(None);
        undone.state.reset(&undone.program, vec![0; 5]);
        undone.set("i", 3);
        assert_eq!(undone.go_on("effects"), Ending::RowRefused, "round {round}");
        undone.objects.undo_pass();
        for world in [&mut once, &mut undone] {
            own(world, A3);
            assert_eq!(pass(world, "effects", 3, 0).0, Ending::Return);
        }
        let state = |world: &World| {
            let c = world.program.counters.keys().next().unwrap();
            let (table, plain) = (world.table("t"), RegisterId::from_u32(3));
            let hits: Vec<_> = world.objects.entries(table).map(|entry| format!("{entry:?}")).collect();
            let colour = world.get("colour");
            (world.objects.counter(c, 0).unwrap(), world.objects.register(plain, 0).unwrap(), colour, hits)
        };
        assert_eq!(state(&once), state(&undone), "round {round}");
        assert_eq!(state(&once).0, CounterValue { packets: round + 1, bytes: 5 * (round + 1) });
    }
}

#[test]
fn a_row_is_tested_again_in_each_pass_of_a_packet() {
    let mut world = world();
    let before = Some(Dependency { row: A3, writes: 0 });
    let mut read_again = |state: RowState| {
        world.objects.set_row_state(A3, state);
        world.objects.begin_pass(before);
        world.state.reset(&world.program, vec![0; 5]);
        world.set("i", 3);
        (world.go_on("read_a"), world.objects.take_refusal(), world.objects.end_pass())
    };
    // The switch has lost the row between the passes.
    let (ending, refusal, _) = read_again(RowState::Absent);
    assert_eq!((ending, refusal), (Ending::RowRefused, Some(RowRefusal::Absent(A3))));
    assert_eq!(read_again(RowState::Owned), (Ending::Return, None, before));
    // Another packet has written it, and nothing has acknowledged that.
    own(&mut world, A3);
    pass(&mut world, "write_b", 3, 5);
    world.objects.begin_pass(before);
    world.go_on("read_a");
    assert_eq!(world.objects.end_pass(), Some(Dependency { row: A3, writes: 1 }));
    // An existing dependency of a packet remains when the row is acknowledged.
    own(&mut world, A3);
    world.objects.begin_pass(Some(Dependency { row: A3, writes: 1 }));
    world.go_on("read_a");
    assert_eq!(world.objects.end_pass(), Some(Dependency { row: A3, writes: 1 }));
}
