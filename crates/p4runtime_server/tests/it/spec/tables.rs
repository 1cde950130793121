//! Section 9.1, with 8.3 (byte strings): tables and their entries.

use crate::spec::rig::*;
use p4runtime_proto::v1;

/// The code of what is refused.
#[track_caller]
pub fn refused(result: Result<(), Refused>) -> Code {
    let refused = result.expect_err("this is refused");
    assert!(!refused.message.is_empty(), "a refusal says why");
    refused.code
}

pub fn forward(rig: &Rig) -> v1::Action {
    call(&rig.info, "forward", &[2])
}

/// An entry of each table with a key of one kind; what is written comes back.
pub fn one_of_each(rig: &Rig) -> Vec<v1::TableEntry> {
    let of = |table| entry(&rig.info, table).does(forward(rig));
    vec![
        of("exact_t").exact(1, 0x1234),
        of("lpm_t").lpm(1, 0x0a00_0000, 8),
        of("ternary_t").ternary(1, 0x1200, 0xff00).ternary(2, 1, 1).priority(5),
        of("range_t").range(1, 3, 9).priority(5),
        of("optional_t").optional(1, 7).priority(5),
    ]
}

/// 8.2 What is written is read back as it was: every kind of match, priorities, actions with arguments.
/// 9.1 Entries are inserted and read.
#[test]
fn entries_of_every_kind_come_back_as_they_were_written() {
    let rig = Rig::new();
    for written in one_of_each(&rig) {
        rig.insert(written.clone()).unwrap();
        assert_eq!(rig.entries(v1::TableEntry { table_id: written.table_id, ..Default::default() }), [written]);
    }
}

/// 9.1 Entries do to packets what they say.
#[test]
fn entries_act_on_packets() {
    let rig = Rig::new();
    rig.insert(entry(&rig.info, "lpm_t").lpm(1, 0x0a00_0000, 8).does(call(&rig.info, "forward", &[2]))).unwrap();
    rig.insert(entry(&rig.info, "lpm_t").lpm(1, 0x0a01_0000, 16).does(call(&rig.info, "forward", &[4]))).unwrap();
    assert_eq!(rig.through(1, &data(0, 0, 0x0a02_0304, 0, 0)), Some(2));
    assert_eq!(rig.through(1, &data(0, 0, 0x0a01_0304, 0, 0)), Some(4));
}

/// 9.1 An entry that is there already is ALREADY_EXISTS, and stays as it was.
#[test]
fn what_is_there_cannot_be_inserted() {
    let rig = Rig::new();
    for written in one_of_each(&rig) {
        rig.insert(written.clone()).unwrap();
        let again = v1::TableEntry { metadata: vec![1], ..written.clone() };
        assert_eq!(refused(rig.insert(again)), Code::AlreadyExists);
        assert_eq!(rig.entries(v1::TableEntry { table_id: written.table_id, ..Default::default() }), [written]);
    }
}

/// 12 Modifying or deleting what is not there is NOT_FOUND.
#[test]
fn what_is_not_there_cannot_be_changed() {
    let rig = Rig::new();
    for entry in one_of_each(&rig) {
        assert_eq!(refused(rig.modify(entry.clone())), Code::NotFound);
        assert_eq!(refused(rig.delete(entry)), Code::NotFound);
    }
}

/// 9.1 Match and priority say which entry it is.
#[test]
fn the_priority_is_part_of_the_key() {
    let rig = Rig::new();
    let of = |priority| entry(&rig.info, "ternary_t").ternary(1, 1, 1).priority(priority).does(forward(&rig));
    rig.insert(of(5)).unwrap();
    rig.insert(of(6)).unwrap();
    assert_eq!(refused(rig.delete(of(7))), Code::NotFound);
    rig.delete(of(5)).unwrap();
    assert_eq!(rig.entries(entry(&rig.info, "ternary_t")), [of(6)]);
}

/// 9.1 Several entries may have one priority.
#[test]
fn entries_share_priorities() {
    let rig = Rig::new();
    for value in 0..4 {
        rig.insert(entry(&rig.info, "ternary_t").ternary(1, value, 0xff).priority(5).does(forward(&rig))).unwrap();
    }
    assert_eq!(rig.entries(entry(&rig.info, "ternary_t")).len(), 4);
}

/// 9.1 A higher number wins.
#[test]
fn a_higher_priority_wins() {
    let rig = Rig::new();
    let of = |mask, priority, port| {
        let entry = entry(&rig.info, "ternary_t").ternary(1, 0x1200 & mask, mask).priority(priority);
        entry.does(call(&rig.info, "forward", &[port]))
    };
    rig.insert(of(0xff00, 5, 2)).unwrap();
    rig.insert(of(0xf000, 6, 3)).unwrap();
    assert_eq!(rig.through(1, &data(0, 0x1200, 0, 0, 0)), Some(3));
    rig.delete(of(0xf000, 6, 3)).unwrap();
    assert_eq!(rig.through(1, &data(0, 0x1200, 0, 0, 0)), Some(2));
}

