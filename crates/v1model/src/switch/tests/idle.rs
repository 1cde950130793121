//! Idle timeouts.

use ::switch::{Device, Frame, Notification, Time};
use bits::Bits;
use engine::TableEntry;
use ir::KeyValue;

use super::traced::{packet, router};
use crate::Switch;

/// Advances the time and returns the prefixes that became idle.
fn wait(switch: &mut Switch, now_ms: u64) -> Vec<String> {
    switch.step(Time::from_ms(now_ms), &mut Vec::new(), &mut Vec::new());
    let reported = switch.take_notifications().into_iter().map(|notification| match notification {
        Notification::IdleTimeout { entry, time, .. } => match &entry.keys[0] {
            KeyValue::Lpm(value, _) => format!("{:x} at {time}", value.low_u64()),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    });
    reported.collect()
}

#[test]
fn an_entry_without_hits_is_reported_each_time_its_timeout_is_over() {
    let mut switch = router(|text| text.replace("size 1024", "size 1024\n  idle_timeout"));
    assert_eq!(switch.next_event(), None);
    let table = switch.program().table_named("MyIngress.ipv4_lpm").expect("the router has its table");
    let drop = switch.program().tables[table].actions[1].action;
    let key = |net: u128| vec![KeyValue::Lpm(Bits::new(0x0a00_0000 | net << 8, 32), 24)];
    for net in [5, 6] {
        let entry = TableEntry { idle_timeout_ns: 2_500_000_000, ..TableEntry::new(key(net), 0, drop, Vec::new()) };
        switch.objects_mut().insert(table, entry).expect("the entry fits");
    }
    assert_eq!(switch.next_event(), Some(Time::from_ms(1_000)));
    assert_eq!(wait(&mut switch, 1_000), [""; 0]);
    switch.step(Time::from_ms(1_500), &mut vec![Frame::new(0, packet(5))], &mut Vec::new());
    assert_eq!(wait(&mut switch, 3_000), ["a000600 at 3.000000s"]);
    assert_eq!(wait(&mut switch, 4_000), ["a000500 at 4.000000s"]);
    assert_eq!(wait(&mut switch, 5_000), [""; 0]);
    // A hit restarts the timeout.
    switch.step(Time::from_ms(5_500), &mut vec![Frame::new(0, packet(5))], &mut Vec::new());
    let mut reported = wait(&mut switch, 9_000);
    reported.sort();
    assert_eq!(reported, ["a000500 at 9.000000s", "a000600 at 9.000000s"]);
    assert_eq!(wait(&mut switch, 11_000), [""; 0]);
    // Without entries that age there is no sweep.
    for net in [5, 6] {
        switch.objects_mut().delete(table, &key(net), 0).expect("the entry is there");
    }
    assert_eq!(wait(&mut switch, 20_000), [""; 0]);
    assert_eq!(switch.next_event(), None);
}
