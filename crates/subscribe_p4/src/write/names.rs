//! Names that the generated program uses.

use super::stages::validity;
use super::{combine_table, combined_with, do_table, identifier, update_table, with_field};
use crate::RuleFormat;
use crate::format::{FormatField, HeaderId, ProgramFormat};

/// Declarations added at top level.
pub(crate) const TOP_LEVEL: [&str; 6] = [
    "subscription_t",
    "Subscriptions",
    "SubscriptionsEgress",
    "SubscriptionsVerify",
    "SubscriptionsCompute",
    "SubscriptionsDeparser",
];

/// Member added to the metadata.
pub(crate) const METADATA: &str = "subscription";

/// Names that the added controls declare for every format (the format's own parts are called in their scope), and names
/// of the architecture that they use.
const IN_CONTROLS: &str = "
    hdr meta standard_metadata
    target only_port to_state to_port to_group to_ports validity leaf
    due_message lost_messages lost lose
    sessions turns turn ended due_turn numbered
    began first_number seen_numbers seen_block seen_turn fresh has_acted
    updates operand product by_number number_times number_minus counted count_for counts dividend divisor quotient
    split_horizon delivered opened host_addresses to_host
    NoAction mark_to_drop replicate_to_ports truncate hash register V1Switch HashAlgorithm CloneType error
";

/// Names of parameters, members and variables within these. No part of the format is called in their scope, but a macro
/// would change them, too.
const WITHIN: &str = "
    packet state address port ports all_ports one_port group code function number index slots messages done keep passes around missed from now empty first next due
    kept run
    full seen removed size promised before sum given gap
    stream session is_over more mine at_port
    since known is_one is_again end there number shift ones later block begin bits at owner unseen missing cell start
    length packets previous field key_0 key_1 identity
";

/// Prefixes of names that end with a number.
const NUMBERED: [&str; 6] = ["place_", "to_place_", "cell_", "divide_", "link_", "to_link_"];

/// Whether some of these headers belong to messages and some do not.
fn is_shared(format: &ProgramFormat, headers: impl Iterator<Item = HeaderId> + Clone) -> bool {
    let in_message = |header: HeaderId| format.headers[header.0].in_message;
    headers.clone().any(in_message) && headers.clone().any(|header| !in_message(header))
}

/// Returns the name of the variable that saves the packet's own value of a field that messages have, too.
pub(super) fn value_of_packet(format: &ProgramFormat, field: &FormatField) -> Option<String> {
    let is_shared = is_shared(format, field.sources.iter().map(|source| source.header));
    is_shared.then(|| format!("{}_packet", identifier(&field.name)))
}

/// Returns the name of the variable that saves the packet's own validity of these headers.
pub(super) fn valid_of_packet(format: &ProgramFormat, any: &[HeaderId]) -> Option<String> {
    is_shared(format, any.iter().copied()).then(|| format!("{}_packet", validity(format, any)))
}

fn is_among(names: &str, name: &str) -> bool {
    names.split_whitespace().any(|one| one == name)
}

/// Whether a macro of this name would change the added code.
pub(crate) fn occurs_in_generated_text(name: &str, format: &ProgramFormat, rules: Option<&RuleFormat>) -> bool {
    let is_other = name == METADATA || is_among(WITHIN, name) || TOP_LEVEL.contains(&name);
    is_other || is_declared_by_generator(name, format, rules)
}

/// Whether the added controls declare this name or use it from the architecture.
pub(crate) fn is_declared_by_generator(name: &str, format: &ProgramFormat, rules: Option<&RuleFormat>) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_slots = name.strip_prefix("slot_").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let is_bitmap = name.strip_prefix("ports_").is_some_and(|rest| is_number(&rest.replacen('_', "", 1)));
    let is_numbered = || NUMBERED.iter().any(|stem| name.strip_prefix(stem).is_some_and(is_number));
    // A table of a stage: the column, the part, the stage.
    let is_table = |of: &str| {
        let rest = name.strip_prefix(of).and_then(|rest| rest.strip_prefix('_'));
        rest.and_then(|rest| rest.split_once('_')).is_some_and(|(part, stage)| {
            ["exact", "range", "lpm", "ternary", "rest"].contains(&part) && is_number(stage)
        })
    };
    let is_fields = |field: &str| {
        let of = identifier(field);
        ["value", "codes", "code", "to_code"].iter().any(|part| name == format!("{of}_{part}"))
            || name == with_field(field)
            || [true, false].iter().any(|is_product| name == combined_with(field, *is_product))
            || is_table(&of)
    };
    let is_counters = |counter: &str| {
        let of = name.strip_prefix("kept_").unwrap_or(name);
        ["value", "end", "count", "before", "operand", "times", "minus"]
            .iter()
            .any(|part| of == format!("{counter}_{part}"))
            || name == update_table(counter)
            || name == combine_table(counter)
            || is_table(counter)
    };
    is_among(IN_CONTROLS, name)
        || is_slots
        || is_bitmap
        || is_numbered()
        || format.fields.iter().any(|field| is_fields(&field.name))
        || format.fields.iter().any(|field| value_of_packet(format, field).as_deref() == Some(name))
        || format.counters.iter().any(|counter| is_counters(&counter.name))
        || format.actions.iter().any(|action| name == do_table(&action.name))
        || rules.is_some_and(|rules| {
            rules
                .headers
                .iter()
                .any(|any| name == validity(format, any) || valid_of_packet(format, any).as_deref() == Some(name))
        })
}
