//! Compares two P4Infos: whether they describe the same objects.
//!
//! Compilers differ in annotations, source positions and documentation, which do not change the meaning of a write.
//! Ids, names, widths and match kinds do.

use std::collections::BTreeMap;

use p4runtime_proto::config::{self, P4Info};

/// Maximum number of differences listed.
const LISTED: usize = 5;

/// Properties that hold ids.
const ID: &str = "the id";
const ACTIONS: &str = "the actions";
const IMPLEMENTATION: &str = "the implementation";
const DIRECT_RESOURCES: &str = "the direct resources";

/// Whether a property is nothing but ids.
fn is_of_ids(part: &str) -> bool {
    [ID, ACTIONS, IMPLEMENTATION, DIRECT_RESOURCES].contains(&part)
}

/// The differences between two P4Infos, in the order of the one that was sent.
#[derive(Default)]
struct Differences {
    /// Those of objects: missing, too many, or of another shape.
    objects: Vec<String>,
    /// Those of ids alone.
    ids: Vec<String>,
    /// Whether each id that differs has the form of early compilers: a kind and 16 bits.
    has_short_ids: bool,
}

/// Describes the differences, if there are any: whether objects differ or only their ids, then the first of them.
pub(crate) fn difference(sent: &P4Info, derived: &P4Info) -> Option<String> {
    let differences = differences(&facts(sent), &facts(derived));
    let Differences { objects, ids, has_short_ids } = differences;
    if objects.is_empty() && ids.is_empty() {
        return None;
    }
    if objects.is_empty() {
        let scheme = if has_short_ids { ", and are of the form that early versions of p4c assigned" } else { "" };
        return Some(format!(
            "it has the objects of the program under other ids; these differ from those that p4c and this switch \
             assign{scheme}; `triplane p4info` prints the P4Info of the program: {}",
            listed(ids)
        ));
    }
    Some(format!("its objects are not those of the program: {}", listed(objects.into_iter().chain(ids).collect())))
}

/// Joins the first differences, and counts the others.
fn listed(mut found: Vec<String>) -> String {
    let more = found.len().saturating_sub(LISTED);
    found.truncate(LISTED);
    if more > 0 {
        found.push(format!("and {more} more"));
    }
    found.join("; ")
}

fn differences(sent: &[Fact], derived: &[Fact]) -> Differences {
    let (sent_index, derived_index) = (index(sent.iter(), Fact::key), index(derived.iter(), Fact::key));
    let mut found = Differences { has_short_ids: true, ..Differences::default() };
    for fact in sent {
        // Each object of the program is compared once, however often it is sent.
        if sent_index.get(&fact.key()).is_some_and(|first| !std::ptr::eq(*first, fact)) {
            found.objects.push(format!("it has the {} `{}` more than once", fact.what, fact.name));
            continue;
        }
        match derived_index.get(&fact.key()) {
            None => found.objects.push(format!("the program has no {} `{}`", fact.what, fact.name)),
            Some(other) => compare(fact, other, &mut found),
        }
    }
    let missing = derived.iter().filter(|fact| !sent_index.contains_key(&fact.key()));
    found.objects.extend(missing.map(|fact| format!("it lacks the {} `{}`", fact.what, fact.name)));
    found
}

/// Compares the properties of an object that both have.
fn compare(fact: &Fact, other: &Fact, found: &mut Differences) {
    let (fact_parts, other_parts) = (index(fact.parts.iter(), part_name), index(other.parts.iter(), part_name));
    for (part, value) in &fact.parts {
        let other = other_parts.get(part.as_str()).map(|(_, value)| value.as_str());
        if other == Some(value) {
            continue;
        }
        let has = other.unwrap_or("nothing like it");
        let text = format!("{} `{}` has {part} {value}, but the program has {has}", fact.what, fact.name);
        if is_of_ids(part) {
            found.has_short_ids &= part != ID || fact.id & 0x00ff_0000 == 0;
            found.ids.push(text);
        } else {
            found.objects.push(text);
        }
    }
    let missing = other.parts.iter().filter(|(part, _)| !fact_parts.contains_key(part.as_str()));
    found.objects.extend(
        missing
            .map(|(part, value)| format!("{} `{}` lacks {part} {value}, which the program has", fact.what, fact.name)),
    );
}

