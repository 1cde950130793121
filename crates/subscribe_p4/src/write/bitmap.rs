//! Generates the code of programs that replicate to bitmaps of ports. Egress removes from each copy the messages that
//! its port does not want.

use super::message::{assign, element, kinds, shorten, size};
use super::text::Text;
use super::{MAX_BITMAP, ProgramOptions, place};
use crate::entries::BITMAP_PART;
use crate::format::{Messages, ProgramFormat};

/// The port of a delivery to several ports.
const SEVERAL: u32 = 0x1ff;
/// The usual port of packets for the controller, whose bit is the highest one.
pub(crate) const CONTROLLER: u32 = 510;
/// The multicast group that stands for the bitmap of a message while an action of the format may choose another
/// destination. No rule has a group in a program with bitmaps.
const BY_BITMAP: u16 = 0xffff;

/// Returns the parameters of an action that hold a bitmap of `bits`: names and widths, from the lowest bits on. The
/// names contain the first and the last port, so that entries of another width do not fit.
pub(crate) fn params(bits: u32) -> impl Iterator<Item = (String, u32)> {
    let part = move |first: u32| {
        let width = (bits - first).min(BITMAP_PART);
        (format!("ports_{first}_{}", first + width - 1), width)
    };
    (0..bits).step_by(BITMAP_PART as usize).map(part)
}

/// Returns the width of the bitmaps of a program or of entries, from the names of the parameters of actions.
pub fn bitmap_of<'a>(params: impl Iterator<Item = &'a str>) -> Option<u32> {
    let end = |name: &str| name.strip_prefix("ports_")?.split_once('_')?.1.parse::<u32>().ok()?.checked_add(1);
    params.filter_map(end).max().filter(|bits| bits.is_multiple_of(64) && (64..=MAX_BITMAP).contains(bits))
}

/// Returns the width of the bitmaps if egress removes from each copy what its port does not want. An action of the
/// format may change the packet for some messages only; programs with actions therefore send the messages up to the
/// first change of ports as one packet, and recirculate the others.
pub(super) fn pruned(format: &ProgramFormat, options: &ProgramOptions) -> Option<u32> {
    options.bitmap.filter(|_| format.actions.is_empty())
}

/// Writes the variables of deliveries.
pub(super) fn declare(text: &mut Text, bits: u32) {
    text.line(format!("bit<{bits}> target = 0;    // the ports of the message by bit, the highest for the controller"));
    text.line(format!("bit<9> only_port = {SEVERAL};    // its port, if there is only one"));
}

/// Writes the actions of deliveries.
pub(super) fn declare_actions(text: &mut Text, bits: u32) {
    let declared: Vec<String> = params(bits).map(|(name, width)| format!("bit<{width}> {name}")).collect();
    let mut all: Vec<String> = params(bits).map(|(name, _)| name).collect();
    all.reverse();
    let (declared, all) = (declared.join(", "), all.join(" ++ "));
    text.line(format!("action to_port(bit<9> port, {declared}) {{ only_port = port; target = {all}; }}"));
    text.line(format!("action to_ports({declared}) {{ only_port = {SEVERAL}; target = {all}; }}"));
}

/// Writes the metadata for egress: the ports of each message, and what ingress removed.
pub(super) fn carried(text: &mut Text, bits: u32, messages: &Messages, options: &ProgramOptions) {
    for index in 0..options.per_pass(messages) {
        text.line(format!("bit<{bits}> ports_{index};"));
    }
    text.line("bit<16> kept;                       // messages in the packet; 0 if there is nothing to remove");
    text.line("bit<32> removed;                    // bytes that ingress has removed");
}

/// Writes code that sends the packet to the ports of a bitmap, or to the only one. A group that earlier code of the
/// format has chosen is reset.
pub(super) fn send(text: &mut Text, bits: u32, (all, only): (&str, &str), is_chosen: bool) {
    let several = |text: &mut Text| text.line(format!("replicate_to_ports({});", all_ports(bits, all)));
    text.choice(format!("{only} != {SEVERAL}"), |text| send_to_one(text, only, is_chosen), several);
}

