//! Action profiles: members and groups that come, change and go, weights, and ports that members watch.

use std::sync::Arc;

use bits::Bits;
use bpf::HandOverReason;
use engine::{ActionCall, ActionSpec, GroupMember, Objects, TableEntry, WeightedCall};
use ir::{KeyValue, MatchKind, ProfileId, Program, TableId};
use rng::SplitMix64;

use crate::kernel::InKernel;
use crate::rig::{self, Rig, Way};
use crate::router;
use crate::writer::all_changes_or_none;

const ALGORITHMS: [&str; 5] = ["crc32", "crc16", "csum16", "xor16", "identity"];

fn program(algorithm: &str) -> Arc<Program> {
    let text = include_str!("profiles.p4").replace("/* algorithm */", algorithm);
    rig::compile_text(&text, None).expect("a valid program")
}

fn table(program: &Program, name: &str) -> TableId {
    program.table_named(&format!("MyIngress.{name}")).expect("a table")
}

fn profile(program: &Program, name: &str) -> ProfileId {
    let name = format!("MyIngress.{name}");
    program.profiles.iter().find(|(_, profile)| profile.name == name).expect("a profile").0
}

/// A random call of an action that is in all tables of the profile.
fn call(rng: &mut SplitMix64, program: &Program, profile: &str) -> ActionCall {
    let names = if profile == "pool" { ["set", "join", "NoAction"] } else { ["set", "clear", "NoAction"] };
    let name = rng.pick(&[(5, names[0]), (4, names[1]), (1, names[2])]);
    let is_named = |found: &str| found == name || found == format!("MyIngress.{name}");
    let (action, found) = program.actions.iter().find(|(_, action)| is_named(&action.name)).expect("an action");
    let widths = found.params.iter().map(|param| program.slots[param.slot].width);
    ActionCall { action, args: widths.map(|width| Bits::new(rng.below(1 << width).into(), width)).collect() }
}

fn weight(rng: &mut SplitMix64) -> u32 {
    rng.pick(&[(3, 1), (1, 2), (1, 3), (1, 1000), (1, 1 << 26)])
}

fn watch_port(rng: &mut SplitMix64) -> Option<u32> {
    rng.percent(60).then(|| rng.below(6) as u32)
}

/// Random members of a group, perhaps none.
fn members(rng: &mut SplitMix64, objects: &Objects, profile: ProfileId) -> Vec<GroupMember> {
    let all: Vec<u32> = objects.members(profile).map(|(id, _)| id).collect();
    let kept: Vec<u32> = all.into_iter().filter(|_| rng.percent(50)).collect();
    kept.into_iter().map(|member| GroupMember { member, weight: weight(rng), watch_port: watch_port(rng) }).collect()
}

/// A random action of an entry; it may refer to what does not exist.
fn action(rng: &mut SplitMix64, program: &Program, profile: &str) -> ActionSpec {
    match rng.below(3) {
        0 => ActionSpec::Member(rng.below(8) as u32),
        1 => ActionSpec::Group(rng.below(5) as u32),
        _ => {
            let one = |rng: &mut SplitMix64| WeightedCall {
                call: call(rng, program, profile),
                weight: weight(rng),
                watch_port: watch_port(rng),
            };
            ActionSpec::OneShot((0..rng.below(6)).map(|_| one(rng)).collect())
        }
    }
}

fn entry(rng: &mut SplitMix64, program: &Program, name: &str) -> TableEntry {
    let key = Bits::new(rng.below(4).into(), 8);
    let has_key = name != "first" || program.tables[table(program, name)].keys[0].kind == MatchKind::Exact;
    let (key, priority) = match name {
        "first" => (KeyValue::Exact(key), 0),
        "second" => (KeyValue::Ternary(key, Bits::new(255, 8)), 1),
        _ => {
            let length = 5 + rng.below(4) as u32;
            (KeyValue::Lpm(key.shr(8 - length).shl(8 - length), length), 0)
        }
    };
    let action = action(rng, program, if name == "third" { "plain" } else { "pool" });
    TableEntry {
        keys: if has_key { vec![key] } else { Vec::new() },
        priority,
        action,
        metadata: Vec::new(),
        idle_timeout_ns: 0,
    }
}