/// 9.1 A key with a ternary, range or optional match needs a priority other than 0: INVALID_ARGUMENT.
/// 9.1 A key without one has none: INVALID_ARGUMENT.
#[test]
fn priorities_are_where_they_are_needed_and_nowhere_else() {
    let rig = Rig::new();
    for entry in one_of_each(&rig) {
        let wrong = v1::TableEntry { priority: if entry.priority == 0 { 1 } else { 0 }, ..entry.clone() };
        assert_eq!(refused(rig.insert(wrong.clone())), Code::InvalidArgument, "{wrong:?}");
        let negative = v1::TableEntry { priority: -1, ..entry };
        assert_eq!(refused(rig.insert(negative)), Code::InvalidArgument);
    }
}

/// 8.1.1 The id 0 is none: INVALID_ARGUMENT in a write.
/// 9.1 A table that P4Info does not have cannot be written.
#[test]
fn a_table_has_to_exist() {
    let rig = Rig::new();
    let nothing = v1::TableEntry::default().does(forward(&rig));
    assert_eq!(refused(rig.insert(nothing.clone())), Code::InvalidArgument);
    let unknown = refused(rig.insert(v1::TableEntry { table_id: 0x02ff_ffff, ..nothing.clone() }));
    assert!([Code::NotFound, Code::InvalidArgument].contains(&unknown));
    // An action is not a table.
    let action = refused(rig.insert(v1::TableEntry { table_id: id(&rig.info, "forward"), ..nothing }));
    assert!([Code::NotFound, Code::InvalidArgument].contains(&action));
}

/// 9.1 DELETE looks at the key only; other fields are ignored, except `is_const` and `metadata` that are too long.
#[test]
fn deleting_looks_at_the_key_only() {
    let rig = Rig::new();
    for written in one_of_each(&rig) {
        rig.insert(written.clone()).unwrap();
        let nonsense = v1::Action { action_id: 77, params: Vec::new() };
        let key = v1::TableEntry { metadata: vec![9], idle_timeout_ns: -5, ..written.clone() }.does(nonsense);
        rig.delete(key).unwrap();
        rig.insert(written.clone()).unwrap();
        let marked = v1::TableEntry { is_const: true, ..written.clone() };
        assert_eq!(refused(rig.delete(marked)), Code::InvalidArgument);
        let entry = v1::TableEntry { metadata: vec![0; 1025], ..written.clone() };
        assert_eq!(refused(rig.delete(entry)), Code::ResourceExhausted);
        rig.delete(v1::TableEntry { action: None, ..written }).unwrap();
    }
}

/// 9.1 A table without a key has no entries but the default one: INVALID_ARGUMENT.
#[test]
fn a_keyless_table_takes_no_entries() {
    let rig = Rig::new();
    assert_eq!(refused(rig.insert(entry(&rig.info, "keyless_t").does(forward(&rig)))), Code::InvalidArgument);
}

