//! Memory servers that join and leave a running switch: single changes, and random ones against a model.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use elastic_switch::{MembershipError, ServerState};
use rng::SplitMix64;
use v1model::Executor;

use crate::random::{History, Traffic};
use crate::rig::{Rig, RigSettings};
use crate::tables::in_all_ways;

const NONE: u16 = 0xffff;

/// Number of entries of table `one`.
const KEYS: u16 = 200;

/// Tables that take many WRITEs to fill.
fn large() -> RigSettings {
    RigSettings { entries: 4096, ..RigSettings::default() }
}

/// Returns a rig whose table `one` has entries, and whose servers have them.
fn filled(settings: RigSettings) -> Rig {
    let mut rig = Rig::new(settings);
    (0..KEYS).for_each(|key| rig.write("one", key, &[key + 1000]));
    rig.run_ms(50);
    assert!(is_settled(&rig));
    rig
}

fn is_settled(rig: &Rig) -> bool {
    rig.switch.counts().iter().all(|counts| counts.is_settled) && !rig.switch.is_changing_servers()
}

/// Looks up all keys, and checks that each has the value that was written last.
fn check_all(rig: &mut Rig, value: impl Fn(u16) -> u16) {
    rig.take_left();
    for key in 0..KEYS {
        rig.send(key, key);
        rig.run_until(rig.now.after_ns(20_000));
    }
    rig.run_ms(100);
    let mut left = rig.take_left();
    left.sort_unstable();
    let expected: Vec<_> = (0..KEYS).map(|key| (key, value(key), NONE)).collect();
    assert_eq!(left, expected);
}

/// Sends packets, and changes an entry now and then, until the servers do not change any more.
fn run_through_change(rig: &mut Rig) -> BTreeMap<u16, u16> {
    let mut written = BTreeMap::new();
    let mut step = 0;
    while rig.switch.is_changing_servers() {
        let key = step % KEYS;
        rig.send(step, key);
        if step.is_multiple_of(3) {
            written.insert(key, step);
            rig.write("one", key, &[step]);
        }
        rig.run_until(rig.now.after_ns(1_500));
        step += 1;
        assert!(step < 20_000, "the change does not end");
    }
    assert!(step > 30, "{step} steps are too few to show anything");
    rig.run_ms(20);
    assert_eq!(rig.left.len(), usize::from(step), "no packet is lost");
    written
}

fn expect_dropped_none(rig: &Rig) {
    for reason in ["no-server", "no-answer", "queue-full", "stopped", "not-ready"] {
        assert_eq!(rig.dropped(&format!("table.{reason}")), 0, "{reason}");
    }
}

#[test]
fn a_server_that_joins_is_filled_and_then_serves() {
    in_all_ways(RigSettings { servers: 1, spares: 1, ..large() }, |rig| {
        let mut rig = filled(rig.settings);
        rig.add(1).unwrap();
        assert_eq!((rig.state(0), rig.state(1)), (Some(ServerState::Serving), Some(ServerState::Joining)));
        let written = run_through_change(&mut rig);
        assert_eq!((rig.state(0), rig.state(1)), (Some(ServerState::Serving), Some(ServerState::Serving)));
        expect_dropped_none(&rig);
        assert!(is_settled(&rig));
        let value = |key| written.get(&key).copied().unwrap_or(key + 1000);
        check_all(&mut rig, value);
        // Each entry is on both of them now, with the changes of that time.
        for server in [0, 1] {
            if !rig.is_running(1 - server) {
                rig.set_running(1 - server, true);
                rig.run_ms(200);
            }
            rig.set_running(server, false);
            check_all(&mut rig, value);
        }
        expect_dropped_none(&rig);
    });
}