/// An object and its properties.
struct Fact {
    what: &'static str,
    name: String,
    id: u32,
    parts: Vec<(String, String)>,
}

impl Fact {
    /// Returns the kind and the name, by which two P4Infos are compared.
    fn key(&self) -> (&'static str, &str) {
        #[cfg(test)]
        crate::steps::count();
        (self.what, &self.name)
    }
}

/// Returns the name of a property.
fn part_name((name, _): &(String, String)) -> &str {
    #[cfg(test)]
    crate::steps::count();
    name
}

/// Indexes elements. Of several with the same key, the first counts.
fn index<'a, T, K: Ord>(all: std::slice::Iter<'a, T>, key: impl Fn(&'a T) -> K) -> BTreeMap<K, &'a T> {
    all.rev().map(|it| (key(it), it)).collect()
}

fn fact(what: &'static str, preamble: &Option<config::Preamble>, parts: Vec<(String, String)>) -> Fact {
    let (id, name) = preamble.as_ref().map_or((0, ""), |preamble| (preamble.id, &preamble.name));
    let mut all = vec![(ID.to_owned(), format!("{id:#010x}"))];
    all.extend(parts);
    Fact { what, name: name.to_owned(), id, parts: all }
}

fn field(field: &config::MatchField) -> (String, String) {
    use config::match_field::Match;
    let kind = match &field.r#match {
        Some(Match::MatchType(kind)) => config::match_field::MatchType::try_from(*kind)
            .map_or_else(|_| kind.to_string(), |kind| kind.as_str_name().to_lowercase()),
        Some(Match::OtherMatchType(other)) => other.clone(),
        None => "no kind".to_owned(),
    };
    (format!("the match field `{}`:", field.name), format!("id {}, {} bits, {kind}", field.id, field.bitwidth))
}

fn size(size: i64) -> (String, String) {
    ("the size".to_owned(), size.to_string())
}

fn ids(what: &str, ids: impl Iterator<Item = u32>) -> (String, String) {
    let mut ids: Vec<_> = ids.map(|id| format!("{id:#010x}")).collect();
    ids.sort();
    (what.to_owned(), if ids.is_empty() { "none".to_owned() } else { ids.join(" ") })
}

fn facts(info: &P4Info) -> Vec<Fact> {
    let mut all = Vec::new();
    for table in &info.tables {
        let mut parts: Vec<_> = table.match_fields.iter().map(field).collect();
        parts.push(ids(ACTIONS, table.action_refs.iter().map(|action| action.id)));
        parts.push(ids(IMPLEMENTATION, Some(table.implementation_id).into_iter().filter(|id| *id != 0)));
        parts.push(ids(DIRECT_RESOURCES, table.direct_resource_ids.iter().copied()));
        parts.push(("constant entries".to_owned(), table.is_const_table.to_string()));
        parts.push(size(table.size));
        all.push(fact("table", &table.preamble, parts));
    }
    for action in &info.actions {
        let part = |param: &config::action::Param| {
            (format!("the parameter `{}`:", param.name), format!("id {}, {} bits", param.id, param.bitwidth))
        };
        all.push(fact("action", &action.preamble, action.params.iter().map(part).collect()));
    }
    for profile in &info.action_profiles {
        let selector = ("a selector:".to_owned(), profile.with_selector.to_string());
        let longest = ("the longest group".to_owned(), profile.max_group_size.to_string());
        all.push(fact("action profile", &profile.preamble, vec![selector, size(profile.size), longest]));
    }
    all.extend(info.counters.iter().map(|it| fact("counter", &it.preamble, vec![size(it.size)])));
    all.extend(info.direct_counters.iter().map(|it| fact("direct counter", &it.preamble, Vec::new())));
    all.extend(info.meters.iter().map(|it| fact("meter", &it.preamble, vec![size(it.size)])));
    all.extend(info.direct_meters.iter().map(|it| fact("direct meter", &it.preamble, Vec::new())));
    all.extend(info.registers.iter().map(|it| fact("register", &it.preamble, vec![size(it.size.into())])));
    all.extend(info.digests.iter().map(|it| fact("digest", &it.preamble, Vec::new())));
    for set in &info.value_sets {
        let parts = set.r#match.iter().map(field).chain([size(set.size.into())]);
        all.push(fact("value set", &set.preamble, parts.collect()));
    }
    for header in &info.controller_packet_metadata {
        let part = |it: &config::controller_packet_metadata::Metadata| {
            (format!("the field `{}`:", it.name), format!("id {}, {} bits", it.id, it.bitwidth))
        };
        all.push(fact("controller header", &header.preamble, header.metadata.iter().map(part).collect()));
    }
    all
}

