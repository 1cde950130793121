//! Action profiles and selectors.

use crate::world::{World, byte};
use bits::Bits;
use engine::{ActionCall, ActionSpec, EntryError, GroupMember, TableEntry, WeightedCall};
use ir::KeyValue::Exact;
use ir::ProfileId;

const PROGRAM: &str = "
metadata a: 8
metadata flow: 16
metadata out: 8
metadata was_hit: 1
metadata ran: 32
argument set.v: 8
argument other.v: 8

profile chosen: size 8 hash 16 selector identity
profile plain: size 8 hash 0

action set(v: set.v) body set
action other(v: other.v) body other
action none() body none

table chosen {
  key a: exact 8 = a
  key flow: selector 16 = flow
  action none
  action set
  default none()
  profile chosen
}
table plain {
  key a: exact 8 = a
  action set
  action other default_only
  default set(0xff:8)
  profile plain
}
control chosen {
  block b:
    apply chosen hit was_hit action ran
    return
}
control idle {
  block b:
    return
}
control plain {
  block b:
    apply plain
    return
}
action_body set {
  block b:
    out = set.v
    return
}
action_body other {
  block b:
    out = other.v
    return
}
action_body none {
  block b:
    return
}
";

struct Fixture {
    world: World,
    chosen: ProfileId,
    plain: ProfileId,
}

impl Fixture {
    fn new() -> Self {
        let world = World::new(PROGRAM);
        let mut profiles = world.program.profiles.keys();
        let (chosen, plain) = (profiles.next().unwrap(), profiles.next().unwrap());
        Fixture { world, chosen, plain }
    }

    fn call(&self, arg: u8) -> ActionCall {
        ActionCall { action: self.world.action("set"), args: vec![byte(arg)] }
    }

    fn insert(&mut self, table: &str, action: ActionSpec) -> Result<(), EntryError> {
        let entry = TableEntry { action, ..self.world.entry(vec![Exact(byte(1))], 0, "set", 0) };
        self.world.objects.insert(self.world.table(table), entry)
    }

    /// Returns the table's results for flow numbers 0, 1, 2, ...
    fn flows(&mut self, count: u64) -> Vec<u64> {
        let one = |flow| {
            self.world.run("idle", &[]);
            self.world.set("a", 1);
            self.world.set("flow", flow);
            self.world.go_on("chosen");
            self.world.get("out")
        };
        (0..count).map(one).collect()
    }
}

fn member(member: u32, weight: u32, watch_port: Option<u32>) -> GroupMember {
    GroupMember { member, weight, watch_port }
}

#[test]
fn entries_run_members_and_follow_their_changes() {
    let mut it = Fixture::new();
    let (plain, call) = (it.plain, it.call(5));
    it.world.objects.insert_member(plain, 7, call).unwrap();
    it.insert("plain", ActionSpec::Member(7)).unwrap();
    it.world.run("idle", &[]);
    it.world.set("a", 1);
    it.world.go_on("plain");
    assert_eq!(it.world.get("out"), 5);
    let call = it.call(6);
    it.world.objects.modify_member(plain, 7, call).unwrap();
    it.world.go_on("plain");
    assert_eq!(it.world.get("out"), 6);
    it.world.set("a", 2);
    it.world.go_on("plain");
    assert_eq!(it.world.get("out"), 0xff);
}

#[test]
fn groups_share_flows_by_weight_and_ports_that_are_up() {
    let mut it = Fixture::new();
    let chosen = it.chosen;
    for id in [3, 1, 2] {
        let call = it.call(id as u8 * 0x10);
        it.world.objects.insert_member(chosen, id, call).unwrap();
    }
    let members = vec![member(3, 1, Some(3)), member(1, 1, None), member(2, 1, Some(2))];
    it.world.objects.insert_group(chosen, 9, members, 3).unwrap();
    it.insert("chosen", ActionSpec::Group(9)).unwrap();
    assert_eq!(it.flows(6), [0x10, 0x20, 0x30, 0x10, 0x20, 0x30], "the order is that of the ids");
    assert_eq!((it.world.get("was_hit"), it.world.get("ran")), (1, 1));

    it.world.objects.set_port_up(2, false);
    assert_eq!(it.flows(4), [0x10, 0x30, 0x10, 0x30]);
    it.world.objects.set_port_up(2, true);
    it.world.objects.modify_group(chosen, 9, vec![member(1, 1, None), member(2, 3, Some(2))]).unwrap();
    assert_eq!(it.flows(8), [0x10, 0x20, 0x20, 0x20, 0x10, 0x20, 0x20, 0x20]);

    it.world.objects.modify_group(chosen, 9, vec![]).unwrap();
    assert_eq!(it.flows(2), [0, 0], "an empty group runs nothing");
    assert_eq!((it.world.get("was_hit"), it.world.get("ran")), (1, u64::from(u32::MAX)));
}