#[test]
fn a_server_that_leaves_serves_until_the_others_do_and_gets_its_memory_back() {
    in_all_ways(RigSettings { servers: 3, ..large() }, |rig| {
        let mut rig = filled(rig.settings);
        rig.remove(1).unwrap();
        assert_eq!(rig.state(1), Some(ServerState::Leaving));
        let before = rig.reads(1);
        let written = run_through_change(&mut rig);
        assert!(rig.reads(1) > before, "it served meanwhile");
        assert_eq!((rig.state(1), rig.lent(1)), (None, (0, 0)));
        assert!(rig.lent(0).0 == 2 && rig.lent(2).0 == 2, "others have one connection for each table again");
        let (frames, reads) = (rig.exchanged[&(true, 1)], rig.reads(1));
        rig.set_running(1, false);
        let value = |key| written.get(&key).copied().unwrap_or(key + 1000);
        check_all(&mut rig, value);
        assert_eq!((rig.exchanged[&(true, 1)], rig.reads(1)), (frames, 0), "{reads}: nothing is sent to it");
        expect_dropped_none(&rig);
        // The others have two copies.
        rig.set_running(0, false);
        check_all(&mut rig, value);
        expect_dropped_none(&rig);
    });
}

#[test]
fn a_server_can_replace_the_only_one() {
    let mut rig = filled(RigSettings { servers: 1, spares: 1, ..large() });
    assert_eq!(rig.remove(0), Err(MembershipError::Last(Ipv4Addr::new(10, 9, 0, 1))));
    rig.add(1).unwrap();
    rig.remove(0).unwrap();
    let written = run_through_change(&mut rig);
    rig.set_running(0, false);
    check_all(&mut rig, |key| written.get(&key).copied().unwrap_or(key + 1000));
    expect_dropped_none(&rig);
    // It comes back.
    rig.set_running(0, true);
    rig.add(0).unwrap();
    rig.run_ms(100);
    assert!(is_settled(&rig) && rig.state(0) == Some(ServerState::Serving));
}

#[test]
fn a_change_waits_for_servers_that_do_not_answer_and_can_be_taken_back() {
    let mut rig = filled(RigSettings { servers: 2, spares: 1, ..large() });
    let counts = |rig: &Rig| rig.switch.server_counts();
    rig.set_running(2, false);
    rig.add(2).unwrap();
    rig.run_ms(100);
    assert_eq!((rig.state(2), counts(&rig)[2].connections), (Some(ServerState::Joining), 0));
    assert!(counts(&rig)[2].missing_bytes > 0 && counts(&rig)[2].held_bytes == 0);
    check_all(&mut rig, |key| key + 1000);
    assert_eq!(rig.reads(2), 0);
    rig.remove(2).unwrap();
    rig.run_ms(1);
    assert_eq!((rig.state(2), rig.switch.is_changing_servers()), (None, false));
    // Also while it is filled: it stops in the middle.
    rig.set_running(2, true);
    rig.add(2).unwrap();
    for step in 0.. {
        assert!(step < 20_000, "it is not filled");
        if rig.lent(2).0 == 2 && counts(&rig)[2].held_bytes > 0 {
            break;
        }
        rig.run_until(rig.now.after_ns(1_000));
    }
    assert!(rig.switch.is_changing_servers());
    rig.set_running(2, false);
    rig.run_ms(100);
    assert_eq!(rig.state(2), Some(ServerState::Joining));
    check_all(&mut rig, |key| key + 1000);
    let blocks = |rig: &Rig| -> u64 { rig.switch.counts().iter().map(|counts| counts.table_counts.blocks).sum() };
    let before = blocks(&rig);
    rig.remove(2).unwrap();
    rig.run_ms(1);
    assert_eq!((rig.state(2), rig.switch.is_changing_servers()), (None, false));
    assert_eq!(blocks(&rig), before, "the earlier copies are complete");
    check_all(&mut rig, |key| key + 1000);
    assert_eq!((rig.lent(0).0, rig.lent(1).0), (2, 2));
    expect_dropped_none(&rig);
}

