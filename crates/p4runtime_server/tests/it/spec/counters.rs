//! Sections 9.1.7, 9.3, 9.4 and 9.7: counters, meters, registers, and what is attached to entries.

use crate::spec::rig::*;
use p4runtime_proto::v1;
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::p4_data::Data;

#[track_caller]
fn refused(result: Result<(), Refused>) -> Code {
    result.expect_err("this is refused").code
}

fn index(index: i64) -> Option<v1::Index> {
    Some(v1::Index { index })
}

fn values(byte_count: i64, packet_count: i64) -> Option<v1::CounterData> {
    Some(v1::CounterData { byte_count, packet_count })
}

fn counter(rig: &Rig, at: Option<v1::Index>, data: Option<v1::CounterData>) -> v1::CounterEntry {
    v1::CounterEntry { counter_id: id(&rig.info, "counted"), index: at, data }
}

fn rates() -> Option<v1::MeterConfig> {
    Some(v1::MeterConfig { cir: 1, cburst: 2, pir: 3, pburst: 4, ..Default::default() })
}

fn meter(rig: &Rig, at: Option<v1::Index>, config: Option<v1::MeterConfig>) -> v1::MeterEntry {
    v1::MeterEntry { meter_id: id(&rig.info, "metered"), index: at, config, ..Default::default() }
}

fn register(rig: &Rig, name: &str, at: Option<v1::Index>, value: &[u8]) -> v1::RegisterEntry {
    let data = Some(v1::P4Data { data: Some(Data::Bitstring(value.to_vec())) });
    v1::RegisterEntry { register_id: id(&rig.info, name), index: at, data }
}

fn counters(entities: Vec<v1::Entity>) -> Vec<v1::CounterEntry> {
    let one = |entity: v1::Entity| match entity.entity {
        Some(Kind::CounterEntry(entry)) => entry,
        other => panic!("no counter: {other:?}"),
    };
    entities.into_iter().map(one).collect()
}

fn meters(entities: Vec<v1::Entity>) -> Vec<v1::MeterEntry> {
    let one = |entity: v1::Entity| match entity.entity {
        Some(Kind::MeterEntry(entry)) => entry,
        other => panic!("no meter: {other:?}"),
    };
    entities.into_iter().map(one).collect()
}

fn registers(entities: Vec<v1::Entity>) -> Vec<v1::RegisterEntry> {
    let one = |entity: v1::Entity| match entity.entity {
        Some(Kind::RegisterEntry(entry)) => entry,
        other => panic!("no register: {other:?}"),
    };
    entities.into_iter().map(one).collect()
}

/// 9.3.2 Counters are written and read, one by one.
/// 9.3.2 They are 0 at the start.
#[test]
fn counters_are_written_and_read() {
    let rig = Rig::new();
    assert_eq!(counters(rig.read(counter(&rig, index(2), None))), [counter(&rig, index(2), values(0, 0))]);
    rig.modify(counter(&rig, index(2), values(100, 7))).unwrap();
    assert_eq!(counters(rig.read(counter(&rig, index(2), None))), [counter(&rig, index(2), values(100, 7))]);
    assert_eq!(counters(rig.read(counter(&rig, index(1), None))), [counter(&rig, index(1), values(0, 0))]);
}

/// 9.3.2 Packets count on from what was written.
#[test]
fn packets_count() {
    let rig = Rig::new();
    rig.modify(counter(&rig, index(1), values(1000, 10))).unwrap();
    let frame = data(1, 0, 0, 0, 0);
    rig.through(1, &frame);
    let expected = values(1000 + frame.len() as i64, 11);
    assert_eq!(counters(rig.read(counter(&rig, index(1), None))), [counter(&rig, index(1), expected)]);
}

/// 9.3.2 Without data a write changes nothing.
#[test]
fn a_counter_without_data_stays() {
    let rig = Rig::new();
    rig.modify(counter(&rig, index(0), values(5, 5))).unwrap();
    rig.modify(counter(&rig, index(0), None)).unwrap();
    assert_eq!(counters(rig.read(counter(&rig, index(0), None))), [counter(&rig, index(0), values(5, 5))]);
}

/// 9.3.2 Without an index all elements are written, or read.
/// 9.3.2 The id 0 reads all counters.
#[test]
fn all_elements_are_written_and_read_at_once() {
    let rig = Rig::new();
    rig.modify(counter(&rig, None, values(3, 4))).unwrap();
    let all: Vec<_> = (0..4).map(|at| counter(&rig, index(at), values(3, 4))).collect();
    assert_eq!(counters(rig.read(counter(&rig, None, None))), all);
    assert_eq!(counters(rig.read(v1::CounterEntry::default())), all);
}