#[test]
fn one_shot_groups_need_no_members() {
    let mut it = Fixture::new();
    let shot = |it: &Fixture, arg, weight, watch_port| WeightedCall { call: it.call(arg), weight, watch_port };
    let calls = vec![shot(&it, 1, 2, None), shot(&it, 2, 1, Some(4))];
    it.insert("chosen", ActionSpec::OneShot(calls)).unwrap();
    assert_eq!(it.flows(4), [1, 1, 2, 1]);
    it.world.objects.set_port_up(4, false);
    assert_eq!(it.flows(4), [1, 1, 1, 1]);
}

#[test]
fn wrong_requests_say_why() {
    let mut it = Fixture::new();
    let (chosen, plain) = (it.chosen, it.plain);
    let (chosen_table, call) = (it.world.table("chosen"), it.call(1));
    use EntryError::*;
    assert_eq!(it.insert("chosen", ActionSpec::Direct(call.clone())), Err(NeedsProfile(chosen_table)));
    assert_eq!(it.insert("chosen", ActionSpec::Member(1)), Err(NoSuchMember(1)));
    assert_eq!(it.insert("chosen", ActionSpec::Group(1)), Err(NoSuchGroup(1)));
    assert_eq!(it.insert("plain", ActionSpec::Group(1)), Err(NoSelector));
    assert_eq!(it.insert("plain", ActionSpec::OneShot(vec![])), Err(NoSelector));
    let weightless = WeightedCall { call: call.clone(), weight: 0, watch_port: None };
    assert_eq!(it.insert("chosen", ActionSpec::OneShot(vec![weightless])), Err(BadWeight));

    let other = it.world.action("other");
    let objects = &mut it.world.objects;
    let wrong = ActionCall { action: other, args: vec![byte(1)] };
    assert_eq!(objects.insert_member(plain, 1, wrong), Err(ActionNotInProfile { profile: plain, action: other }));
    let wrong = ActionCall { args: vec![Bits::new(1, 7)], ..call.clone() };
    let width = ArgWidth { action: call.action, param: 0, want: 8, got: 7 };
    assert_eq!(objects.insert_member(plain, 1, wrong), Err(width));
    objects.insert_member(chosen, 1, call.clone()).unwrap();
    assert_eq!(objects.insert_member(chosen, 1, call.clone()), Err(Duplicate));
    assert_eq!(objects.modify_member(chosen, 2, call.clone()), Err(NotFound));
    assert_eq!(objects.delete_member(chosen, 2), Err(NotFound));

    assert_eq!(objects.insert_group(plain, 1, vec![], 0), Err(NoSelector));
    assert_eq!(objects.insert_group(chosen, 1, vec![member(2, 1, None)], 0), Err(NoSuchMember(2)));
    assert_eq!(objects.insert_group(chosen, 1, vec![member(1, 0, None)], 0), Err(BadWeight));
    assert_eq!(objects.insert_group(chosen, 1, vec![member(1, 1, None); 2], 0), Err(Duplicate));
    let large = GroupTooLarge { max: 1, got: 2 };
    assert_eq!(objects.insert_group(chosen, 1, vec![member(1, 1, None); 2], 1), Err(large));
    objects.insert_group(chosen, 1, vec![member(1, 1, None)], 0).unwrap();
    assert_eq!(objects.insert_group(chosen, 1, vec![], 0), Err(Duplicate));
    assert_eq!(objects.delete_member(chosen, 1), Err(InUse(1)));

    it.insert("chosen", ActionSpec::Group(1)).unwrap();
    let objects = &mut it.world.objects;
    assert_eq!(objects.delete_group(chosen, 1), Err(InUse(1)));
    assert_eq!(objects.modify_group(chosen, 1, vec![member(5, 1, None)]), Err(NoSuchMember(5)));
    objects.delete(chosen_table, &[Exact(byte(1))], 0).unwrap();
    objects.delete_group(chosen, 1).unwrap();
    objects.delete_member(chosen, 1).unwrap();
    assert_eq!((objects.members(chosen).count(), objects.groups(chosen).count()), (0, 0));
}

#[test]
fn entries_hold_on_to_what_they_use() {
    let mut it = Fixture::new();
    let chosen = it.chosen;
    for id in [1, 2] {
        let call = it.call(id as u8);
        it.world.objects.insert_member(chosen, id, call).unwrap();
    }
    it.insert("chosen", ActionSpec::Member(1)).unwrap();
    assert_eq!(it.world.objects.delete_member(chosen, 1), Err(EntryError::InUse(1)));
    let table = it.world.table("chosen");
    let entry = it.world.entry(vec![Exact(byte(1))], 0, "set", 0);
    it.world.objects.modify(table, TableEntry { action: ActionSpec::Member(2), ..entry }).unwrap();
    assert_eq!(it.world.objects.delete_member(chosen, 2), Err(EntryError::InUse(1)));
    it.world.objects.delete_member(chosen, 1).unwrap();
    assert_eq!(it.flows(1), [2]);
}