/// Runs until a server has received a part of its share.
fn run_until_filling(rig: &mut Rig, server: usize) {
    let held =
        |rig: &Rig| rig.switch.server_counts().iter().map(|counts| counts.held_bytes).collect::<Vec<_>>()[server];
    while held(rig) == 0 {
        rig.run_until(rig.now.after_ns(1_000));
    }
    assert_eq!((rig.state(server), rig.switch.is_changing_servers()), (Some(ServerState::Joining), true));
}

#[test]
fn a_server_joins_only_when_it_has_its_share_even_if_the_others_lose_theirs() {
    let mut rig = filled(RigSettings { servers: 1, spares: 1, ..large() });
    rig.add(1).unwrap();
    run_until_filling(&mut rig, 1);
    // The only complete copies are lost, and so the earlier division ends.
    rig.set_running(0, false);
    // A READ that nobody answers shows that the server is gone.
    rig.send(0, 0);
    rig.run_ms(1_000);
    assert_eq!((rig.state(0), rig.state(1)), (Some(ServerState::Serving), Some(ServerState::Joining)));
    assert!(rig.switch.is_changing_servers());
    rig.set_running(0, true);
    rig.run_ms(25_000);
    assert!(is_settled(&rig));
    assert_eq!((rig.state(0), rig.state(1)), (Some(ServerState::Serving), Some(ServerState::Serving)));
    check_all(&mut rig, |key| key + 1000);
}

#[test]
fn changes_in_a_row_take_the_memory_of_two_shares() {
    let mut rig = filled(RigSettings { servers: 1, spares: 3, ..large() });
    // A share of two servers has some cells more than the whole table.
    let two_shares = rig.lent(0).1 * 201 / 100;
    for server in 1..4 {
        rig.add(server).unwrap();
        while rig.lent(server).0 < 2 {
            rig.run_until(rig.now.after_ns(1_000));
            assert!(rig.lent(0).0 <= 4 && rig.lent(0).1 <= two_shares, "{server}: {:?} of {two_shares}", rig.lent(0));
        }
        run_until_filling(&mut rig, server);
        (1..=server).for_each(|server| assert_eq!(rig.state(server), Some(ServerState::Joining)));
    }
    run_through_change(&mut rig);
    (0..4).for_each(|server| assert_eq!(rig.state(server), Some(ServerState::Serving)));
    (0..4).for_each(|server| assert_eq!(rig.lent(server).0, 2, "server {server}"));
    expect_dropped_none(&rig);
}

#[test]
fn wrong_changes_are_refused() {
    let mut rig = filled(RigSettings { servers: 2, spares: 1, ..large() });
    let address = |server: u8| Ipv4Addr::new(10, 9, 0, server + 1);
    assert_eq!(rig.add(0), Err(MembershipError::Present(address(0))));
    assert_eq!(rig.remove(2), Err(MembershipError::Unknown(address(2))));
    assert_eq!(rig.add(7), Err(MembershipError::Port(switch::PortId(10))));
    rig.add(2).unwrap();
    assert_eq!(rig.add(2), Err(MembershipError::Present(address(2))));
    rig.remove(0).unwrap();
    assert_eq!(rig.remove(0), Err(MembershipError::Unknown(address(0))));
    rig.remove(1).unwrap();
    assert_eq!(rig.remove(2), Err(MembershipError::Last(address(2))));
    rig.run_ms(100);
    assert_eq!((rig.state(0), rig.state(1), rig.state(2)), (None, None, Some(ServerState::Serving)));
}

/// Properties of a random run.
fn draw(seed: u64, random: &mut SplitMix64) -> RigSettings {
    let servers = 1 + random.below(3) as usize;
    RigSettings {
        executor: if seed.is_multiple_of(2) { Executor::Interpreter } else { Executor::Jit },
        in_place: random.below(2) == 0,
        servers,
        spares: 4 - servers,
        cache: random.below(4) as u32,
        loss_per_mille: [0, 10, 50][random.below(3) as usize],
        is_reordered: random.below(2) == 0,
        seed,
        ..RigSettings::default()
    }
}