/// Makes a random change, which the switch may refuse.
fn change(rng: &mut SplitMix64, program: &Program, objects: &mut Objects) {
    let name = rng.pick(&[(3, "pool"), (1, "plain")]);
    let profile = profile(program, name);
    let (member, group) = (rng.below(8) as u32, rng.below(5) as u32);
    match rng.below(10) {
        0 | 1 => {
            let call = call(rng, program, name);
            _ = objects
                .insert_member(profile, member, call.clone())
                .or_else(|_| objects.modify_member(profile, member, call));
        }
        2 => _ = objects.delete_member(profile, member),
        3 | 4 => {
            let members = members(rng, objects, profile);
            _ = objects
                .insert_group(profile, group, members.clone(), 0)
                .or_else(|_| objects.modify_group(profile, group, members));
        }
        5 => _ = objects.delete_group(profile, group),
        6 => objects.set_port_up(rng.below(6) as u32, rng.percent(60)),
        _ => {
            let name = rng.pick(&[(3, "first"), (2, "second"), (1, "third")]);
            let (table, entry) = (table(program, name), entry(rng, program, name));
            if rng.percent(30) {
                _ = objects.delete(table, &entry.keys, entry.priority);
            } else {
                _ = objects.insert(table, entry.clone()).or_else(|_| objects.modify(table, entry));
            }
        }
    }
    if rng.percent(5) {
        let call = call(rng, program, "pool");
        objects.set_default_action(table(program, "first"), call).expect("it may change");
    }
}

/// Makes as many random changes.
fn changes(seed: u64, count: u64) -> impl Fn(&Program, &mut Objects) {
    move |program, objects| {
        let mut rng = SplitMix64::new(seed);
        (0..count).for_each(|_| change(&mut rng, program, objects));
    }
}

fn packet(rng: &mut SplitMix64) -> Vec<u8> {
    let mut packet: Vec<u8> = (0..30).map(|_| rng.next_u64() as u8).collect();
    packet[0] = rng.below(5) as u8;
    packet
}

/// Runs as many packets in each of these rounds, which begin with random changes.
fn run(program: &Arc<Program>, rounds: u64, packets: u64) -> Rig {
    let mut rng = SplitMix64::new(rounds);
    let mut rig = Rig::new(program, changes(99, 60));
    for round in 0..rounds {
        let count = rng.below(8);
        rig.change(changes(round, count)).expect("the members and entries fit");
        for _ in 0..packets {
            let packet = packet(&mut rng);
            let way = rig.packet(rng.below(4) as u32, &packet);
            assert!(matches!(way, Way::Sent { port: 3, .. }), "round {round}: {way:?}");
        }
    }
    rig
}

#[test]
fn members_and_groups_follow_the_switch() {
    for (algorithm, rounds) in ALGORITHMS.into_iter().zip([300, 80, 80, 80, 80]) {
        run(&program(algorithm), rounds, 12);
    }
}

#[test]
fn a_table_may_have_only_selectors_and_entries_of_its_own() {
    let text = include_str!("profiles.p4").replace("/* algorithm */", "crc16");
    let text = text.replacen("hdr.keys.key: exact;", "", 1);
    let text = text.replace("size = 16;", "entries = { 0x80 &&& 0x80: set(7); 0x40 &&& 0xc0: clear(); }");
    let program = rig::compile_text(&text, None).expect("a valid program");
    let third = &program.tables[table(&program, "third")];
    assert_eq!((third.entries.len(), third.const_entries), (2, false));
    run(&program, 100, 12);
}

#[test]
fn profiles_in_the_kernel_are_profiles() {
    for algorithm in ALGORITHMS {
        let mut rig = run(&program(algorithm), 0, 0);
        rig.change(changes(7, 200)).expect("the members and entries fit");
        let kernel = match InKernel::load(&rig, 1) {
            Ok(kernel) => kernel,
            Err(error) => return testing::skip(&format!("needs root: {error}")),
        };
        let mut rng = SplitMix64::new(4);
        (0..500).for_each(|_| kernel.compare(&rig, 0, &packet(&mut rng)));
        kernel.compare_regions(&rig);
        eprintln!("{algorithm}: {} instructions processed", kernel.verified_instructions());
        assert!(kernel.verified_instructions() < 20_000, "{} instructions", kernel.verified_instructions());
    }
}