/// 9.3.2 Counters are neither inserted nor deleted: INVALID_ARGUMENT.
/// 9.4.2 Meters are neither inserted nor deleted: INVALID_ARGUMENT.
#[test]
fn arrays_are_only_modified() {
    let rig = Rig::new();
    assert_eq!(refused(rig.insert(counter(&rig, index(0), values(1, 1)))), Code::InvalidArgument);
    assert_eq!(refused(rig.delete(counter(&rig, index(0), None))), Code::InvalidArgument);
    assert_eq!(refused(rig.insert(meter(&rig, index(0), rates()))), Code::InvalidArgument);
    assert_eq!(refused(rig.delete(meter(&rig, index(0), None))), Code::InvalidArgument);
    assert_eq!(refused(rig.insert(register(&rig, "remembered", index(0), &[1]))), Code::InvalidArgument);
    assert_eq!(refused(rig.delete(register(&rig, "remembered", index(0), &[1]))), Code::InvalidArgument);
}

/// 9.3.2 An index below 0 is INVALID_ARGUMENT, one beyond the end OUT_OF_RANGE.
/// 9.4.2 The same for meters.
/// 9.7 The same for registers.
#[test]
fn indices_are_inside() {
    let rig = Rig::new();
    for (at, code) in [(-1, Code::InvalidArgument), (4, Code::OutOfRange), (i64::MAX, Code::OutOfRange)] {
        assert_eq!(refused(rig.modify(counter(&rig, index(at), values(1, 1)))), code);
        assert_eq!(rig.read_code(counter(&rig, index(at), None)), code);
        assert_eq!(refused(rig.modify(meter(&rig, index(at), rates()))), code);
        assert_eq!(rig.read_code(meter(&rig, index(at), None)), code);
        assert_eq!(refused(rig.modify(register(&rig, "remembered", index(at), &[1]))), code);
        assert_eq!(rig.read_code(register(&rig, "remembered", index(at), &[1])), code);
    }
}

/// 8.1.1 The id 0 is none in a write: INVALID_ARGUMENT.
#[test]
fn arrays_have_to_be_named_in_writes() {
    let rig = Rig::new();
    let nameless = v1::CounterEntry { data: values(1, 1), index: index(0), ..Default::default() };
    assert_eq!(refused(rig.modify(nameless)), Code::InvalidArgument);
    let nameless = v1::MeterEntry { config: rates(), index: index(0), ..Default::default() };
    assert_eq!(refused(rig.modify(nameless)), Code::InvalidArgument);
    let nameless = v1::RegisterEntry { register_id: 0, ..register(&rig, "remembered", index(0), &[1]) };
    assert_eq!(refused(rig.modify(nameless)), Code::InvalidArgument);
}

/// 9.4.2 Meters are configured and read; without a config they are as at the start, which reads as none.
#[test]
fn meters_are_configured_and_read() {
    let rig = Rig::new();
    assert_eq!(meters(rig.read(meter(&rig, index(1), None))), [meter(&rig, index(1), None)]);
    rig.modify(meter(&rig, index(1), rates())).unwrap();
    assert_eq!(meters(rig.read(meter(&rig, index(1), None))), [meter(&rig, index(1), rates())]);
    rig.modify(meter(&rig, index(1), None)).unwrap();
    assert_eq!(meters(rig.read(meter(&rig, index(1), None))), [meter(&rig, index(1), None)]);
}

/// 9.4.2 Without an index all elements are configured, or read.
#[test]
fn all_meters_are_configured_and_read_at_once() {
    let rig = Rig::new();
    rig.modify(meter(&rig, None, rates())).unwrap();
    let all: Vec<_> = (0..4).map(|at| meter(&rig, index(at), rates())).collect();
    assert_eq!(meters(rig.read(meter(&rig, None, None))), all);
    assert_eq!(meters(rig.read(v1::MeterEntry::default())), all);
    rig.modify(meter(&rig, None, None)).unwrap();
    assert!(meters(rig.read(meter(&rig, None, None))).iter().all(|meter| meter.config.is_none()));
}

