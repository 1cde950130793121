//! Compares two sets of rules, or of entries.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;

use serde_json::json;
use subscribe::{Aggregate, Delivery, Difference, SlotIdentity, TableChain};
use subscribe_p4::entries::{Installer, Update};
use subscribe_p4::read_back::{Meaning, read_back};

use super::args::DiffArgs;
use super::explain::show;
use super::load::Loaded;
use super::replication::options_without_program;
use super::{entry_set, json};
use crate::output::{Failure, Output};

/// The source of one side.
enum Given<'a> {
    Rules(&'a PathBuf),
    Entries(entry_set::EntrySet),
    Switch(entry_set::EntrySet),
}

/// Reports whether two sets are the same function, and if not, shows a message for which they differ.
///
/// # Errors
/// [`Failure::Different`] if they are not the same. A mistake in a side is [`Failure::Trouble`] and not a mistake in
/// the input as in other commands, whose exit code is that of a difference.
pub fn diff(args: &DiffArgs, output: &Output) -> Result<(), Failure> {
    compared(args, output).map_err(|failure| match failure {
        Failure::Input(why) => Failure::Trouble(why),
        other => other,
    })
}

fn compared(args: &DiffArgs, output: &Output) -> Result<(), Failure> {
    let mut loaded = Loaded::format(&args.format, output)?;
    let first = given(&args.first, args, &loaded, output)?;
    let second = given(&args.second, args, &loaded, output)?;
    if let (Given::Rules(first), Given::Rules(second)) = (&first, &second) {
        return of_rules(args, [first, second], &mut loaded, output);
    }
    // Rules are compiled in the field order of the other side's entries.
    let layout = [&first, &second].into_iter().find_map(|given| match given {
        Given::Rules(_) => None,
        Given::Entries(entries) | Given::Switch(entries) => Some(entries.layout.clone()),
    });
    if let Some(layout) = layout {
        loaded.force(layout);
    }
    // Linked aggregates get the slots that they have there.
    let slots = [&first, &second].into_iter().find_map(|given| match given {
        Given::Rules(_) => None,
        Given::Entries(entries) | Given::Switch(entries) => Some(subscribe_p4::slot_identities(&entries.entities)),
    });
    let slots = slots.unwrap_or_default();
    let first = meaning(first, args, &slots, &mut loaded, output)?;
    let second = meaning(second, args, &slots, &mut loaded, output)?;
    of_entries(args, [first, second], &mut loaded, output)
}

fn given<'a>(path: &'a PathBuf, args: &DiffArgs, loaded: &Loaded, output: &Output) -> Result<Given<'a>, Failure> {
    if let Some(address) = path.to_str().and_then(|path| path.strip_prefix('@')) {
        return Ok(Given::Switch(entry_set::in_switch(address, args, loaded)?));
    }
    match entry_set::is_entries(path)? {
        Some(text) => Ok(Given::Entries(entry_set::in_file(path, text, loaded, output)?)),
        None => Ok(Given::Rules(path)),
    }
}

/// Returns the function that a side computes, after its mistakes have been reported.
fn meaning(
    given: Given<'_>,
    args: &DiffArgs,
    slots: &BTreeMap<u16, SlotIdentity>,
    loaded: &mut Loaded,
    output: &Output,
) -> Result<Meaning, Failure> {
    let entries = match given {
        Given::Entries(entries) | Given::Switch(entries) => entries,
        Given::Rules(path) => {
            let options = options_without_program();
            let rules = loaded.parse(std::slice::from_ref(path), output)?;
            loaded.choose_order(&rules);
            let compiled = loaded.merge_in_slots(rules, &options, slots, output)?;
            let mut installer = Installer::new(&loaded.format, &loaded.rules, &loaded.layout, &options, args.cpu_port);
            let updates = installer.install(&compiled.tables).map_err(|many| Failure::Input(many.to_string()))?;
            let entities = updates.into_iter().filter_map(|update| match update {
                Update::Insert(entity) | Update::Modify(entity) => Some(entity),
                Update::Delete(_) => None,
            });
            entry_set::EntrySet::compiled(path, entities.collect(), loaded.layout.clone())
        }
    };
    let (meaning, findings) = read_back(&entries.entities, &loaded.format, &loaded.rules, &entries.layout);
    entries.print_findings(&findings, output)?;
    Ok(meaning)
}

