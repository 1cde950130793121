//! Tables as programs see them, and control plane operations on them.

use crate::world::{World, byte};
use bits::Bits;
use engine::tables::{Backend, Handle, Lookup};
use engine::{ActionCall, ActionSpec, Colour, CounterValue, Ending, EntryError, MeterConfig, TableEntry, WeightedCall};
use ir::KeyValue::{Any, Exact, Lpm, Range, Ternary};

const PROGRAM: &str = "
metadata a: 8
metadata b: 8
metadata out: 8
metadata was_hit: 1
metadata ran: 32
metadata colour: 8
argument set.v: 8
argument add.v: 8
argument bad.v: 8

counter direct_counter: packets_and_bytes direct
meter direct_meter: bytes direct

action set(v: set.v) body set
action add(v: add.v) body add
action bad(v: bad.v) body bad
action quit() body quit

table same {
  key a: exact 8 = a
  key b: exact 8 = b
  action set
  action add
  action bad default_only
  action quit table_only
  default bad(0xdf:8)
}
table longest {
  key a: lpm 8 = a
  action set
  default set(0x0:8)
  counter direct_counter
}
table mixed {
  key a: lpm 8 = a
  key b: ternary 8 = b
  action set
  default set(0x0:8)
  meter direct_meter
}
table between {
  key a: range 8 signed = a
  key b: optional 8 = b
  action set
  default set(0x0:8) const
  size 2000
}
table fixed {
  key a: ternary 8 = a
  action set
  default set(0x0:8)
  const_entries
  entry 0x10:8 &&& 0xf0:8 priority 1 -> set(0x1:8)
  entry 0x11:8 &&& 0xff:8 priority 2 -> set(0x2:8)
}
table few {
  key a: exact 8 = a
  action set
  default set(0x0:8)
  size 1
  entry 0x1:8 -> set(0x1:8) const
  entry 0x2:8 -> set(0x2:8)
}
table keyless {
  action set
  action quit
  default set(0x5:8)
}

control same {
  block b:
    apply same hit was_hit action ran
    out = out + 0x1:8
    return
}
control longest {
  block b:
    apply longest hit was_hit
    return
}
control mixed {
  block b:
    apply mixed
    read_meter direct_meter -> colour
    return
}
control between {
  block b:
    apply between
    return
}
control fixed {
  block b:
    apply fixed
    return
}
control few {
  block b:
    apply few
    return
}
control keyless {
  block b:
    apply keyless hit was_hit
    return
}
action_body set {
  block b:
    out = set.v
    return
}
action_body add {
  block b:
    out = add.v + a
    return
}
action_body bad {
  block b:
    out = bad.v
    return
}
action_body quit {
  block b:
    out = 0x77:8
    exit
}
";

fn world() -> World {
    World::new(PROGRAM)
}

impl World {
    /// Applies the table in the control of the same name to a packet of 10 bytes. Returns the result.
    fn apply(&mut self, table: &str, a: u8, b: u8) -> u64 {
        self.state.reset(&self.program, vec![0; 10]);
        self.set("a", a.into());
        self.set("b", b.into());
        self.go_on(table);
        self.get("out")
    }

    fn insert(&mut self, table: &str, keys: Vec<ir::KeyValue>, priority: i32, arg: u8) -> Result<(), EntryError> {
        let entry = self.entry(keys, priority, "set", arg);
        self.objects.insert(self.table(table), entry)
    }
}

#[test]
fn exact_hits_misses_and_what_ran() {
    let mut world = world();
    let table = world.table("same");
    let entry = world.entry(vec![Exact(byte(1)), Exact(byte(2))], 0, "add", 0x10);
    world.objects.insert(table, entry).unwrap();
    assert_eq!(world.apply("same", 1, 2), 0x12);
    assert_eq!((world.get("was_hit"), world.get("ran")), (1, 1));
    assert_eq!(world.apply("same", 2, 1), 0xe0);
    assert_eq!((world.get("was_hit"), world.get("ran")), (0, 2));
    assert!(world.events.iter().any(|event| event.starts_with("Applied") && event.contains("entry: None")));

    let quit = TableEntry::new(vec![Exact(byte(3)), Any], 0, world.action("quit"), vec![]);
    assert_eq!(
        world.objects.insert(table, quit.clone()).unwrap_err(),
        EntryError::KeyKind { key: 1, kind: ir::MatchKind::Exact }
    );
    let quit = TableEntry { keys: vec![Exact(byte(3)), Exact(byte(3))], ..quit };
    world.objects.insert(table, quit).unwrap();
    assert_eq!(world.apply("same", 3, 3), 0x77, "exit in an action ends the control");
}

