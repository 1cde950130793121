//! Generates the ingress control, which matches messages.

use subscribe::state;

use super::message::{assign, bytes, count_off, element, goes_alone, is_there, kinds, shorten, size};
use super::names::{valid_of_packet, value_of_packet};
use super::stages::{self, STATE_KEY, table, validity};
use super::text::{Text, identifier};
use super::{AROUND, EVERYONE, FLOOD, PASSES, ProgramInputs, REST_SESSION, ROUND, do_table, place};
use super::{arbitration, bitmap, counters, numbers, state as memory};
use crate::format::{Bound, FormatField, HeaderId, Messages};

pub(super) fn control(text: &mut Text, inputs: &ProgramInputs<'_>) {
    let parts = &inputs.format.parts;
    text.line("");
    let head = format!(
        "control Subscriptions(inout {} hdr, inout {} meta, inout standard_metadata_t standard_metadata)",
        parts.headers, parts.metadata
    );
    text.block(head, |text| {
        declarations(text, inputs);
        text.line("");
        text.block("apply", |text| {
            if let Some(before) = &parts.before {
                text.line(format!("mark_to_drop(standard_metadata);    // unless {before} decides otherwise"));
                text.line(call(before));
            }
            match &inputs.format.messages {
                Some(messages) => several(text, inputs, messages),
                None => one(text, inputs),
            }
        });
    });
}

/// Returns the statement that applies a control of the format.
fn call(control: &str) -> String {
    format!("{control}.apply(hdr, meta, standard_metadata);")
}

/// Writes variables, registers, actions and tables.
fn declarations(text: &mut Text, inputs: &ProgramInputs<'_>) {
    let format = inputs.format;
    for field in &format.fields {
        text.line(format!("bit<{}> {}_value = 0;", field.width, identifier(&field.name)));
    }
    for header in &inputs.rules.headers {
        text.line(format!("bit<1> {} = 0;", validity(format, header)));
    }
    match inputs.options.bitmap {
        Some(bits) => bitmap::declare(text, bits),
        None => text.line("bit<32> target = 0;    // a port with the highest bit set, or a multicast group"),
    }
    if let Some(messages) = &format.messages {
        numbers::declare_arrivals(text, messages);
    }
    text.line("");
    text.line("action to_state(bit<32> state) { meta.subscription.state = state; }");
    match inputs.options.bitmap {
        Some(bits) => bitmap::declare_actions(text, bits),
        None => {
            text.line("action to_port(bit<9> port) { target = 0x80000000 | (bit<32>)port; }");
            text.line("action to_group(bit<16> group) { target = (bit<32>)group; }");
        }
    }
    if let Some(ethernet) = forwarded(inputs) {
        declare_hosts(text, inputs, ethernet);
    }
    counters::declare(text, inputs);
    memory::declare(text, inputs);
    stages::declare(text, inputs);
    let actions = stages::delivery_actions(inputs.options);
    table(text, "leaf", &[STATE_KEY.to_owned()], actions, inputs.options);
    for action in &format.actions {
        let bound = action.bound.iter().map(|bound| match bound {
            Bound::Headers => "hdr",
            Bound::Metadata => "meta",
            Bound::Standard => "standard_metadata",
        });
        let bound: Vec<&str> = bound.collect();
        let call =
            if bound.is_empty() { action.name.clone() } else { format!("{}({})", action.name, bound.join(", ")) };
        table(text, &do_table(&action.name), &[STATE_KEY.to_owned()], &format!("{call};"), inputs.options);
    }
}

/// Statement that looks up the destination of the message's last state.
const LEAF: &str = "leaf.apply();";
/// Condition that the message has other subscribers than the messages before it.
const IS_FOR_OTHERS: &str = "target != 0 && run != 0 && target != run";

/// Writes code that applies the tables to the extracted fields, which sets `target` and the last state. The message is
/// also counted, unless it `may_wait` for the next pass and has other subscribers than the messages before it; it is
/// then matched again.
fn match_tables(text: &mut Text, inputs: &ProgramInputs<'_>, may_wait: bool) {
    text.line("meta.subscription.state = 0;");
    text.line("target = 0;");
    stages::apply(text, inputs);
    if inputs.is_stateful() {
        stages::apply_stateful(text, inputs, |text| {
            text.block(format!("if ({})", stages::has_tag(state::STATEFUL_LEAF)), |text| {
                if !may_wait {
                    return count(text, inputs);
                }
                text.line(LEAF);
                text.choice(IS_FOR_OTHERS, |text| text.line("full = 1;"), |text| count(text, inputs));
            });
        });
    }
    let is_left = if may_wait { stages::has_tag(state::LEAF) } else { stages::is_leaf(inputs) };
    text.block(format!("if ({is_left})"), |text| text.line(LEAF));
}