fn of_rules(args: &DiffArgs, files: [&PathBuf; 2], loaded: &mut Loaded, output: &Output) -> Result<(), Failure> {
    let options = options_without_program();
    let [first, second] = files.map(|file| loaded.parse(std::slice::from_ref(file), output));
    let (first, second) = (first?, second?);
    // Tables can be compared if they have the same field order.
    loaded.choose_order(first.iter().chain(&second));
    let first = loaded.merge(first, &options, output)?;
    // The order of rules may give their aggregates other slots.
    let second = loaded.merge_in_slots(second, &options, &first.subscriptions.linked_identities(), output)?;
    let links = [&first.subscriptions.links(), &second.subscriptions.links()];
    compare_links(args, links, "the rules differ", loaded, output)?;
    let format = &loaded.rules.format;
    let possible = loaded.rules.possible(&loaded.format);
    let limits = loaded.memory_limit.limits();
    let found = subscribe::difference(&first.tables, &second.tables, format, &loaded.layout, &possible, limits);
    match found.map_err(|error| Failure::Input(error.to_string()))? {
        None => same(args, output),
        Some(difference) => {
            name_slots(loaded, links);
            print_difference(args, &difference, None, true, loaded, output)
        }
    }
}

/// Aggregates of linked slots.
type Links = BTreeMap<u16, Aggregate>;

/// Reports slots that compute different aggregates: the tables do not show them.
///
/// # Errors
/// [`Failure::Different`] if there are any.
fn compare_links(
    args: &DiffArgs,
    [first, second]: [&Links; 2],
    why: &str,
    loaded: &Loaded,
    output: &Output,
) -> Result<(), Failure> {
    let shown = |link: &Aggregate| link.shown(&loaded.rules.format).to_string();
    let both = first.iter().filter_map(|(slot, one)| Some((*slot, one, second.get(slot)?)));
    let differing: Vec<(u16, String, String)> = both
        .filter(|(_, one, other)| one != other)
        .map(|(slot, one, other)| (slot, shown(one), shown(other)))
        .collect();
    if differing.is_empty() {
        return Ok(());
    }
    if args.json {
        let slot =
            |(slot, first, second): &(u16, String, String)| json!({ "slot": slot, "first": first, "second": second });
        let slots: Vec<_> = differing.iter().map(slot).collect();
        output.print(&format!("{}\n", json!({ "same": false, "slots": slots })))?;
        return Err(Failure::Different(why.to_owned()));
    }
    for (slot, one, other) in differing {
        let (first, second) = (args.first.display(), args.second.display());
        output.print(&format!("slot {slot} computes different aggregates:\n{first}: {one}\n{second}: {other}\n"))?;
    }
    Err(Failure::Different(why.to_owned()))
}

/// Names linked slots by their aggregates, which are the same on both sides.
fn name_slots(loaded: &mut Loaded, [first, second]: [&Links; 2]) {
    let links = first.iter().chain(second).map(|(slot, link)| (*slot, link.clone())).collect();
    loaded.rules.format = loaded.rules.format.with_links(&links);
}

fn of_entries(args: &DiffArgs, sides: [Meaning; 2], loaded: &mut Loaded, output: &Output) -> Result<(), Failure> {
    let [one, other] = &sides;
    compare_links(args, [&one.links, &other.links], "the entries differ", loaded, output)?;
    let format = &loaded.rules.format;
    let possible = loaded.rules.possible(&loaded.format);
    let compare = |one: &TableChain, other: &TableChain| {
        let found = subscribe::compare(one, other, format, &possible, loaded.memory_limit.limits());
        found.map_err(|error| Failure::Input(error.to_string()))
    };
    if let Some(difference) = compare(&one.chain, &other.chain)? {
        name_slots(loaded, [&one.links, &other.links]);
        return print_difference(args, &difference, None, false, loaded, output);
    }
    // Packets received at a port may be kept from some other ports.
    let kept_from = |of: &Meaning, port: u32| -> BTreeSet<u32> {
        of.split_horizon.iter().filter(|(from, _)| *from == port).map(|(_, to)| *to).collect()
    };
    let from: BTreeSet<u32> =
        one.split_horizon.symmetric_difference(&other.split_horizon).map(|(from, _)| *from).collect();
    for port in from {
        let [one, other] = [one, other].map(|side| side.chain.without(&kept_from(side, port)));
        if let Some(difference) = compare(&one, &other)? {
            return print_difference(args, &difference, Some(port), false, loaded, output);
        }
    }
    beside(args, &sides, loaded, output)
}