#[test]
fn an_exit_in_an_action_ends_the_control() {
    let mut world = world();
    let call = ActionCall { action: world.action("quit"), args: vec![] };
    world.objects.set_default_action(world.table("keyless"), call).unwrap();
    assert_eq!(world.run("keyless", &[]), Ending::Exit);
    world.objects.reset_default_action(world.table("keyless"));
    assert_eq!((world.run("keyless", &[]), world.get("out"), world.get("was_hit")), (Ending::Return, 5, 0));
}

#[test]
fn the_longest_prefix_wins() {
    let mut world = world();
    for (value, prefix, arg) in [(0x00, 0, 1), (0x80, 1, 2), (0xaa, 8, 3), (0xa0, 4, 4)] {
        world.insert("longest", vec![Lpm(byte(value), prefix)], 0, arg).unwrap();
    }
    let outs: Vec<_> = [0x7f, 0x80, 0xab, 0xaa].iter().map(|a| world.apply("longest", *a, 0)).collect();
    assert_eq!(outs, [1, 2, 4, 3]);
    world.objects.delete(world.table("longest"), &[Lpm(byte(0xa0), 4)], 0).unwrap();
    world.objects.delete(world.table("longest"), &[Any], 0).unwrap();
    assert_eq!((world.apply("longest", 0xab, 0), world.apply("longest", 0, 0)), (2, 0));
}

#[test]
fn priority_decides_over_prefix_length() {
    let mut world = world();
    world.insert("mixed", vec![Lpm(byte(0xab), 8), Any], 1, 1).unwrap();
    world.insert("mixed", vec![Lpm(byte(0xa0), 4), Ternary(byte(2), byte(2))], 2, 2).unwrap();
    assert_eq!((world.apply("mixed", 0xab, 0), world.apply("mixed", 0xab, 3)), (1, 2));
    assert_eq!((world.apply("mixed", 0xac, 3), world.apply("mixed", 0xac, 0)), (2, 0));
}

#[test]
fn ranges_and_optionals() {
    let mut world = world();
    world.insert("between", vec![Range(byte(0xfe), byte(2)), Any], 1, 1).unwrap();
    world.insert("between", vec![Any, Exact(byte(7))], 2, 2).unwrap();
    assert_eq!((world.apply("between", 0xff, 0), world.apply("between", 0xff, 7)), (1, 2));
    assert_eq!((world.apply("between", 3, 0), world.apply("between", 3, 7)), (0, 2));
}

#[test]
fn the_programs_entries_are_there_and_stay() {
    let mut world = world();
    assert_eq!(
        (world.apply("fixed", 0x12, 0), world.apply("fixed", 0x11, 0), world.apply("fixed", 0x21, 0)),
        (1, 2, 0)
    );
    let table = world.table("fixed");
    let keys = vec![Ternary(byte(0x10), byte(0xf0))];
    assert!(world.objects.get(table, &keys, 1).unwrap().constant);
    assert_eq!(world.insert("fixed", vec![Any], 1, 1), Err(EntryError::ConstEntries(table)));
    assert_eq!(world.objects.delete(table, &keys, 1).unwrap_err(), EntryError::ConstEntries(table));
    let entry = world.entry(keys, 1, "set", 9);
    assert_eq!(world.objects.modify(table, entry), Err(EntryError::ConstEntries(table)));
    assert_eq!(world.objects.clear(table), Err(EntryError::ConstEntries(table)));
    assert_eq!(world.objects.entry_count(table), 2);
}