/// Writes code that counts a message.
fn count(text: &mut Text, inputs: &ProgramInputs<'_>) {
    memory::act(text, inputs);
    counters::update_counters(text, inputs);
}

/// Writes code that calls the program's actions according to the last state. With `has_acted`, it sets this variable if
/// there are any.
fn act(text: &mut Text, inputs: &ProgramInputs<'_>, has_acted: bool) {
    if inputs.format.actions.is_empty() {
        return;
    }
    text.block(format!("if ({})", stages::is_leaf(inputs)), |text| {
        for action in &inputs.format.actions {
            let apply = format!("{}.apply()", do_table(&action.name));
            if has_acted {
                text.block(format!("if ({apply}.hit)"), |text| text.line("has_acted = 1;"));
            } else {
                text.line(format!("{apply};"));
            }
        }
    });
}

/// Writes code that drops the packet and resets the ports and the group that a control before the rules has chosen.
fn drop_packet(text: &mut Text, inputs: &ProgramInputs<'_>) {
    let is_chosen = inputs.format.parts.before.is_some() && inputs.replicates;
    text.line(if is_chosen { "replicate_to_ports(1w0);" } else { "mark_to_drop(standard_metadata);" });
}

/// Writes code that sends the packet to `target`, or drops it. Ports and a group that earlier code of the format has
/// chosen are reset.
fn send_to_group(text: &mut Text, inputs: &ProgramInputs<'_>, target: &str, is_chosen: bool) {
    text.line(format!("if ({target} == 0) {{"));
    text.indented(|text| drop_packet(text, inputs));
    text.line(format!("}} else if ({target}[31:31] == 1) {{"));
    text.indented(|text| {
        if is_chosen && inputs.replicates {
            text.line("replicate_to_ports(1w0);");
        }
        text.line(format!("standard_metadata.egress_spec = {target}[8:0];"));
        if is_chosen && !inputs.replicates {
            text.line("standard_metadata.mcast_grp = 0;");
        }
    });
    text.line("} else {");
    text.indented(|text| text.line(format!("standard_metadata.mcast_grp = {target}[15:0];")));
    text.line("}");
}

/// Writes code that copies a header's fields and validity to the variables that tables match.
fn take(text: &mut Text, inputs: &ProgramInputs<'_>, header: HeaderId, at: &str) {
    for field in &inputs.format.fields {
        for source in field.sources.iter().filter(|source| source.header == header) {
            let cast = if source.is_new_type { format!("(bit<{}>)", field.width) } else { String::new() };
            text.line(format!("{}_value = {cast}{at}.{};", identifier(&field.name), source.member));
        }
    }
    for any in inputs.rules.headers.iter().filter(|any| any.contains(&header)) {
        text.line(format!("{} = 1;", validity(inputs.format, any)));
    }
}

/// Writes code that copies the headers that a packet has once.
fn packet_fields(text: &mut Text, inputs: &ProgramInputs<'_>) {
    for (id, header) in inputs.format.headers.iter().enumerate().filter(|(_, header)| !header.in_message) {
        let at = format!("hdr.{}", header.name);
        text.block(format!("if ({at}.isValid())"), |text| take(text, inputs, HeaderId(id), &at));
    }
}

/// Writes code that saves the values that the packet's own headers contribute to fields shared with messages. They
/// apply to messages without the field. An action for one message may write to these headers.
fn keep_packet_fields(text: &mut Text, inputs: &ProgramInputs<'_>) {
    let format = inputs.format;
    for field in &format.fields {
        if let Some(kept) = value_of_packet(format, field) {
            text.line(format!("bit<{}> {kept} = {}_value;", field.width, identifier(&field.name)));
        }
    }
    for any in &inputs.rules.headers {
        if let Some(kept) = valid_of_packet(format, any) {
            text.line(format!("bit<1> {kept} = {};", validity(format, any)));
        }
    }
}