/// 9.4 A meter of two rates takes no excess burst: INVALID_ARGUMENT.
/// 9.4 Rates and bursts are not negative.
#[test]
fn rates_make_sense() {
    let rig = Rig::new();
    let with = |change: fn(&mut v1::MeterConfig)| {
        let mut config = rates().unwrap();
        change(&mut config);
        refused(rig.modify(meter(&rig, index(0), Some(config))))
    };
    assert_eq!(with(|config| config.eburst = 1), Code::InvalidArgument);
    let fields: [fn(&mut v1::MeterConfig) -> &mut i64; 4] =
        [|config| &mut config.cir, |config| &mut config.cburst, |config| &mut config.pir, |config| &mut config.pburst];
    for field in fields {
        let mut config = rates().unwrap();
        *field(&mut config) = -1;
        assert_eq!(refused(rig.modify(meter(&rig, index(0), Some(config)))), Code::InvalidArgument, "{config:?}");
    }
}

/// 9.4.3 Counters of colours are not there: UNIMPLEMENTED, written or read.
#[test]
fn counters_of_colours_are_not_implemented() {
    let rig = Rig::new();
    let colours = Some(v1::MeterCounterData::default());
    let with = v1::MeterEntry { counter_data: colours, ..meter(&rig, index(0), rates()) };
    assert_eq!(refused(rig.modify(with)), Code::Unimplemented);
    assert_eq!(rig.read_code(with), Code::Unimplemented);
    let direct = v1::DirectMeterEntry {
        table_entry: Some(entry(&rig.info, "metered_t").exact(1, 1)),
        counter_data: colours,
        ..Default::default()
    };
    assert_eq!(rig.read_code(direct), Code::Unimplemented);
}

/// 9.7 Registers are written and read, one by one, or all at once.
/// 9.7 The id 0 reads all registers.
#[test]
fn registers_are_written_and_read() {
    let rig = Rig::new();
    rig.modify(register(&rig, "remembered", index(1), &[0x12, 0x34])).unwrap();
    let read = |at| registers(rig.read(register(&rig, "remembered", at, &[1])));
    assert_eq!(read(index(1)), [register(&rig, "remembered", index(1), &[0x12, 0x34])]);
    assert_eq!(read(index(0)), [register(&rig, "remembered", index(0), &[0])]);
    rig.modify(register(&rig, "remembered", None, &[7])).unwrap();
    let all: Vec<_> = (0..4).map(|at| register(&rig, "remembered", index(at), &[7])).collect();
    assert_eq!(read(None), all);
    assert_eq!(rig.read(v1::RegisterEntry::default()).len(), 4 + 2);
}

/// 9.7 What packets write is read.
#[test]
fn what_packets_write_to_registers_is_read() {
    let rig = Rig::new();
    rig.through(1, &data(2, 0xbeef, 0, 0, 0));
    let read = registers(rig.read(register(&rig, "remembered", index(2), &[1])));
    assert_eq!(read, [register(&rig, "remembered", index(2), &[0xbe, 0xef])]);
}

/// 9.7 Data of another form than the register's is INVALID_ARGUMENT.
/// 8.3 A value that does not fit is OUT_OF_RANGE, also in P4Data.
#[test]
fn data_is_of_the_registers_form() {
    let rig = Rig::new();
    let with =
        |data| v1::RegisterEntry { data: Some(v1::P4Data { data }), ..register(&rig, "remembered", index(0), &[]) };
    assert_eq!(refused(rig.modify(with(Some(Data::Bool(true))))), Code::InvalidArgument);
    assert_eq!(refused(rig.modify(with(None))), Code::InvalidArgument);
    let missing = v1::RegisterEntry { data: None, ..with(None) };
    assert_eq!(refused(rig.modify(missing)), Code::InvalidArgument);
    assert_eq!(refused(rig.modify(with(Some(Data::Bitstring(vec![1, 0, 0]))))), Code::OutOfRange);
    assert_eq!(refused(rig.modify(with(Some(Data::Bitstring(Vec::new()))))), Code::OutOfRange);
}

/// 8.3 Signed values are written in two's complement, sign-extended as one likes, and read as short as possible.
#[test]
fn signed_values_are_in_twos_complement() {
    let rig = Rig::new();
    for (written, read) in [(&[0xfd, 0x1d][..], &[0xfd, 0x1d][..]), (&[0xff, 0xff, 0x9d], &[0x9d]), (&[0, 0], &[0])] {
        rig.modify(register(&rig, "signed", index(1), written)).unwrap();
        let found = registers(rig.read(register(&rig, "signed", index(1), &[0])));
        assert_eq!(found, [register(&rig, "signed", index(1), read)]);
    }
    assert_eq!(refused(rig.modify(register(&rig, "signed", index(1), &[0x8d, 0x1d]))), Code::OutOfRange);
}