#[test]
fn each_change_of_an_entry_makes_another_version() {
    let mut world = world();
    let (fixed, table) = (world.table("fixed"), world.table("mixed"));
    assert_eq!((world.objects.table_version(fixed), world.objects.table_version(table)), (2, 0));
    let keys = vec![Lpm(byte(0xab), 8), Any];
    world.insert("mixed", keys.clone(), 1, 1).unwrap();
    assert_eq!(world.objects.table_version(table), 1);
    let entry = world.entry(keys.clone(), 1, "set", 2);
    world.objects.modify(table, entry).unwrap();
    assert_eq!(world.objects.table_version(table), 2);
    assert_eq!(world.insert("mixed", keys.clone(), 1, 1), Err(EntryError::Duplicate));
    assert_eq!(world.objects.table_version(table), 2, "what is refused changes nothing");
    world.objects.delete(table, &keys, 1).unwrap();
    assert_eq!((world.objects.table_version(table), world.objects.table_version(fixed)), (3, 2));
}

#[test]
fn of_the_programs_entries_those_that_are_constant_stay() {
    let mut world = world();
    let few = world.table("few");
    let constant = EntryError::ConstEntry(few);
    let key = |value| vec![Exact(byte(value))];
    let entry = world.entry(key(1), 0, "set", 9);
    assert_eq!(world.objects.modify(few, entry), Err(constant.clone()));
    assert_eq!(world.objects.delete(few, &key(1), 0), Err(constant));
    assert_eq!(world.insert("few", key(1), 0, 9), Err(EntryError::Duplicate));
    let flags = [1, 2].map(|value| world.objects.get(few, &key(value), 0).unwrap().constant);
    assert_eq!(flags, [true, false]);
    let entry = world.entry(key(2), 0, "set", 7);
    world.objects.modify(few, entry).unwrap();
    assert_eq!((world.apply("few", 1, 0), world.apply("few", 2, 0)), (1, 7));
    world.objects.clear(few).unwrap();
    assert_eq!((world.apply("few", 1, 0), world.apply("few", 2, 0)), (1, 0));
}

#[test]
fn a_small_table_has_room_for_what_the_program_brings() {
    let mut world = world();
    let few = world.table("few");
    let key = |value| vec![Exact(byte(value))];
    assert_eq!((world.objects.capacity(few), world.objects.entry_count(few)), (2, 2));
    assert_eq!(world.insert("few", key(3), 0, 1), Err(EntryError::Full(2)));
    world.objects.delete(few, &key(2), 0).unwrap();
    world.insert("few", key(3), 0, 1).unwrap();
    assert_eq!(world.insert("few", key(2), 0, 1), Err(EntryError::Full(2)));
}

#[test]
fn modifying_changes_the_action_and_keeps_the_counter() {
    let mut world = world();
    let table = world.table("longest");
    world.insert("longest", vec![Lpm(byte(0x80), 1)], 0, 1).unwrap();
    world.apply("longest", 0x80, 0);
    world.apply("longest", 0x00, 0);
    let entry = world.entry(vec![Lpm(byte(0x80), 1)], 0, "set", 9);
    world.objects.modify(table, entry.clone()).unwrap();
    assert_eq!(world.apply("longest", 0x80, 0), 9);
    let installed = world.objects.get(table, &entry.keys, 0).unwrap();
    assert_eq!(installed.counter, CounterValue { packets: 2, bytes: 20 });
    assert_eq!(installed.entry, entry);
    let zero = CounterValue::default();
    world.objects.set_entry_counter(table, &entry.keys, 0, zero).unwrap();
    assert_eq!(world.objects.get(table, &entry.keys, 0).unwrap().counter, zero);
    assert_eq!(world.objects.entries(table).count(), 1);
    world.objects.clear(table).unwrap();
    assert_eq!((world.objects.entry_count(table), world.apply("longest", 0x80, 0)), (0, 0));
}