/// Writes code that matches a packet as a whole.
fn one(text: &mut Text, inputs: &ProgramInputs<'_>) {
    memory::take_time(text, inputs);
    packet_fields(text, inputs);
    match_tables(text, inputs, false);
    let is_chosen = inputs.format.parts.before.is_some();
    let fallback = inputs.format.parts.fallback.as_ref();
    let has_acted = fallback.is_some() && !inputs.format.actions.is_empty();
    if has_acted {
        text.line("bit<1> has_acted = 0;");
    }
    // Actions come last, so that an action can redirect the packet.
    match inputs.options.bitmap {
        Some(bits) if inputs.format.actions.is_empty() => {
            bitmap::send(text, bits, ("target", "only_port"), is_chosen);
        }
        Some(bits) => bitmap::send_unless_redirected(text, bits, is_chosen, |text| act(text, inputs, has_acted)),
        None => {
            send_to_group(text, inputs, "target", is_chosen);
            act(text, inputs, has_acted);
        }
    }
    if let Some(fallback) = fallback {
        let is_undelivered = if has_acted { "target == 0 && has_acted == 0" } else { "target == 0" };
        text.block(format!("if ({is_undelivered})"), |text| text.line(call(fallback)));
    }
}

/// Writes code that matches the messages of a packet.
fn several(text: &mut Text, inputs: &ProgramInputs<'_>, messages: &Messages) {
    let count = place(&messages.count);
    let header = &messages.count.header;
    if inputs.options.split_horizon {
        text.block("if (standard_metadata.instance_type == 0)", |text| {
            text.line("meta.subscription.from = standard_metadata.ingress_port;");
        });
    }
    // A frame that ends too early may have complete messages before its end.
    let is_refused = "standard_metadata.parser_error != error.NoError \
                      && standard_metadata.parser_error != error.PacketTooShort";
    others(text, inputs, header);
    text.block(format!("if (!hdr.{header}.isValid() || {is_refused})"), |text| {
        if counts_losses(messages) {
            // The first pass has counted the numbers of all messages, so no later gap reveals the loss.
            let goes_round = format!("hdr.{header}.isValid() && standard_metadata.instance_type != 0");
            text.block(format!("if ({goes_round})"), |text| text.line(format!("lose((bit<64>){count});")));
        }
        text.line("mark_to_drop(standard_metadata);");
        text.line("return;");
    });
    if numbers::others_leave(inputs.format) {
        text.line("meta.subscription.matched = 1;");
    }
    text.line(format!("bit<1> empty = ({count} == 0 || {count} == {} ? 1w1 : 1w0);", messages.count.all_ones()));
    if let Some(sequence) = &messages.sequence {
        numbers::arrivals(text, messages, sequence, inputs.options.per_pass(messages));
    }
    text.block("if (empty == 1)", |text| {
        text.line(format!("standard_metadata.mcast_grp = {EVERYONE};"));
        text.line("return;");
    });
    memory::take_time(text, inputs);
    packet_fields(text, inputs);
    keep_packet_fields(text, inputs);
    text.line("");
    text.line("bit<16> done = 0;      // messages that this pass processes, from the first on");
    text.line("bit<16> kept = 0;      // messages of this pass that are sent");
    match (bitmap::pruned(inputs.format, inputs.options), inputs.options.bitmap) {
        (Some(bits), _) => bitmap::begin(text, bits),
        (None, bits) => {
            if let Some(bits) = bits {
                bitmap::begin_run(text, bits);
            } else {
                text.line("bit<32> run = 0;       // target of the current run of messages");
            }
            text.line("bit<1> full = 0;       // 1 if the next message has another target");
        }
    }
    text.line("bit<32> seen = 0;      // bytes of all messages in the stack");
    text.line("bit<32> removed = 0;   // bytes that are not sent");
    text.line("bit<32> size = 0;");
    let per_pass = inputs.options.per_pass(messages);
    for index in 0..messages.max_messages {
        text.line("");
        event(text, inputs, messages, index, index < per_pass);
    }
    text.line("");
    leave(text, inputs, messages, &count);
}

/// Returns name and destination field of the Ethernet header, if packets that are not of the feed are forwarded by it.
fn forwarded<'a>(inputs: &ProgramInputs<'a>) -> Option<&'a (String, String)> {
    let is_wanted = inputs.options.forwards_hosts && inputs.format.can_forward_hosts();
    inputs.format.parts.ethernet.as_ref().filter(|_| is_wanted)
}

/// Writes the table of hosts by Ethernet address.
fn declare_hosts(text: &mut Text, inputs: &ProgramInputs<'_>, (header, address): &(String, String)) {
    text.line("action to_host(bit<9> port) { standard_metadata.egress_spec = port; }");
    let keys = [format!("hdr.{header}.{address}: exact @name(\"address\");")];
    table(text, "host_addresses", &keys, "to_host;", inputs.options);
}