/// Reports differences that do not concern single messages.
fn beside(args: &DiffArgs, [one, other]: &[Meaning; 2], loaded: &Loaded, output: &Output) -> Result<(), Failure> {
    let mut text = String::new();
    let mut beside = Vec::new();
    let mut line = |what: &str, [first, second]: [String; 2]| {
        beside.push(json!({ "what": what, "first": first, "second": second }));
        let _ = writeln!(text, "equivalent for every message, but {what}:");
        let _ = writeln!(text, "{}: {first}\n{}: {second}", args.first.display(), args.second.display());
    };
    if one.everyone != other.everyone {
        let everyone = |of: &Meaning| Delivery { ports: of.everyone.clone(), ..Delivery::default() };
        let ports = |of: &Meaning| shown(&in_rules(&everyone(of), args), loaded);
        line("packets without messages are delivered differently", [ports(one), ports(other)]);
    }
    if one.goes_round != other.goes_round {
        let says = |of: &Meaning| if of.goes_round { "is recirculated" } else { "is lost" }.to_owned();
        line("the rest of a packet after its first messages is treated differently", [says(one), says(other)]);
    }
    let is_linked =
        |of: &Meaning, slot: u16| if of.links.contains_key(&slot) { "is linked" } else { "is free" }.to_owned();
    let slots = one.links.keys().chain(other.links.keys());
    if let Some(slot) = slots.copied().find(|slot| one.links.contains_key(slot) != other.links.contains_key(slot)) {
        line(&format!("slot {slot}, which no entry tests, differs"), [is_linked(one, slot), is_linked(other, slot)]);
    }
    if let Some((computed, key)) = one.places.symmetric_difference(&other.places).next() {
        let format = &loaded.rules.format;
        let slot = format.slots_of(*computed).start;
        // The link of a slot says which fields its key has.
        let linked = one.links.get(&slot).or(other.links.get(&slot));
        let by = format.declared_in(slot).or(linked).map_or(&[][..], |aggregate| &aggregate.by);
        let value = |(id, value): (&subscribe::FieldId, &u128)| {
            let field = format.get(*id);
            format!("{}={}", field.name, subscribe::show_value(*value, field.kind, field.width))
        };
        let key_shown: Vec<String> = match by {
            [] => key.iter().map(u128::to_string).collect(),
            by => by.iter().zip(key).map(value).collect(),
        };
        let has = |of: &Meaning| {
            if of.places.contains(&(*computed, key.clone())) {
                "has its own cell".to_owned()
            } else {
                "shares a cell with other keys".to_owned()
            }
        };
        line(&format!("the key {} is counted in different cells", key_shown.join(", ")), [has(one), has(other)]);
    }
    if text.is_empty() {
        return same(args, output);
    }
    if args.json {
        output.print(&format!("{}\n", json!({ "same": false, "beside": beside })))?
    } else {
        output.print(&text)?
    }
    Err(Failure::Different("the entries differ".to_owned()))
}

/// Reports a message that the two sides treat differently.
fn print_difference(
    args: &DiffArgs,
    difference: &Difference,
    port: Option<u32>,
    of_rules: bool,
    loaded: &Loaded,
    output: &Output,
) -> Result<(), Failure> {
    let why = if of_rules { "the rules differ" } else { "the entries differ" };
    if args.json {
        let does = |done: &Delivery| {
            let done = if of_rules { done.clone() } else { in_rules(done, args) };
            json::delivery(&done, &loaded.rules.format)
        };
        let message = json::message(&difference.message, &loaded.rules);
        let (first, second) = (does(&difference.first), does(&difference.second));
        let difference =
            json!({ "same": false, "message": message, "in_port": port, "first": first, "second": second });
        output.print(&format!("{difference}\n"))?;
        return Err(Failure::Different(why.to_owned()));
    }
    let from = port.map_or(String::new(), |port| format!(" received on port {port}"));
    let message = show(&difference.message, &loaded.rules, true);
    let mut text = format!("different, for example for this message{from}:\n  {message}\n");
    for (path, done) in [(&args.first, &difference.first), (&args.second, &difference.second)] {
        let done = if of_rules { done.clone() } else { in_rules(done, args) };
        let _ = writeln!(text, "{}: {}", path.display(), shown(&done, loaded));
    }
    output.print(&text)?;
    Err(Failure::Different(why.to_owned()))
}

fn same(args: &DiffArgs, output: &Output) -> Result<(), Failure> {
    if args.json { output.print("{\"same\":true}\n") } else { output.print("equivalent for every message\n") }
}

/// Translates a delivery into the terms of rules: the controller is a port in entries, but not in rules.
fn in_rules(delivery: &Delivery, args: &DiffArgs) -> Delivery {
    let mut delivery = delivery.clone();
    let ports = delivery.ports.len();
    delivery.ports.retain(|port| *port != args.cpu_port);
    delivery.to_controller |= delivery.ports.len() < ports;
    delivery
}

/// Formats the destinations of messages.
fn shown(delivery: &Delivery, loaded: &Loaded) -> String {
    if *delivery == Delivery::default() {
        // Neither entries nor compiled rules say whether a rule matches that delivers nothing.
        "nowhere".to_owned()
    } else {
        delivery.shown(&loaded.rules.format).to_string()
    }
}