#[test]
fn direct_meters_colour_hits() {
    let mut world = world();
    let table = world.table("mixed");
    world.insert("mixed", vec![Any, Any], 1, 1).unwrap();
    assert_eq!((world.apply("mixed", 0, 0), world.get("colour")), (1, Colour::Green as u64));
    let config = MeterConfig { cir: 1, cbs: 10, pir: 2, pbs: 20 };
    world.objects.configure_entry_meter(table, &[Any, Any], 1, Some(config)).unwrap();
    let mut colours = Vec::new();
    for _ in 0..3 {
        world.apply("mixed", 0, 0);
        colours.push(world.get("colour"));
    }
    assert_eq!(colours, [0, 1, 2]);
    world.now_ns = 5_000_000_000;
    world.apply("mixed", 0, 0);
    assert_eq!(world.get("colour"), 1, "5 s at 2 B/s are 10 bytes of peak, at 1 B/s 5 of committed");
    world.objects.clear(table).unwrap();
    world.apply("mixed", 0, 0);
    assert_eq!(world.get("colour"), 0, "a miss is green");
}

#[test]
fn idle_entries_are_those_without_a_hit() {
    let mut world = world();
    let table = world.table("longest");
    world.now_ns = 1000;
    world.apply("longest", 0, 0);
    let mut entry = world.entry(vec![Lpm(byte(0x80), 1)], 0, "set", 1);
    entry.idle_timeout_ns = 500;
    world.objects.insert(table, entry).unwrap();
    world.insert("longest", vec![Any], 0, 2).unwrap();
    let idle = |world: &World, now_ns| world.objects.idle_entries(table, now_ns).count();
    assert_eq!((idle(&world, 1499), idle(&world, 1500)), (0, 1));
    world.now_ns = 1400;
    world.apply("longest", 0x80, 0);
    assert_eq!((idle(&world, 1500), idle(&world, 1900)), (0, 1));
}

#[test]
fn wrong_entries_say_why() {
    let mut world = world();
    let exact = world.table("same");
    let keys = || vec![Exact(byte(1)), Exact(byte(2))];
    let (set, bad) = (world.action("set"), world.action("bad"));
    let entry = |action, args| TableEntry::new(keys(), 0, action, args);
    let good = entry(set, vec![byte(1)]);
    use EntryError::*;
    let mut why = |entry: TableEntry| world.objects.insert(exact, entry).unwrap_err();
    assert_eq!(why(TableEntry { keys: vec![], ..good.clone() }), KeyCount { want: 2, got: 0 });
    assert_eq!(why(TableEntry { priority: 1, ..good.clone() }), PriorityNeedless(1));
    assert_eq!(why(entry(bad, vec![byte(1)])), DefaultOnly(bad));
    assert_eq!(why(entry(set, vec![])), ArgCount { action: set, want: 1, got: 0 });
    let wide = vec![Bits::new(1, 9)];
    assert_eq!(why(entry(set, wide)), ArgWidth { action: set, param: 0, want: 8, got: 9 });
    let member = TableEntry { action: ActionSpec::Member(1), ..good.clone() };
    assert_eq!(why(member), NoProfile(exact));
    world.objects.insert(exact, good.clone()).unwrap();
    assert_eq!(world.objects.insert(exact, good.clone()), Err(Duplicate));
    world.objects.delete(exact, &good.keys, 0).unwrap();
    assert_eq!(world.objects.delete(exact, &good.keys, 0).unwrap_err(), NotFound);
    assert_eq!(world.objects.modify(exact, good.clone()), Err(NotFound));
    assert_eq!(world.objects.get(exact, &good.keys[..1], 0).unwrap_err(), KeyCount { want: 2, got: 1 });
    let zero = CounterValue::default();
    assert_eq!(world.objects.set_entry_counter(exact, &good.keys, 0, zero), Err(NoSuchResource));

    let mixed = world.table("mixed");
    assert_eq!(world.insert("mixed", vec![Any, Any], 0, 1), Err(PriorityMissing(0)));
    assert_eq!(world.insert("mixed", vec![Any, Any], -1, 1), Err(PriorityMissing(-1)));
    world.insert("mixed", vec![Any, Any], 1, 1).unwrap();
    world.insert("mixed", vec![Any, Any], 2, 1).unwrap();
    assert_eq!(world.insert("mixed", vec![Any, Any], 2, 1), Err(Duplicate));
    let add = world.action("add");
    let entry = world.entry(vec![Any, Any], 3, "add", 1);
    assert_eq!(world.objects.insert(mixed, entry), Err(ActionNotInTable { table: mixed, action: add }));
    let keyless = world.table("keyless");
    assert_eq!(world.insert("keyless", vec![], 0, 1), Err(Keyless(keyless)));
}