/// Writes code for packets that are not of the feed: the format's own controls forward them, or the table of hosts.
fn others(text: &mut Text, inputs: &ProgramInputs<'_>, header: &str) {
    let (parts, ethernet) = (&inputs.format.parts, forwarded(inputs));
    if parts.before.is_none() && parts.fallback.is_none() && ethernet.is_none() {
        return;
    }
    text.block(format!("if (!hdr.{header}.isValid())"), |text| {
        if let Some(fallback) = &parts.fallback {
            drop_packet(text, inputs);
            text.line(call(fallback));
        }
        if let Some((ethernet, address)) = ethernet {
            text.line("mark_to_drop(standard_metadata);");
            text.choice(
                format!("hdr.{ethernet}.isValid() && hdr.{ethernet}.{address} == 0xffffffffffff"),
                |text| text.line(format!("standard_metadata.mcast_grp = {FLOOD};")),
                |text| text.line("host_addresses.apply();"),
            );
        }
        text.line("return;");
    });
}

/// Whether messages that a pass drops count as lost at once. With arbitration they do when no feed has brought them.
fn counts_losses(messages: &Messages) -> bool {
    messages.sequence.is_some() && messages.arbitrate().is_none()
}

/// Writes code that updates the packet after its messages are matched.
fn leave(text: &mut Text, inputs: &ProgramInputs<'_>, messages: &Messages, count: &str) {
    let length = messages.innermost_length();
    if let Some(length) = length {
        text.line(format!("bit<32> promised = (bit<32>){};", place(length)));
        text.line("// The end of the last message in the stack.");
        text.line(format!("bit<32> before = seen + {};", messages.before));
        text.line("// A message of unknown type, or inconsistent lengths.");
    } else {
        text.line("// A message of unknown type.");
    }
    let is_wrong = if length.is_some() { "done == 0 || promised < before" } else { "done == 0" };
    text.block(format!("if ({is_wrong})"), |text| {
        if counts_losses(messages) {
            text.line(format!("lose((bit<64>){count});"));
        }
        text.line("mark_to_drop(standard_metadata);");
        text.line("return;");
    });
    text.block(format!("if (done < (bit<16>){count})"), |text| {
        if goes_alone(inputs.format) {
            alone(text, inputs, messages);
        }
        let again = |text: &mut Text| {
            text.line("meta.subscription.done = done;");
            text.line(format!("clone_preserving_field_list(CloneType.I2E, {REST_SESSION}, {ROUND});"));
        };
        match messages.sequence {
            Some(_) => text.choice(
                format!("meta.subscription.passes > {}", PASSES - 2),
                |text| {
                    text.line("// Beyond the limit of passes.");
                    if counts_losses(messages) {
                        text.line(format!("lose((bit<64>){count} - (bit<64>)done);"));
                    }
                },
                again,
            ),
            None => again(text),
        }
    });
    let is_chosen = inputs.format.parts.before.is_some() || !inputs.format.actions.is_empty();
    let pruned = bitmap::pruned(inputs.format, inputs.options);
    match (pruned, inputs.options.bitmap) {
        (Some(bits), _) => bitmap::send(text, bits, ("all_ports", "one_port"), is_chosen),
        (None, Some(bits)) => bitmap::send(text, bits, ("run", "run_port"), is_chosen),
        (None, None) => send_to_group(text, inputs, "run", is_chosen),
    }
    let has_compute = inputs.format.parts.compute.is_some();
    let goes_on = match length {
        Some(_) => "promised > before".to_owned(),
        None => format!("(bit<32>){count} > (bit<32>)done"),
    };
    text.block(format!("if ({goes_on})"), |text| {
        text.line("// Bytes after the stack are not sent: neither messages nor trailing bytes.");
        text.line("meta.subscription.keep = seen - removed;");
        for (name, size) in &messages.others {
            let at = format!("hdr.{name}");
            text.block(format!("if ({at}.isValid())"), |text| {
                let size = bytes(size, &at);
                text.line(format!("meta.subscription.keep = meta.subscription.keep + {size};"));
            });
        }
        if length.is_some() {
            text.line("removed = removed + promised - before;");
        }
    });
    if pruned.is_some() {
        text.line("meta.subscription.kept = kept;");
        return text.line("meta.subscription.removed = removed;");
    }
    text.block(format!("if (removed != 0 || kept != (bit<16>){count})"), |text| {
        assign(text, messages, has_compute, &messages.count, &format!("(bit<{}>)kept", messages.count.width));
        shorten(text, messages, has_compute);
    });
}