/// Writes code that sends the packet to the ports of the message's bitmap, unless `act`, which runs actions of the
/// format, chooses another destination.
pub(super) fn send_unless_redirected(text: &mut Text, bits: u32, is_chosen: bool, act: impl FnOnce(&mut Text)) {
    let several = |text: &mut Text| {
        text.choice(
            "target == 0",
            |text| text.line("mark_to_drop(standard_metadata);"),
            |text| text.line(format!("standard_metadata.mcast_grp = {BY_BITMAP};")),
        );
    };
    text.choice(format!("only_port != {SEVERAL}"), |text| send_to_one(text, "only_port", is_chosen), several);
    act(text);
    text.block(format!("if (standard_metadata.mcast_grp == {BY_BITMAP})"), |text| {
        text.line("standard_metadata.mcast_grp = 0;");
        text.line(format!("replicate_to_ports({});", all_ports(bits, "target")));
    });
}

/// Writes code that sends the packet to one port.
fn send_to_one(text: &mut Text, port: &str, is_chosen: bool) {
    if is_chosen {
        // Resets the ports and the group that earlier code chose.
        text.line("replicate_to_ports(1w0);");
    }
    text.line(format!("standard_metadata.egress_spec = {port};"));
}

/// Returns the bitmap of all ports for `replicate_to_ports`, whose bits are ports, from one of the program.
fn all_ports(bits: u32, bitmap: &str) -> String {
    let high = bits - 1;
    match CONTROLLER.saturating_sub(high) {
        // Every port has its bit.
        0 => bitmap.to_owned(),
        gap => format!("{bitmap}[{high}:{high}] ++ {gap}w0 ++ {bitmap}[{}:0]", high - 1),
    }
}

/// Writes the variables of a pass over several messages.
pub(super) fn begin(text: &mut Text, bits: u32) {
    text.line(format!("bit<{bits}> all_ports = 0;    // ports of all messages"));
    text.line(format!("bit<9> one_port = {SEVERAL};    // the port of all messages, if they have the same one"));
}

/// Writes the variables of a pass that ends at the first change of ports.
pub(super) fn begin_run(text: &mut Text, bits: u32) {
    text.line(format!("bit<{bits}> run = 0;       // ports of the current run of messages"));
    text.line(format!("bit<9> run_port = {SEVERAL};    // the port of the run, if it has only one"));
}

/// Writes code that keeps the message at `index` for its ports.
pub(super) fn keep(text: &mut Text, index: u32) {
    text.line(format!("meta.subscription.ports_{index} = target;"));
    text.line("kept = kept + 1;");
    text.line("if (all_ports == 0) {");
    text.indented(|text| text.line("one_port = only_port;"));
    text.line("} else if (target != all_ports) {");
    text.indented(|text| text.line(format!("one_port = {SEVERAL};")));
    text.line("}");
    text.line("all_ports = all_ports | target;");
}

/// Writes the code of egress that removes from a copy the messages that its port does not want, and sets the counts and
/// lengths of what remains.
pub(super) fn prune(text: &mut Text, bits: u32, messages: &Messages, options: &ProgramOptions, has_compute: bool) {
    text.block("if (meta.subscription.kept != 0)", |text| {
        let high = bits - 1;
        text.line(format!("bit<{bits}> mine = {bits}w1 << standard_metadata.egress_port;"));
        if high < CONTROLLER {
            text.block(format!("if (standard_metadata.egress_port == {CONTROLLER})"), |text| {
                text.line(format!("mine = {bits}w1 << {high};"));
            });
        }
        text.line("bit<16> kept = meta.subscription.kept;");
        text.line("bit<32> removed = meta.subscription.removed;");
        text.line("bit<32> size = 0;");
        for index in 0..options.per_pass(messages) {
            let is_unwanted =
                format!("meta.subscription.ports_{index} != 0 && meta.subscription.ports_{index} & mine == 0");
            text.block(format!("if ({is_unwanted})"), |text| {
                kinds(text, messages, index, |text, kind, _| {
                    text.line(format!("size = {};", size(messages, kind, index)));
                    text.line(format!("{}.setInvalid();", element(messages, kind, index)));
                });
                text.line("removed = removed + size;");
                text.line("kept = kept - 1;");
                text.block("if (meta.subscription.keep != 0)", |text| {
                    text.line("meta.subscription.keep = meta.subscription.keep - size;");
                });
            });
        }
        let count = &messages.count;
        text.block(format!("if (removed != 0 || kept != (bit<16>){})", place(count)), |text| {
            assign(text, messages, has_compute, count, &format!("(bit<{}>)kept", count.width));
            shorten(text, messages, has_compute);
        });
    });
}