#[test]
fn wrong_defaults_say_why() {
    let mut world = world();
    let (exact, range, lpm) = (world.table("same"), world.table("between"), world.table("longest"));
    let (set, quit, add) = (world.action("set"), world.action("quit"), world.action("add"));
    let call = |action, args| ActionCall { action, args };
    use EntryError::*;
    let objects = &mut world.objects;
    assert_eq!(objects.set_default_action(exact, call(quit, vec![])), Err(TableOnly(quit)));
    assert_eq!(objects.set_default_action(range, call(set, vec![byte(1)])), Err(ConstDefault(range)));
    assert_eq!(objects.set_default_action(range, call(set, vec![byte(0)])), Ok(()), "as it is already");
    assert_eq!(
        objects.set_default_action(lpm, call(add, vec![byte(1)])),
        Err(ActionNotInTable { table: lpm, action: add })
    );
    assert_eq!(objects.set_default_action(lpm, call(set, vec![])), Err(ArgCount { action: set, want: 1, got: 0 }));
    objects.set_default_action(lpm, call(set, vec![byte(8)])).unwrap();
    assert_eq!(objects.default_action(lpm), &call(set, vec![byte(8)]));
    assert_eq!(world.apply("longest", 0, 0), 8);
}

#[test]
fn tables_hold_what_they_promise_and_no_more() {
    let mut world = world();
    for (table, want) in [("mixed", 1024), ("between", 2000)] {
        let id = world.table(table);
        assert_eq!(world.objects.capacity(id), want);
        for n in 0..want {
            world.insert(table, vec![Any, Any], n as i32 + 1, 1).unwrap();
        }
        assert_eq!(world.insert(table, vec![Any, Any], 5000, 1), Err(EntryError::Full(want)));
        world.objects.delete(id, &[Any, Any], 7).unwrap();
        world.insert(table, vec![Any, Any], 5000, 2).unwrap();
        assert_eq!(world.apply(table, 0, 0), 2);
    }
}

#[test]
fn one_shots_need_a_profile() {
    let mut world = world();
    let call = ActionCall { action: world.action("set"), args: vec![byte(1)] };
    let shot = ActionSpec::OneShot(vec![WeightedCall { call, weight: 1, watch_port: None }]);
    let entry = TableEntry { action: shot, ..world.entry(vec![Any], 0, "set", 1) };
    let lpm = world.table("longest");
    assert_eq!(world.objects.insert(lpm, entry), Err(EntryError::NoProfile(lpm)));
}

/// A backend that finds its first entry for every key, or is always pending.
#[derive(Clone, Debug)]
struct Remote {
    entries: Vec<Handle>,
    ready: bool,
}

impl Backend for Remote {
    fn copy(&self) -> Box<dyn Backend> {
        Box::new(self.clone())
    }

    fn lookup(&self, _: &[Bits]) -> Lookup {
        if self.ready { Lookup::Hit(self.entries[0]) } else { Lookup::Pending }
    }

    fn find(&self, _: &[ir::KeyValue], _: i32) -> Option<Handle> {
        None
    }

    fn insert(&mut self, _: &[ir::KeyValue], _: i32, handle: Handle) {
        self.entries.push(handle);
    }

    fn remove(&mut self, _: &[ir::KeyValue], _: i32) -> Option<Handle> {
        self.entries.pop()
    }
}

#[test]
fn a_table_may_live_elsewhere_and_answer_later() {
    let mut world = world();
    let table = world.table("longest");
    assert_eq!(world.objects.key_shape(table).len(), 1);
    world.insert("longest", vec![Lpm(byte(0x80), 8)], 0, 3).unwrap();
    world.objects.set_backend(table, Box::new(Remote { entries: vec![], ready: true }));
    assert_eq!(world.apply("longest", 0x11, 0), 3);
    world.objects.set_backend(table, Box::new(Remote { entries: vec![], ready: false }));
    assert_eq!((world.run("longest", &[]), world.get("out")), (Ending::Pending(table), 0));
}
