//! `@refers_to`: entries that may be written, and entries that must not be removed.

use diagnostics::{Diagnostics, SourceMap};
use p4_constraints::{ReferenceEntity, References};
use p4runtime_proto::config::match_field::{Match, MatchType};
use p4runtime_proto::config::{Action, MatchField, P4Info, Preamble, Table, action::Param};
use p4runtime_proto::v1::field_match::{Exact, FieldMatchType, Optional};
use p4runtime_proto::v1::{self, FieldMatch, TableEntry};

const NEIGHBOR: u32 = 1;
const NEXTHOP: u32 = 2;
const ROUTE: u32 = 3;
const SET_NEXTHOP: u32 = 10;
const SET_ROUTE: u32 = 11;
const REPLICATE: u32 = 12;

fn named(id: u32, name: &str) -> Option<Preamble> {
    Some(Preamble { id, name: format!("C.{name}"), alias: name.to_owned(), ..Preamble::default() })
}

fn field(id: u32, name: &str, kind: MatchType, annotations: &[&str]) -> MatchField {
    let annotations = annotations.iter().map(|text| (*text).to_owned()).collect();
    let kind = Some(Match::MatchType(kind.into()));
    MatchField { id, name: name.to_owned(), bitwidth: 16, r#match: kind, annotations, ..MatchField::default() }
}

fn param(id: u32, name: &str, annotations: &[&str]) -> Param {
    let annotations = annotations.iter().map(|text| (*text).to_owned()).collect();
    Param { id, name: name.to_owned(), bitwidth: 16, annotations, ..Param::default() }
}

/// Creates a P4Info. Neighbours have an interface and an address, which next hops refer to together. Routes refer to
/// next hops by their action and, optionally, by their match.
fn program() -> P4Info {
    let table = |id, name, match_fields| Table { preamble: named(id, name), match_fields, ..Table::default() };
    let action = |id, name, params| Action { preamble: named(id, name), params };
    P4Info {
        tables: vec![
            table(
                NEIGHBOR,
                "neighbor",
                vec![field(1, "rif", MatchType::Exact, &[]), field(2, "ip", MatchType::Exact, &[])],
            ),
            table(NEXTHOP, "nexthop", vec![field(1, "id", MatchType::Exact, &[])]),
            table(
                ROUTE,
                "route",
                vec![
                    field(1, "dst", MatchType::Exact, &[]),
                    field(2, "hop", MatchType::Optional, &["@refers_to(nexthop , id)"]),
                ],
            ),
        ],
        actions: vec![
            action(
                SET_NEXTHOP,
                "set_nexthop",
                vec![
                    param(1, "ip", &["@refers_to(C . neighbor , ip)"]),
                    param(2, "rif", &["@refers_to(C . neighbor , rif)"]),
                ],
            ),
            action(SET_ROUTE, "set_route", vec![param(1, "hop", &["@refers_to(nexthop , id)"])]),
            action(
                REPLICATE,
                "replicate",
                vec![param(1, "group", &["@refers_to(multicast_group_table , multicast_group_id)"])],
            ),
        ],
        ..P4Info::default()
    }
}

fn references() -> References {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let references = References::new(&program(), &mut map, &mut diagnostics);
    assert!(diagnostics.is_empty(), "{}", diagnostics.render(&map, false));
    references
}

/// Creates an entry of `table` with exact values, and an action with arguments.
fn entry(table_id: u32, keys: &[u8], action: Option<(u32, &[u8])>) -> TableEntry {
    let exact = |(at, value): (usize, &u8)| FieldMatch {
        field_id: at as u32 + 1,
        field_match_type: Some(FieldMatchType::Exact(Exact { value: vec![0, *value] })),
    };
    let action =
        action.map(|(id, values)| v1::TableAction { r#type: Some(v1::table_action::Type::Action(call(id, values))) });
    TableEntry { table_id, r#match: keys.iter().enumerate().map(exact).collect(), action, ..TableEntry::default() }
}

fn call(action_id: u32, values: &[u8]) -> v1::Action {
    let argument = |(at, value): (usize, &u8)| v1::action::Param { param_id: at as u32 + 1, value: vec![*value] };
    v1::Action { action_id, params: values.iter().enumerate().map(argument).collect() }
}

/// Returns the key of an entry: its table and its match.
fn key(entry: &TableEntry) -> Vec<u8> {
    format!("{} {:?} {}", entry.table_id, entry.r#match, entry.is_default_action).into_bytes()
}

fn put(references: &mut References, key: &[u8], item: ReferenceEntity<'_>) -> Result<(), String> {
    let entity_references = references.entity_references(item);
    references.replace(key, Some(entity_references)).map(drop).map_err(|broken| broken.to_string())
}

/// Inserts or modifies an entry.
fn insert(references: &mut References, entry: &TableEntry) -> Result<(), String> {
    put(references, &key(entry), ReferenceEntity::Entry(entry))
}

fn delete(references: &mut References, entry: &TableEntry) -> Result<(), String> {
    references.replace(&key(entry), None).map(drop).map_err(|broken| broken.to_string())
}

#[test]
fn referenced_entries_must_exist() {
    let mut references = references();
    let hop = entry(NEXTHOP, &[1], Some((SET_NEXTHOP, &[9, 5])));
    assert_eq!(
        insert(&mut references, &hop).unwrap_err(),
        "action `C.set_nexthop` refers to an entry that does not exist: table `C.neighbor` with `rif`, `ip` = 0x05, 0x09"
    );
    // Both values exist, but not in the same entry.
    insert(&mut references, &entry(NEIGHBOR, &[5, 8], None)).unwrap();
    insert(&mut references, &entry(NEIGHBOR, &[4, 9], None)).unwrap();
    assert!(insert(&mut references, &hop).is_err());
    insert(&mut references, &entry(NEIGHBOR, &[5, 9], None)).unwrap();
    insert(&mut references, &hop).unwrap();
    insert(&mut references, &entry(ROUTE, &[7], Some((SET_ROUTE, &[1])))).unwrap();
    assert!(insert(&mut references, &entry(ROUTE, &[8], Some((SET_ROUTE, &[2])))).is_err());
}

#[test]
fn referenced_entries_cannot_be_deleted() {
    let mut references = references();
    let (hop, other) = (entry(NEXTHOP, &[1], None), entry(NEXTHOP, &[2], None));
    let routes = [7, 8].map(|dst| entry(ROUTE, &[dst], Some((SET_ROUTE, &[1]))));
    insert(&mut references, &hop).unwrap();
    routes.iter().for_each(|route| insert(&mut references, route).unwrap());
    assert_eq!(
        delete(&mut references, &hop).unwrap_err(),
        "this entry is in use by 2 references: table `C.nexthop` with `id` = 0x01"
    );
    delete(&mut references, &routes[0]).unwrap();
    assert!(delete(&mut references, &hop).is_err());
    // The next hop can be removed once the route refers to another one.
    insert(&mut references, &other).unwrap();
    let moved = entry(ROUTE, &[8], Some((SET_ROUTE, &[2])));
    insert(&mut references, &moved).unwrap();
    delete(&mut references, &hop).unwrap();
    assert!(delete(&mut references, &other).is_err());
}

#[test]
fn a_refused_write_leaves_nothing_behind() {
    let mut references = references();
    let hop = entry(NEXTHOP, &[1], None);
    insert(&mut references, &hop).unwrap();
    let wrong = entry(ROUTE, &[7], Some((SET_ROUTE, &[2])));
    let route = entry(ROUTE, &[7], Some((SET_ROUTE, &[1])));
    insert(&mut references, &route).unwrap();
    for _ in 0..3 {
        assert!(insert(&mut references, &wrong).is_err());
        assert!(delete(&mut references, &hop).is_err());
    }
    delete(&mut references, &route).unwrap();
    delete(&mut references, &hop).unwrap();
    assert!(insert(&mut references, &route).is_err());
}

#[test]
fn an_optional_match_refers_only_where_it_is_there() {
    let mut references = references();
    let mut route = entry(ROUTE, &[7], None);
    insert(&mut references, &route).unwrap();
    let hop = FieldMatchType::Optional(Optional { value: vec![1] });
    route.r#match.push(FieldMatch { field_id: 2, field_match_type: Some(hop) });
    assert_eq!(
        insert(&mut references, &route).unwrap_err(),
        "table `C.route` refers to an entry that does not exist: table `C.nexthop` with `id` = 0x01"
    );
}

#[test]
fn members_one_shots_and_groups_count() {
    use v1::table_action::Type;
    let mut references = references();
    let member = v1::ActionProfileMember { action: Some(call(REPLICATE, &[3])), ..Default::default() };
    assert!(put(&mut references, b"member", ReferenceEntity::Member(&member)).is_err());
    let one = v1::ActionProfileAction { action: Some(call(REPLICATE, &[3])), ..Default::default() };
    let set = v1::ActionProfileActionSet { action_profile_actions: vec![one], ..Default::default() };
    let action = Some(v1::TableAction { r#type: Some(Type::ActionProfileActionSet(set)) });
    let one_shot = TableEntry { action, ..entry(ROUTE, &[7], None) };
    assert_eq!(
        insert(&mut references, &one_shot).unwrap_err(),
        "action `C.replicate` refers to an entry that does not exist: multicast groups with `multicast_group_id` = 0x03"
    );
    put(&mut references, b"group", ReferenceEntity::MulticastGroup(3)).unwrap();
    put(&mut references, b"member", ReferenceEntity::Member(&member)).unwrap();
    insert(&mut references, &one_shot).unwrap();
    delete(&mut references, &one_shot).unwrap();
    assert!(references.replace(b"group", None).is_err());
    references.replace(b"member", None).unwrap();
    references.replace(b"group", None).unwrap();
}

#[test]
fn an_entry_that_is_changed_without_an_action_keeps_its_action() {
    let mut references = references();
    let hop = entry(NEXTHOP, &[1], None);
    insert(&mut references, &hop).unwrap();
    insert(&mut references, &entry(ROUTE, &[7], Some((SET_ROUTE, &[1])))).unwrap();
    insert(&mut references, &entry(ROUTE, &[7], None)).unwrap();
    assert!(delete(&mut references, &hop).is_err());
}

#[test]
fn a_replaced_entry_can_be_restored() {
    let mut references = references();
    let hop = entry(NEXTHOP, &[1], None);
    insert(&mut references, &hop).unwrap();
    let route = entry(ROUTE, &[7], Some((SET_ROUTE, &[1])));
    insert(&mut references, &route).unwrap();
    let before = references.replace(&key(&route), None).unwrap();
    references.force(&key(&route), before);
    assert!(delete(&mut references, &hop).is_err());
}

#[test]
fn default_actions_refer_too() {
    let mut references = references();
    let default = TableEntry { is_default_action: true, ..entry(ROUTE, &[], Some((SET_ROUTE, &[1]))) };
    assert!(insert(&mut references, &default).is_err());
}

#[test]
fn mistakes_in_annotations_are_reported() {
    let said = |annotation: &str| {
        let mut info = program();
        info.actions[1].params[0].annotations = vec![annotation.to_owned()];
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        References::new(&info, &mut map, &mut diagnostics);
        diagnostics.iter().map(|finding| finding.message.clone()).collect::<Vec<_>>()
    };
    assert_eq!(said("@refers_to(hops , id)"), ["there is no table `hops`"]);
    assert_eq!(said("@refers_to(nexthop , number)"), ["table `nexthop` has no match field `number`"]);
    assert_eq!(said("@refers_to(route , hop)"), ["match field `hop` of table `route` is not matched exactly"]);
    assert_eq!(said("@refers_to(nexthop)"), ["a reference names a table and one of its match fields"]);
    assert_eq!(said("@refers_to(multicast_group_table , id)"), ["multicast groups have no field `id`"]);
    let mut info = program();
    info.tables[2].match_fields[1].r#match = Some(Match::MatchType(MatchType::Ternary.into()));
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    References::new(&info, &mut map, &mut diagnostics);
    let message = &diagnostics.iter().next().unwrap().message;
    assert_eq!(message, "only exact and optional match fields have a single value that can refer to an entry");
}