#[cfg(test)]
mod tests {
    use p4runtime_proto::config::{Action, MatchField, Preamble, Table};

    use super::*;
    use crate::steps;

    /// Returns a P4Info of `n` actions, and a table of `n` match fields.
    fn info(n: u32) -> P4Info {
        let preamble = |id: u32| Some(Preamble { id, name: format!("object.{id}"), ..Default::default() });
        let match_fields = (1..=n).map(|id| MatchField { id, name: format!("f{id}"), ..Default::default() }).collect();
        P4Info {
            tables: vec![Table { preamble: preamble(2 << 24 | 1), match_fields, ..Default::default() }],
            actions: (1..=n).map(|at| Action { preamble: preamble(1 << 24 | at), ..Default::default() }).collect(),
            ..Default::default()
        }
    }

    #[test]
    fn twice_the_objects_take_twice_the_steps() {
        let steps = |n| steps::of(|| assert_eq!(difference(&info(n), &info(n)), None));
        let (once, twice) = (steps(500), steps(1000));
        assert!(once > 1000 && twice < 3 * once, "{once} steps, then {twice}");
    }

    #[test]
    fn an_object_that_is_sent_twice_is_a_difference() {
        let mut twice = info(2);
        twice.actions.extend_from_within(..1);
        let found = difference(&twice, &info(2)).expect("they differ");
        let expected = "its objects are not those of the program: it has the action `object.16777217` more than once";
        assert_eq!(found, expected);
    }

    #[test]
    fn objects_and_parts_of_either_side_are_listed() {
        let (mut more, less) = (info(3), info(2));
        more.actions[0].preamble.as_mut().expect("it has one").id = 9;
        let found = difference(&more, &less).expect("they differ");
        assert_eq!(
            found,
            "its objects are not those of the program: table `object.33554433` has the match field `f3`: id 3, 0 bits, \
             no kind, but the program has nothing like it; the program has no action `object.16777219`; action \
             `object.16777217` has the id 0x00000009, but the program has 0x01000001"
        );
        let found = difference(&less, &info(3)).expect("they differ");
        assert_eq!(
            found,
            "its objects are not those of the program: table `object.33554433` lacks the match field `f3`: id 3, 0 \
             bits, no kind, which the program has; it lacks the action `object.16777219`"
        );
    }

    #[test]
    fn other_ids_are_told_apart_from_other_objects() {
        let program = info(1);
        let mut sent = program.clone();
        sent.tables[0].preamble.as_mut().expect("it has one").id = 0x0212_3456;
        let found = difference(&sent, &program).expect("they differ");
        assert_eq!(
            found,
            "it has the objects of the program under other ids; these differ from those that p4c and this switch \
             assign; `triplane p4info` prints the P4Info of the program: table `object.33554433` has the id \
             0x02123456, but the program has 0x02000001"
        );
        sent.tables[0].preamble.as_mut().expect("it has one").id = 0x0200_83a1;
        let found = difference(&sent, &program).expect("they differ");
        assert!(found.contains("of the form that early versions of p4c assigned"), "{found}");
        sent.actions.clear();
        let found = difference(&sent, &program).expect("they differ");
        assert!(found.starts_with("its objects are not those of the program: it lacks the action `obj"), "{found}");
    }
}
