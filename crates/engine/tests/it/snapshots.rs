//! Tests rows of registers with snapshots: ownership, and the pages of cuts.

use bits::Bits;
use engine::{Ending, EntryError, RowRefusal, RowState, StateRow};

use ir::RegisterId;

use crate::world::World;

// A page has 256 elements of `a` and `b`, because they have 4 bytes together. A row has 512 elements.
const PROGRAM: &str = r#"
metadata i: 32
metadata v: 24
register a: 24 size 1536 @resilient("group = \"g\", every = \"1ms\", row = \"512\"")
register b: 5 size 1536 @resilient("group = \"g\", every = \"1ms\", row = \"512\"")
register plain: 24 size 10 @resilient
control add {
  block b:
    write plain[0x0:32] = v
    read a[i] -> v
    write a[i] = v + 0x1:24
    write b[i] = 0x3:5
    return
}
control two {
  block b:
    write a[i] = 0x9:24
    read a[i + 0x200:32] -> v
    return
}
"#;

/// Returns an element of the first array.
fn element(world: &World, index: u64) -> u64 {
    world.objects.register(RegisterId::from_u32(0), index).expect("the array has it").low_u64()
}

const ROW: StateRow = StateRow { group: 0, index: 1 };

fn world() -> World {
    let mut world = World::new(PROGRAM);
    let groups = world.program.resilient_groups().unwrap();
    world.objects.own_rows(&world.program, &groups);
    world.objects.set_row_state(StateRow { group: 1, index: 0 }, RowState::Owned);
    world
}

fn pass(world: &mut World, body: &str, i: u64) -> Ending {
    world.objects.begin_pass(None);
    world.state.reset(&world.program, vec![0; 5]);
    world.set("i", i);
    world.set("v", 77);
    let ending = world.go_on(body);
    match ending {
        Ending::RowRefused => world.objects.undo_pass(),
        _ => _ = world.objects.end_pass(),
    }
    ending
}

fn open(world: &mut World, row: StateRow) {
    world.objects.set_snapshot_row_state(row, RowState::Owned);
}

#[test]
fn elements_are_those_of_rows_that_the_switch_has() {
    let mut world = world();
    open(&mut world, ROW);
    let has = |index| world.objects.has_element(RegisterId::from_u32(0), index);
    assert_eq!([1, 511, 512, 1023, 1024, 1535].map(has), [false, false, true, true, false, false]);
    let has = |index| world.objects.has_element(RegisterId::from_u32(2), index);
    assert_eq!([0, 9].map(has), [true, false], "each element is a row");
}

#[test]
fn the_control_plane_does_not_write_the_array_of_stale_rows() {
    let text = PROGRAM.replace(r#"every = \"1ms\", row"#, r#"every = \"1ms\", bound = \"9ms\", stale = \"flag\", row"#);
    let mut world = World::new(&(text + "register flag: 1 size 3\nregister other: 1 size 3\n"));
    let groups = world.program.resilient_groups().unwrap();
    world.objects.own_rows(&world.program, &groups);
    let (flag, other) = (RegisterId::from_u32(3), RegisterId::from_u32(4));
    let off = Bits::new(0, 1);
    assert_eq!(world.objects.set_register(flag, 0, off.clone()), Err(EntryError::RowRegister(flag)));
    assert_eq!(world.objects.fill_register(flag, off.clone()), Err(EntryError::RowRegister(flag)));
    assert_eq!(world.objects.set_register(other, 0, off), Ok(()));
}

#[test]
fn packets_use_a_row_while_it_is_owned_and_not_stale() {
    let mut world = world();
    assert_eq!(pass(&mut world, "add", 600), Ending::RowRefused);
    assert_eq!(world.objects.take_refusal(), Some(RowRefusal::Absent(ROW)));
    open(&mut world, ROW);
    assert_eq!(pass(&mut world, "add", 600), Ending::Return);
    assert_eq!(pass(&mut world, "add", 1023), Ending::Return);
    assert_eq!(pass(&mut world, "add", 1024), Ending::RowRefused);
    assert_eq!(world.objects.take_changed_rows(), [ROW]);
    world.objects.set_row_state(ROW, RowState::Stale);
    assert_eq!(pass(&mut world, "add", 600), Ending::RowRefused);
    assert_eq!(world.objects.take_refusal(), Some(RowRefusal::Stale(ROW)));
    assert_eq!(pass(&mut world, "add", 5000), Ending::Return, "elements beyond the end belong to no row");
}

#[test]
fn a_pass_that_needs_another_row_changes_nothing() {
    let mut world = world();
    open(&mut world, StateRow { group: 0, index: 0 });
    assert_eq!(pass(&mut world, "two", 3), Ending::RowRefused);
    assert_eq!(world.objects.take_refusal(), Some(RowRefusal::Absent(ROW)));
    assert_eq!(element(&world, 3), 0);
    open(&mut world, ROW);
    assert_eq!(pass(&mut world, "two", 3), Ending::Return);
}

#[test]
fn a_cut_is_the_state_of_its_moment_whatever_packets_change_after_it() {
    let mut world = world();
    open(&mut world, ROW);
    for i in [512, 513, 1000] {
        pass(&mut world, "add", i);
    }
    assert_eq!(world.objects.begin_cut(ROW), [0, 1]);
    assert_eq!(world.objects.take_changed_rows(), [ROW]);
    for i in [512, 1000, 1000] {
        pass(&mut world, "add", i);
    }
    assert_eq!(world.objects.take_changed_rows(), [ROW], "the first change after the cut");
    let pages = [0, 1].map(|page| world.objects.cut_page(ROW, page));
    // 256 elements of 3 bytes, then as many of 1 byte.
    assert_eq!(pages.each_ref().map(Vec::len), [1024, 1024]);
    assert_eq!((&pages[0][..7], &pages[0][768..771]), (&[0, 0, 1, 0, 0, 1, 0][..], &[3, 3, 0][..]));
    assert_eq!((pages[1][3 * (1000 - 768) + 2], pages[1][768 + 1000 - 768]), (1, 3));
    assert_eq!(world.objects.begin_cut(ROW), [0, 1]);
    assert_eq!(world.objects.cut_page(ROW, 1)[3 * (1000 - 768) + 2], 3);
    // At another switch.
    let mut other = self::world();
    assert!(!other.objects.set_page(ROW, 0, Some(&pages[0][1..])));
    assert!(other.objects.set_page(ROW, 0, Some(&pages[0])) && other.objects.set_page(ROW, 1, Some(&pages[1])));
    assert_eq!(element(&other, 1000), 1);
    assert!(other.objects.set_page(ROW, 1, None));
    assert_eq!(element(&other, 1000), 0);
    open(&mut other, ROW);
    assert_eq!(other.objects.begin_cut(ROW), [0; 0], "what was restored has not changed");
}