#[test]
fn hits_are_those_of_the_entry_and_empty_groups_hit() {
    let write = |program: &Program, objects: &mut Objects| {
        let pool = profile(program, "pool");
        let mut rng = SplitMix64::new(5);
        objects.insert_member(pool, 1, call(&mut rng, program, "pool")).expect("there is room");
        let member = GroupMember { member: 1, weight: 1, watch_port: Some(2) };
        objects.insert_group(pool, 0, Vec::new(), 0).expect("there is room");
        objects.insert_group(pool, 1, vec![member], 0).expect("there is room");
        let actions = [ActionSpec::Group(0), ActionSpec::Group(1), ActionSpec::Member(1), ActionSpec::OneShot(vec![])];
        for (key, action) in (0..).zip(actions) {
            let keys = vec![KeyValue::Exact(Bits::new(key, 8))];
            let entry = TableEntry { keys, action, ..entry(&mut rng, program, "first") };
            objects.insert(table(program, "first"), entry).expect("there is room");
        }
    };
    let mut rig = Rig::new(&program("crc32"), write);
    let ran = |rig: &mut Rig, key: u8| {
        let packet = [&[key][..], &[9; 29]].concat();
        let Way::Sent { data, .. } = rig.packet(0, &packet) else { panic!("it is handed over") };
        data[16]
    };
    let before = [0, 1, 2, 3, 4].map(|key| ran(&mut rig, key));
    rig.change(|_, objects| objects.set_port_up(2, false)).expect("the members fit");
    let after = [0, 1, 2, 3, 4].map(|key| ran(&mut rig, key));
    assert_eq!((before[0], before[3], before[4]), (4, 4, 2), "no action, and the default action");
    assert_eq!((after[1], after[2]), (4, before[2]), "members alone watch no port");
    assert_eq!(before[1], before[2]);
    rig.compare_counts();
}

#[test]
fn groups_without_room_hand_over_until_there_is_room() {
    let program = program("crc16");
    let mut rig = Rig::new(&program, |_, _| ());
    let one_shot = |key: u128, calls: u16, first: u16| {
        move |program: &Program, objects: &mut Objects| {
            let (set, _) = program.actions.iter().find(|(_, action)| action.name == "MyIngress.set").expect("set");
            let of = |value: u16| ActionCall { action: set, args: vec![Bits::new(value.into(), 16)] };
            let calls =
                (first..first + calls).map(|value| WeightedCall { call: of(value), weight: 1, watch_port: None });
            let keys = vec![KeyValue::Exact(Bits::new(key, 8))];
            let action = ActionSpec::OneShot(calls.collect());
            let entry = TableEntry { keys, action, ..entry(&mut SplitMix64::new(1), program, "first") };
            let table = table(program, "first");
            _ = objects.insert(table, entry.clone()).or_else(|_| objects.modify(table, entry));
        }
    };
    let is_fast = |rig: &mut Rig, key: u8| {
        let packet = [&[key][..], &[9; 29]].concat();
        rig.packet(0, &packet) != Way::HandedOver
    };
    // 40 entries may name 40 different calls, however often.
    rig.change(one_shot(1, 30, 0)).expect("a group without room is no error");
    rig.change(one_shot(2, 30, 0)).expect("these are the same calls");
    assert!(is_fast(&mut rig, 1) && is_fast(&mut rig, 2));
    rig.change(one_shot(3, 11, 100)).expect("a group without room is no error");
    assert!(is_fast(&mut rig, 1) && !is_fast(&mut rig, 3) && is_fast(&mut rig, 4));
    for key in [1, 2] {
        rig.change(one_shot(key, 1, 0)).expect("the calls fit");
    }
    assert!((1..4).all(|key| is_fast(&mut rig, key)));
    // A group has at most 128 choices whose port is up.
    let wide = |count: u32| {
        move |program: &Program, objects: &mut Objects| {
            let pool = profile(program, "pool");
            let mut rng = SplitMix64::new(8);
            for id in 0..200 {
                _ = objects.insert_member(pool, id, call(&mut rng, program, "pool"));
            }
            let member = |member| GroupMember { member, weight: 1, watch_port: Some(member % 2) };
            let members: Vec<GroupMember> = (0..count).map(member).collect();
            _ = objects.insert_group(pool, 7, members.clone(), 0).or_else(|_| objects.modify_group(pool, 7, members));
            let keys = vec![KeyValue::Exact(Bits::new(9, 8))];
            let action = ActionSpec::Group(7);
            let entry = TableEntry { keys, action, ..entry(&mut SplitMix64::new(1), program, "first") };
            _ = objects.insert(table(program, "first"), entry);
        }
    };
    for (count, fits) in [(128, true), (129, false), (128, true), (200, false)] {
        rig.change(wide(count)).expect("a large group is no error");
        assert_eq!(is_fast(&mut rig, 9), fits, "{count} members");
    }
    rig.change(|_, objects| objects.set_port_up(1, false)).expect("the members fit");
    assert!(is_fast(&mut rig, 9), "100 members are left");
    // What a group took is free again.
    for round in 0..300 {
        rig.change(wide(100 + round % 100)).expect("the members fit");
        assert!(is_fast(&mut rig, 9), "round {round}");
    }
}

