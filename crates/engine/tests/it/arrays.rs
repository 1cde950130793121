//! Registers, counters, meters and value sets.

use crate::world::{World, byte};
use bits::Bits;
use engine::{CounterValue, Ending, EntryError, MeterConfig};
use ir::KeyValue;

const PROGRAM: &str = "
metadata i: 32
metadata v: 24
metadata colour: 2
register r: 24 size 1000
counter c: packets_and_bytes size 4
counter dc: packets direct
meter m: packets size 3
meter dm: bytes direct
value_set vs: size 1 {  x: exact 8 }
control put {
  block b:
    write r[i] = v
    count c[i]
    return
}
control get {
  block b:
    read r[i] -> v
    execute_meter m[i] -> colour
    return
}
";

fn at(world: &mut World, body: &str, i: u64, v: u64) -> u64 {
    world.state.reset(&world.program, vec![0; 5]);
    world.set("i", i);
    world.set("v", v);
    assert_eq!(world.go_on(body), Ending::Return);
    world.get("v")
}

#[test]
fn registers_keep_what_is_written_and_end() {
    let mut world = World::new(PROGRAM);
    let r = world.program.registers.keys().next().unwrap();
    at(&mut world, "put", 999, 0xabcdef);
    at(&mut world, "put", 1000, 0x111111);
    at(&mut world, "put", 0xffff_ffff, 0x111111);
    assert_eq!(at(&mut world, "get", 999, 1), 0xabcdef);
    assert_eq!(at(&mut world, "get", 998, 1), 0);
    assert_eq!(at(&mut world, "get", 1000, 1), 0);
    let value = Bits::new(0xabcdef, 24);
    assert_eq!(world.objects.register(r, 999), Ok(value.clone()));
    assert_eq!(world.objects.register(r, 1000), Err(EntryError::BeyondEnd { index: 1000, size: 1000 }));
    assert_eq!(world.objects.set_register(r, 0, byte(1)), Err(EntryError::ValueWidth { want: 24, got: 8 }));
    world.objects.set_register(r, 0, value.clone()).unwrap();
    assert_eq!(at(&mut world, "get", 0, 1), 0xabcdef);
    world.objects.fill_register(r, Bits::new(7, 24)).unwrap();
    assert_eq!((at(&mut world, "get", 0, 1), at(&mut world, "get", 999, 1)), (7, 7));
    assert_eq!(world.objects.register_size(r), 1000);
}

#[test]
fn counters_count_packets_and_bytes() {
    let mut world = World::new(PROGRAM);
    let mut counters = world.program.counters.keys();
    let (c, direct) = (counters.next().unwrap(), counters.next().unwrap());
    for i in [0, 3, 3, 4] {
        at(&mut world, "put", i, 0);
    }
    let count = |world: &World, i| world.objects.counter(c, i).map(|value| (value.packets, value.bytes));
    assert_eq!([0, 1, 3].map(|i| count(&world, i)), [Ok((1, 5)), Ok((0, 0)), Ok((2, 10))]);
    assert_eq!(count(&world, 4), Err(EntryError::BeyondEnd { index: 4, size: 4 }));
    world.objects.set_counter(c, 3, CounterValue { packets: u64::MAX, bytes: 0 }).unwrap();
    at(&mut world, "put", 3, 0);
    assert_eq!(count(&world, 3), Ok((0, 5)), "counters wrap");
    assert_eq!(world.objects.counter(direct, 0), Err(EntryError::NoSuchResource));
    assert_eq!((world.objects.counter_size(c), world.objects.counter_size(direct)), (Some(4), None));
    let both = CounterValue { packets: 1, bytes: 2 };
    assert_eq!(both.in_unit(ir::Unit::Bytes), CounterValue { packets: 0, bytes: 2 });
    assert_eq!(both.in_unit(ir::Unit::Packets), CounterValue { packets: 1, bytes: 0 });
}

#[test]
fn meters_run_on_the_clock_they_are_given() {
    let mut world = World::new(PROGRAM);
    let mut meters = world.program.meters.keys();
    let (m, direct) = (meters.next().unwrap(), meters.next().unwrap());
    let config = MeterConfig { cir: 1, cbs: 1, pir: 1, pbs: 2 };
    world.objects.configure_meter(m, 1, Some(config)).unwrap();
    assert_eq!(world.objects.meter_config(m, 1), Ok(Some(config)));
    let mut colour = |i, now_ns| {
        world.now_ns = now_ns;
        at(&mut world, "get", i, 0);
        world.get("colour")
    };
    assert_eq!([colour(1, 0), colour(1, 0), colour(1, 0), colour(1, 999_999_999)], [0, 1, 2, 2]);
    assert_eq!(colour(1, 1_000_000_000), 0);
    assert_eq!([colour(0, 0), colour(0, 0), colour(0, 0)], [0, 0, 0], "not configured");
    assert_eq!([colour(3, 0), colour(3, 0), colour(3, 0)], [0, 0, 0], "beyond the end");
    world.objects.configure_meters(m, Some(MeterConfig { cir: 0, cbs: 0, pir: 0, pbs: 0 })).unwrap();
    at(&mut world, "get", 2, 0);
    assert_eq!(world.get("colour"), 2);
    let size = world.objects.meter_size(m);
    assert_eq!((size, world.objects.meter_size(direct)), (Some(3), None));
    assert_eq!(world.objects.configure_meter(m, 3, None), Err(EntryError::BeyondEnd { index: 3, size: 3 }));
    assert_eq!(world.objects.configure_meter(direct, 0, None), Err(EntryError::NoSuchResource));
    let wrong = MeterConfig { cir: 2, cbs: 1, pir: 1, pbs: 1 };
    assert_eq!(world.objects.configure_meters(m, Some(wrong)), Err(EntryError::PeakBelowCommitted));
}

#[test]
fn value_sets_are_sets_of_limited_size() {
    let mut world = World::new(PROGRAM);
    let set = world.program.value_sets.keys().next().unwrap();
    let objects = &mut world.objects;
    let member = |value: u128| vec![KeyValue::Exact(Bits::new(value, 8))];
    for value in 0..255 {
        objects.insert_value_set_member(set, member(value)).unwrap();
    }
    assert_eq!(objects.insert_value_set_member(set, member(7)), Err(EntryError::Duplicate));
    let wide = vec![KeyValue::Exact(Bits::new(0, 9))];
    let width = EntryError::KeyWidth { key: 0, want: 8, got: 9 };
    assert_eq!(objects.insert_value_set_member(set, wide), Err(width));
    assert_eq!(objects.remove_value_set_member(set, member(255)), Err(EntryError::NotFound));
    assert_eq!(objects.value_set(set).len(), 255);
    objects.clear_value_set(set);
    assert_eq!(objects.value_set(set).len(), 0);
}