/// Returns the condition that no message before this point leaves.
fn none_leaves(inputs: &ProgramInputs<'_>) -> &'static str {
    if bitmap::pruned(inputs.format, inputs.options).is_some() { "all_ports == 0" } else { "run == 0" }
}

/// Writes code for a pass without subscribers: the packet itself is recirculated and nothing leaves.
fn alone(text: &mut Text, inputs: &ProgramInputs<'_>, messages: &Messages) {
    let may = match messages.sequence {
        Some(_) => format!("{} && meta.subscription.passes < {PASSES}", none_leaves(inputs)),
        None => none_leaves(inputs).to_owned(),
    };
    text.block(format!("if ({may})"), |text| {
        text.line("meta.subscription.around = 1;");
        if messages.sequence.is_some() {
            text.line("meta.subscription.passes = meta.subscription.passes + 1;");
        }
        let has_compute = inputs.format.parts.compute.is_some();
        count_off(text, messages, has_compute, "done");
        shorten(text, messages, has_compute);
        text.line(format!("standard_metadata.egress_spec = {AROUND};"));
        text.line("return;");
    });
}

/// Writes code for one message: it is matched if it belongs to this pass (`in_turn`), and removed unless it leaves.
fn event(text: &mut Text, inputs: &ProgramInputs<'_>, messages: &Messages, index: u32, in_turn: bool) {
    let format = inputs.format;
    text.block(format!("if ({})", is_there(messages, index)), |text| {
        if in_turn {
            // Values of the previous message must not apply to this one.
            let in_messages = |header: &HeaderId| format.headers[header.0].in_message;
            let of_messages = |field: &&FormatField| field.sources.iter().any(|source| in_messages(&source.header));
            for field in format.fields.iter().filter(of_messages) {
                let value = value_of_packet(format, field).unwrap_or_else(|| "0".to_owned());
                text.line(format!("{}_value = {value};", identifier(&field.name)));
            }
            for any in inputs.rules.headers.iter().filter(|any| any.iter().any(in_messages)) {
                let valid = valid_of_packet(format, any).unwrap_or_else(|| "0".to_owned());
                text.line(format!("{} = {valid};", validity(format, any)));
            }
        }
        kinds(text, messages, index, |text, kind, at| {
            text.line(format!("size = {};", size(messages, kind, index)));
            if in_turn {
                take(text, inputs, kind.header, at);
            }
        });
        text.line("seen = seen + size;");
        if !in_turn {
            if goes_alone(format) {
                text.block(format!("if (!({}))", none_leaves(inputs)), |text| take_out(text, messages, index))
            } else {
                take_out(text, messages, index)
            }
            return;
        }
        let match_fresh = |text: &mut Text, may_wait: bool| {
            if messages.arbitrate().is_none() {
                return match_tables(text, inputs, may_wait);
            }
            let again = |text: &mut Text| {
                text.line("// It came before.");
                text.line("meta.subscription.state = 0;");
                text.line("target = 0;");
            };
            text.choice(arbitration::is_fresh(index), |text| match_tables(text, inputs, may_wait), again);
        };
        if bitmap::pruned(format, inputs.options).is_some() {
            match_fresh(text, false);
            text.line("done = done + 1;");
            let take_out = |text: &mut Text| take_out(text, messages, index);
            return text.choice("target == 0", take_out, |text| bitmap::keep(text, index));
        }
        text.block("if (full == 0)", |text| {
            // The first message of a pass never waits.
            match_fresh(text, index > 0);
            text.block(format!("if ({IS_FOR_OTHERS})"), |text| text.line("full = 1;"));
        });
        let stays = |text: &mut Text| {
            text.line("run = target;");
            if inputs.options.bitmap.is_some() {
                text.line("run_port = only_port;");
            }
            text.line("kept = kept + 1;");
        };
        let deal = |text: &mut Text| {
            act(text, inputs, false);
            text.line("done = done + 1;");
            text.choice("target == 0", |text| take_out(text, messages, index), stays);
        };
        text.choice("full == 1", |text| take_out(text, messages, index), deal);
    });
}

fn take_out(text: &mut Text, messages: &Messages, index: u32) {
    text.line("removed = removed + size;");
    for kind in &messages.kinds {
        text.line(format!("{}.setInvalid();", element(messages, kind, index)));
    }
}