/// Gives packets with key 7 a number twice: by a member, which a port makes the only one of its group, and by an entry.
fn write_number(program: &Program, objects: &mut Objects, number: u64) {
    let (pool, parity) = (profile(program, "pool"), number % 2);
    let action = |name: &str| program.actions.iter().find(|(_, action)| action.name == name).expect("an action").0;
    let set = ActionCall { action: action("MyIngress.set"), args: vec![Bits::new(number.into(), 16)] };
    let args = vec![Bits::new(u128::from(number) >> 8, 8), Bits::new(u128::from(number) & 255, 8)];
    let join = ActionCall { action: action("MyIngress.join"), args };
    if number == 0 {
        (0..2).for_each(|id| objects.insert_member(pool, id, set.clone()).expect("there is room"));
        let member = |member| GroupMember { member, weight: 1, watch_port: Some(member) };
        objects.insert_group(pool, 1, vec![member(0), member(1)], 0).expect("there is room");
        let keys = vec![KeyValue::Exact(Bits::new(7, 8))];
        let (action, metadata) = (ActionSpec::Group(1), Vec::new());
        let entry = TableEntry { keys, priority: 0, action, metadata, idle_timeout_ns: 0 };
        objects.insert(table(program, "first"), entry).expect("there is room");
    }
    objects.modify_member(pool, parity as u32, set).expect("it is there");
    (0..2).for_each(|port| objects.set_port_up(port, u64::from(port) == parity));
    let one_shot = ActionSpec::OneShot(vec![WeightedCall { call: join, weight: 1, watch_port: None }]);
    let keys = vec![KeyValue::Ternary(Bits::new(7, 8), Bits::new(7, 8))];
    let entry = TableEntry { keys, priority: 1, action: one_shot, metadata: Vec::new(), idle_timeout_ns: 0 };
    let second = table(program, "second");
    objects.insert(second, entry.clone()).or_else(|_| objects.modify(second, entry)).expect("there is room");
}

#[test]
fn a_packet_sees_members_ports_and_entries_of_one_update() {
    let packet = [&[7][..], &[0; 29]].concat();
    let numbers = |packet: &[u8]| [18, 20].map(|at| u32::from(u16::from_be_bytes([packet[at], packet[at + 1]])));
    all_changes_or_none(&program("crc32"), write_number, &packet, numbers);
}

/// A program whose groups hand over.
fn run_without_groups(program: &Arc<Program>) {
    let mut rig = Rig::new(program, |program, objects| {
        let pool = profile(program, "pool");
        objects.insert_member(pool, 1, call(&mut SplitMix64::new(5), program, "pool")).expect("there is room");
        objects.insert_group(pool, 1, Vec::new(), 0).expect("there is room");
        let member = GroupMember { member: 1, weight: 1, watch_port: None };
        objects.insert_group(pool, 2, vec![member], 0).expect("there is room");
        for (key, action) in [(1, ActionSpec::Member(1)), (2, ActionSpec::Group(1)), (3, ActionSpec::Group(2))] {
            let keys = vec![KeyValue::Exact(Bits::new(key, 8))];
            let entry = TableEntry { keys, action, ..entry(&mut SplitMix64::new(1), program, "first") };
            objects.insert(table(program, "first"), entry).expect("there is room");
        }
    });
    let fast = [1, 2, 3, 4].map(|key| rig.packet(0, &[&[key][..], &[9; 29]].concat()) != Way::HandedOver);
    assert_eq!(fast, [true, true, false, true]);
    assert!(rig.compiled.hand_overs.iter().any(|one| one.reason == HandOverReason::Profile));
}

#[test]
fn custom_hashes_and_wide_selectors_hand_over_groups_only() {
    run_without_groups(&program("crc32_custom"));
    let text = include_str!("profiles.p4").replace("/* algorithm */", "crc32");
    let product = "3 * (hdr.keys.c ++ hdr.keys.d): selector @name(\"wide\");";
    let text = text.replace("hdr.keys.c: selector;", product).replace("hdr.keys.d: selector;", "");
    run_without_groups(&rig::compile_text(&text, None).expect("a valid program"));
}