fn counted(rig: &Rig) -> v1::TableEntry {
    entry(&rig.info, "counted_t").exact(1, 1).does(call(&rig.info, "count_hit", &[]))
}

fn metered(rig: &Rig) -> v1::TableEntry {
    entry(&rig.info, "metered_t").exact(1, 1).does(call(&rig.info, "meter_hit", &[]))
}

fn direct_counter(table_entry: v1::TableEntry, data: Option<v1::CounterData>) -> v1::DirectCounterEntry {
    v1::DirectCounterEntry { table_entry: Some(table_entry), data }
}

fn direct_meter(table_entry: v1::TableEntry, config: Option<v1::MeterConfig>) -> v1::DirectMeterEntry {
    v1::DirectMeterEntry { table_entry: Some(table_entry), config, ..Default::default() }
}

#[track_caller]
fn direct_counts(rig: &Rig, entry: v1::TableEntry) -> Vec<Option<v1::CounterData>> {
    let one = |entity: v1::Entity| match entity.entity {
        Some(Kind::DirectCounterEntry(entry)) => entry.data,
        other => panic!("no direct counter: {other:?}"),
    };
    rig.read(direct_counter(entry, None)).into_iter().map(one).collect()
}

#[track_caller]
fn direct_rates(rig: &Rig, entry: v1::TableEntry) -> Vec<Option<v1::MeterConfig>> {
    let one = |entity: v1::Entity| match entity.entity {
        Some(Kind::DirectMeterEntry(entry)) => entry.config,
        other => panic!("no direct meter: {other:?}"),
    };
    rig.read(direct_meter(entry, None)).into_iter().map(one).collect()
}

/// 9.3.1 The counter of an entry counts its hits, is written and is read.
#[test]
fn direct_counters_count_and_are_written() {
    let rig = Rig::new();
    rig.insert(counted(&rig)).unwrap();
    assert_eq!(direct_counts(&rig, counted(&rig)), [values(0, 0)]);
    let frame = data(1, 0, 0, 0, 0);
    rig.through(1, &frame);
    assert_eq!(direct_counts(&rig, counted(&rig)), [values(frame.len() as i64, 1)]);
    rig.modify(direct_counter(counted(&rig), values(9, 8))).unwrap();
    assert_eq!(direct_counts(&rig, counted(&rig)), [values(9, 8)]);
    rig.modify(direct_counter(counted(&rig), None)).unwrap();
    assert_eq!(direct_counts(&rig, counted(&rig)), [values(9, 8)]);
}

/// 9.3.1 The counter of an entry that is not there is NOT_FOUND, written or read.
/// 9.4.1 The same for meters.
#[test]
fn direct_objects_are_of_entries_that_are_there() {
    let rig = Rig::new();
    assert_eq!(refused(rig.modify(direct_counter(counted(&rig), values(1, 1)))), Code::NotFound);
    assert_eq!(rig.read_code(direct_counter(counted(&rig), None)), Code::NotFound);
    assert_eq!(refused(rig.modify(direct_meter(metered(&rig), rates()))), Code::NotFound);
    assert_eq!(rig.read_code(direct_meter(metered(&rig), None)), Code::NotFound);
}

/// 9.3.1 The counter of an entry goes with it.
#[test]
fn a_direct_counter_goes_with_its_entry() {
    let rig = Rig::new();
    rig.insert(v1::TableEntry { counter_data: values(5, 5), ..counted(&rig) }).unwrap();
    rig.delete(counted(&rig)).unwrap();
    assert_eq!(rig.read_code(direct_counter(counted(&rig), None)), Code::NotFound);
    rig.insert(counted(&rig)).unwrap();
    assert_eq!(direct_counts(&rig, counted(&rig)), [values(0, 0)]);
}

/// 9.3.1 Direct counters are neither inserted nor deleted: INVALID_ARGUMENT.
/// 9.4.1 The same for direct meters.
#[test]
fn direct_objects_are_only_modified() {
    let rig = Rig::new();
    rig.insert(counted(&rig)).unwrap();
    rig.insert(metered(&rig)).unwrap();
    assert_eq!(refused(rig.insert(direct_counter(counted(&rig), values(1, 1)))), Code::InvalidArgument);
    assert_eq!(refused(rig.delete(direct_counter(counted(&rig), None))), Code::InvalidArgument);
    assert_eq!(refused(rig.insert(direct_meter(metered(&rig), rates()))), Code::InvalidArgument);
    assert_eq!(refused(rig.delete(direct_meter(metered(&rig), None))), Code::InvalidArgument);
}

