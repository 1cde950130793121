//! Finds control-plane names that several objects have.

use std::collections::BTreeSet;

use diagnostics::names::{listed, shared};
use p4runtime_proto::config::{P4Info, Preamble};

/// Checks that a program gives no control-plane name to more than one object of a kind, for callers whose users name
/// objects: P4Runtime, entries, P4Info itself. Such a program runs; [`crate::compile`] warns of the names.
///
/// # Errors
/// A sentence with the names and the remedy.
pub fn check_names(info: &P4Info) -> Result<(), String> {
    let preambles = (info.tables.iter().map(|table| &table.preamble))
        .chain(info.counters.iter().map(|counter| &counter.preamble))
        .chain(info.direct_counters.iter().map(|counter| &counter.preamble))
        .chain(info.meters.iter().map(|meter| &meter.preamble))
        .chain(info.direct_meters.iter().map(|meter| &meter.preamble))
        .chain(info.registers.iter().map(|register| &register.preamble))
        .chain(info.action_profiles.iter().map(|profile| &profile.preamble))
        .chain(info.value_sets.iter().map(|set| &set.preamble));
    let name = |preamble: &'_ Option<Preamble>| preamble.as_ref().and_then(|it| shared(&it.name)).map(str::to_owned);
    let names: BTreeSet<String> = preambles.filter_map(name).collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(format!(
        "a control plane could not tell apart the objects that the program gives the same name: {}; give them \
         different names with `@name`",
        listed(names.iter().map(String::as_str))
    ))
}