#[test]
fn wide_selectors_stay() {
    let text = include_str!("profiles.p4").replace("/* algorithm */", "crc32");
    let wide = "hdr.keys.c ++ hdr.keys.d: selector @name(\"wide\");";
    let text = text.replace("hdr.keys.c: selector;", wide).replace("hdr.keys.d: selector;", "");
    run(&rig::compile_text(&text, None).expect("a valid program"), 40, 12);
}

#[test]
fn corrupted_profiles_misroute_but_never_fault_or_hang() {
    crate::region::corrupt(&run(&program("crc16"), 0, 0), packet);
}

#[test]
fn examples_with_groups_stay_in_the_kernel() {
    for path in ["examples/load-balancer/balancer.p4", "examples/router-pod/pod.p4"] {
        let compiled = Rig::new(&rig::program(path), |_, _| ()).compiled;
        assert!(compiled.hand_overs.iter().all(|one| one.reason != HandOverReason::Profile), "{path}");
        let code = compiled.encode(&rig::links(0), true).expect("code");
        eprintln!("{path}: {} instructions, {:?}", code.len(), compiled.hand_overs);
    }
}

/// Servers 10.1.0.1 to 10.1.0.3 of a service at 10.0.0.1, each behind the port with its number.
fn write_balancer(program: &Program, objects: &mut Objects) {
    let action = |name: &str| program.actions.iter().find(|(_, action)| action.name == name).expect("an action").0;
    let pool = program.profiles.keys().next().expect("a profile");
    let routes = program.table_named("BalanceIngress.routes").expect("a table");
    let address = |number: u32| Bits::new(u128::from(0x0a01_0000 + number), 32);
    for number in 1..4 {
        let to_server = ActionCall { action: action("BalanceIngress.to_server"), args: vec![address(number)] };
        objects.insert_member(pool, number, to_server).expect("there is room");
        let args = vec![Bits::new(number.into(), 9), Bits::new(7, 48), Bits::new(8, 48)];
        let keys = vec![KeyValue::Lpm(address(number), 32)];
        let route = TableEntry::new(keys, 0, action("BalanceIngress.forward"), args);
        objects.insert(routes, route).expect("there is room");
    }
    let member = |member| GroupMember { member, weight: member, watch_port: Some(member) };
    objects.insert_group(pool, 1, (1..4).map(member).collect(), 0).expect("there is room");
    let keys = vec![KeyValue::Exact(Bits::new(0x0a00_0001, 32))];
    let (action, metadata) = (ActionSpec::Group(1), Vec::new());
    let service = TableEntry { keys, priority: 0, action, metadata, idle_timeout_ns: 0 };
    objects.insert(program.table_named("BalanceIngress.services").expect("a table"), service).expect("there is room");
}

#[test]
fn flows_go_to_servers_by_weight_while_their_ports_are_up() {
    let mut rig = Rig::new(&rig::program("examples/load-balancer/balancer.p4"), write_balancer);
    let kernel = InKernel::load(&rig, 1);
    let mut rng = SplitMix64::new(6);
    let flow = |rng: &mut SplitMix64| {
        let mut packet = router::packet_to([10, 0, 0, 1]);
        packet[34..38].copy_from_slice(&(rng.next_u64() as u32).to_be_bytes());
        packet
    };
    let mut servers = |rig: &mut Rig| {
        let mut counts = [0; 4];
        for _ in 0..600 {
            let Way::Sent { port, .. } = rig.packet(0, &flow(&mut rng)) else { panic!("it leaves the kernel") };
            counts[port as usize] += 1;
        }
        counts
    };
    let [_, one, two, three] = servers(&mut rig);
    assert!(
        (60..140).contains(&one) && (150..250).contains(&two) && (250..350).contains(&three),
        "{one} {two} {three}"
    );
    rig.change(|_, objects| objects.set_port_up(3, false)).expect("the members fit");
    let [_, one, two, three] = servers(&mut rig);
    assert!((150..250).contains(&one) && two == 600 - one && three == 0, "{one} {two} {three}");
    rig.change(|_, objects| objects.set_port_up(3, true)).expect("the members fit");
    let Ok(kernel) = kernel else { return testing::skip("needs root") };
    (0..300).for_each(|_| kernel.compare(&rig, 0, &flow(&mut rng)));
    eprintln!("{} instructions processed", kernel.verified_instructions());
}