/// 9.3.1 A table without counters has none, and one without meters has none: INVALID_ARGUMENT.
#[test]
fn direct_objects_are_of_tables_that_have_them() {
    let rig = Rig::new();
    let plain = entry(&rig.info, "exact_t").exact(1, 1).does(call(&rig.info, "forward", &[2]));
    rig.insert(plain.clone()).unwrap();
    assert_eq!(refused(rig.modify(direct_counter(plain.clone(), values(1, 1)))), Code::InvalidArgument);
    assert_eq!(refused(rig.modify(direct_meter(plain.clone(), rates()))), Code::InvalidArgument);
    let with_counter = v1::TableEntry { counter_data: values(1, 1), ..plain.clone() };
    assert_eq!(refused(rig.modify(with_counter)), Code::InvalidArgument);
    let with_meter = v1::TableEntry { meter_config: rates(), ..plain };
    assert_eq!(refused(rig.modify(with_meter)), Code::InvalidArgument);
}

/// 9.1.7 `counter_data` in an insertion is the counter's first value.
/// 9.1.7 `counter_data` in a modification is written; left out, the counter stays.
/// 9.1.7 `counter_data` is read if it is asked for.
#[test]
fn counters_travel_with_entries() {
    let rig = Rig::new();
    rig.insert(v1::TableEntry { counter_data: values(10, 1), ..counted(&rig) }).unwrap();
    let ask = v1::TableEntry { counter_data: values(0, 0), ..entry(&rig.info, "counted_t") };
    let read = || rig.entries(ask.clone())[0].counter_data;
    assert_eq!(read(), values(10, 1));
    assert_eq!(rig.entries(entry(&rig.info, "counted_t"))[0].counter_data, None);
    rig.modify(counted(&rig)).unwrap();
    assert_eq!(read(), values(10, 1));
    rig.modify(v1::TableEntry { counter_data: values(20, 2), ..counted(&rig) }).unwrap();
    assert_eq!(read(), values(20, 2));
}

/// 9.1.7 `meter_config` in an insertion or a modification configures the meter; left out, the meter is as at the start.
/// 9.1.7 `meter_config` is read if it is asked for and there is one.
#[test]
fn meters_travel_with_entries() {
    let rig = Rig::new();
    rig.insert(v1::TableEntry { meter_config: rates(), ..metered(&rig) }).unwrap();
    let ask = v1::TableEntry { meter_config: Some(v1::MeterConfig::default()), ..entry(&rig.info, "metered_t") };
    let read = || rig.entries(ask.clone())[0].meter_config;
    assert_eq!(read(), rates());
    assert_eq!(rig.entries(entry(&rig.info, "metered_t"))[0].meter_config, None);
    rig.modify(metered(&rig)).unwrap();
    assert_eq!(read(), None);
    rig.modify(v1::TableEntry { meter_config: rates(), ..metered(&rig) }).unwrap();
    assert_eq!(read(), rates());
}

/// 9.4.1 The meter of an entry is configured, reset and read.
#[test]
fn direct_meters_are_configured_and_read() {
    let rig = Rig::new();
    rig.insert(metered(&rig)).unwrap();
    assert_eq!(direct_rates(&rig, metered(&rig)), [None]);
    rig.modify(direct_meter(metered(&rig), rates())).unwrap();
    assert_eq!(direct_rates(&rig, metered(&rig)), [rates()]);
    rig.modify(direct_meter(metered(&rig), None)).unwrap();
    assert_eq!(direct_rates(&rig, metered(&rig)), [None]);
}

/// 9.3.1 A direct counter without a table entry is INVALID_ARGUMENT.
#[test]
fn a_direct_object_names_its_entry() {
    let rig = Rig::new();
    let nameless = v1::DirectCounterEntry { data: values(1, 1), ..Default::default() };
    assert_eq!(refused(rig.modify(nameless)), Code::InvalidArgument);
    let nameless = v1::DirectMeterEntry { config: rates(), ..Default::default() };
    assert_eq!(refused(rig.modify(nameless)), Code::InvalidArgument);
}