/// 9.1 A table holds as many entries as the program says; one more is RESOURCE_EXHAUSTED, and a deletion makes room.
#[test]
fn a_full_table_is_exhausted() {
    let rig = Rig::new();
    let of = |value| entry(&rig.info, "exact_t").exact(1, value).does(forward(&rig));
    let insert = |value: u64| v1::Update { r#type: v1::update::Type::Insert.into(), entity: Some(of(value).entity()) };
    let room = fill(&rig, insert);
    assert_eq!(room, 8, "the program says so");
    rig.delete(of(3)).unwrap();
    rig.insert(of(room)).unwrap();
    assert_eq!(refused(rig.insert(of(3))), Code::ResourceExhausted);
}

/// 9.1 `is_const` in a write is INVALID_ARGUMENT, unless what it would change is constant.
#[test]
fn writes_cannot_make_constants() {
    let rig = Rig::new();
    let written = one_of_each(&rig).remove(0);
    let constant = v1::TableEntry { is_const: true, ..written.clone() };
    assert_eq!(refused(rig.insert(constant.clone())), Code::InvalidArgument);
    rig.insert(written).unwrap();
    assert_eq!(refused(rig.modify(constant.clone())), Code::InvalidArgument);
    assert_eq!(refused(rig.delete(constant)), Code::InvalidArgument);
}

/// 9.1 `metadata` and `controller_metadata` come back.
#[test]
fn metadata_comes_back() {
    let rig = Rig::new();
    let written = one_of_each(&rig).remove(0);
    let with = v1::TableEntry { metadata: vec![0, 1, 0xff], controller_metadata: u64::MAX, ..written };
    rig.insert(with.clone()).unwrap();
    assert_eq!(rig.entries(entry(&rig.info, "exact_t")), std::slice::from_ref(&with));
    let changed = v1::TableEntry { metadata: vec![7], controller_metadata: 0, ..with };
    rig.modify(changed.clone()).unwrap();
    assert_eq!(rig.entries(entry(&rig.info, "exact_t")), [changed]);
}

/// — Metadata have 1,024 bytes at most.
#[test]
fn metadata_is_not_without_limit() {
    let rig = Rig::new();
    let written = one_of_each(&rig).remove(0);
    let with = |bytes| v1::TableEntry { metadata: vec![7; bytes], ..written.clone() };
    assert_eq!(rig.insert(with(1_025)).unwrap_err().code, Code::ResourceExhausted);
    rig.insert(with(1_024)).unwrap();
    let group =
        |bytes| v1::MulticastGroupEntry { multicast_group_id: 1, metadata: vec![7; bytes], ..Default::default() };
    assert_eq!(rig.insert(group(1_025)).unwrap_err().code, Code::ResourceExhausted);
    rig.insert(group(1_024)).unwrap();
}

/// 9.1.8 The idle timeout comes back as it was set.
#[test]
fn idle_timeouts_come_back() {
    let rig = Rig::new();
    let of = |idle_timeout_ns| v1::TableEntry {
        idle_timeout_ns,
        ..entry(&rig.info, "idle_t").exact(1, 1).does(call(&rig.info, "NoAction", &[]))
    };
    rig.insert(of(5_000_000_001)).unwrap();
    assert_eq!(rig.entries(entry(&rig.info, "idle_t")), [of(5_000_000_001)]);
    rig.modify(of(0)).unwrap();
    assert_eq!(rig.entries(entry(&rig.info, "idle_t")), [of(0)]);
}

/// 9.1.8 `time_since_last_hit` is in the answer if and only if it is in the request, timeout or not.
#[test]
fn the_time_since_the_last_hit_is_returned_on_request() {
    let rig = Rig::new();
    rig.insert(entry(&rig.info, "idle_t").exact(1, 1).does(call(&rig.info, "NoAction", &[]))).unwrap();
    assert_eq!(rig.entries(entry(&rig.info, "idle_t"))[0].time_since_last_hit, None);
    let ask = v1::TableEntry {
        time_since_last_hit: Some(v1::table_entry::IdleTimeout::default()),
        ..entry(&rig.info, "idle_t")
    };
    let begin = std::time::Instant::now();
    loop {
        let elapsed = rig.entries(ask.clone())[0].time_since_last_hit.expect("it was asked for").elapsed_ns;
        if elapsed >= 15_000_000 {
            break;
        }
        assert!(begin.elapsed() < SOON, "{elapsed}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// 9.1.8 A table without idle timeouts takes neither a timeout nor `time_since_last_hit`: INVALID_ARGUMENT.
/// 9.1.8 `time_since_last_hit` is not written: INVALID_ARGUMENT.
#[test]
fn timeouts_are_for_tables_that_have_them() {
    let rig = Rig::new();
    let hit = Some(v1::table_entry::IdleTimeout::default());
    let exact = one_of_each(&rig).remove(0);
    let wrong = |entry| refused(rig.insert(entry));
    assert_eq!(wrong(v1::TableEntry { idle_timeout_ns: 1, ..exact.clone() }), Code::InvalidArgument);
    assert_eq!(wrong(v1::TableEntry { time_since_last_hit: hit, ..exact }), Code::InvalidArgument);
    let idle = entry(&rig.info, "idle_t").exact(1, 1).does(call(&rig.info, "NoAction", &[]));
    assert_eq!(wrong(v1::TableEntry { time_since_last_hit: hit, ..idle.clone() }), Code::InvalidArgument);
    assert_eq!(wrong(v1::TableEntry { idle_timeout_ns: -1, ..idle }), Code::InvalidArgument);
    let ask = v1::TableEntry { time_since_last_hit: hit, ..entry(&rig.info, "exact_t") };
    assert_eq!(rig.read_code(ask), Code::InvalidArgument);
}

/// 9.1.8 Default entries have no timeout: INVALID_ARGUMENT.
#[test]
fn default_entries_have_no_timeout() {
    let rig = Rig::new();
    let default = entry(&rig.info, "idle_t").default_action().does(call(&rig.info, "NoAction", &[]));
    let timeout = v1::TableEntry { idle_timeout_ns: 1, ..default.clone() };
    assert_eq!(refused(rig.modify(timeout)), Code::InvalidArgument);
    let hit = v1::TableEntry { time_since_last_hit: Some(v1::table_entry::IdleTimeout::default()), ..default };
    assert_eq!(refused(rig.modify(hit)), Code::InvalidArgument);
}