fn run(seed: u64) {
    let mut random = SplitMix64::new(seed);
    // In every third run, nothing but planned changes happens, and no packet may be lost.
    let is_planned = seed.is_multiple_of(3);
    let mut settings = draw(seed, &mut random);
    if is_planned {
        (settings.loss_per_mille, settings.is_reordered) = (0, false);
    }
    let all = (settings.servers + settings.spares) as u64;
    let mut rig = Rig::new(settings);
    let mut used: Vec<bool> = (0..all).map(|server| server < settings.servers as u64).collect();
    rig.run_ms(30);
    let mut traffic = Traffic::new(1 + random.below(12));
    for _ in 0..500 {
        match random.below(24) {
            0..=11 => traffic.send(&mut rig, &mut random),
            12..=16 => traffic.write(&mut rig, &mut random),
            17..=19 => rig.run_until(rig.now.after_ns(random.below(300_000))),
            20..=22 => {
                let server = random.below(all) as usize;
                let is_last = used.iter().filter(|used| **used).count() == 1;
                let result = if used[server] { rig.remove(server) } else { rig.add(server) };
                assert_eq!(result.is_err(), used[server] && is_last, "seed {seed}: {result:?}");
                used[server] ^= result.is_ok();
                rig.run_until(rig.now.after_ns(random.below(1_000_000)));
            }
            _ if is_planned => {}
            _ => {
                rig.set_running(random.below(all) as usize, random.below(3) > 0);
                rig.run_ms(random.below(20));
            }
        }
    }
    (0..all as usize).filter(|server| !rig.is_running(*server)).collect::<Vec<_>>().into_iter().for_each(|server| {
        rig.set_running(server, true);
    });
    // A switch notices within 10 s that a server has restarted.
    rig.run_ms(25_000);
    traffic.check(seed, &rig);
    if is_planned {
        expect_dropped_none(&rig);
    }
    assert!(is_settled(&rig), "seed {seed}: {:?}", rig.switch.server_counts());
    for (server, is_used) in used.iter().enumerate() {
        let state = is_used.then_some(ServerState::Serving);
        assert_eq!(rig.state(server), state, "seed {seed}: server {server}");
        // A frame that releases memory may be lost, or may be overtaken by the request before it.
        let is_exact = settings.loss_per_mille == 0 && !settings.is_reordered && is_planned;
        let connections = if *is_used { 2 } else { 0 };
        assert!(!is_exact || rig.lent(server).0 == connections, "seed {seed}: {:?}", rig.lent(server));
    }
    check_entries(seed, &mut rig, &traffic);
}

/// Checks that controllers and packets see all that was written.
fn check_entries(seed: u64, rig: &mut Rig, traffic: &Traffic) {
    let (one, two) = (&traffic.one, &traffic.two);
    let last = |history: &History, key| history.0.get(&key).and_then(|all| all.last()).map_or(NONE, |last| last.1);
    for key in 0..traffic.keys as u16 {
        for (name, history) in [("one", one), ("two", two)] {
            let read = rig.read(name, key).map_or(NONE, |values| values[0]);
            assert_eq!(read, last(history, key), "seed {seed}: {name} {key}");
        }
        rig.take_left();
        rig.send(key, key);
        rig.run_ms(200);
        let first = last(one, key);
        let second = if first == NONE { NONE } else { last(two, first) };
        let drops = ["no-server", "no-answer", "queue-full", "links-busy"]
            .map(|reason| rig.dropped(&format!("table.{reason}")));
        assert_eq!(rig.take_left(), [(key, first, second)], "seed {seed}: key {key}, drops {drops:?}");
    }
}

#[test]
fn answers_are_right_while_servers_join_leave_and_die() {
    (0..testing::number("TRIPLANE_MEMBERSHIP_SEEDS", 100)).for_each(run);
}
