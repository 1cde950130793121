//! Generates the egress control: each copy gets the sequence numbers of its port, and the rest of a packet is
//! recirculated.

use super::message::{count_off, element, goes_alone, kinds, shorten, size};
use super::text::Text;
use super::{ProgramOptions, ROUND, bitmap, numbers};
use crate::format::{Messages, ProgramFormat};

/// The `instance_type` of a clone from ingress (v1model, numbered as in BMv2).
const INGRESS_CLONE: u32 = 1;

pub(super) fn control(text: &mut Text, format: &ProgramFormat, options: &ProgramOptions) {
    let parts = &format.parts;
    text.line("");
    let head = format!(
        "control SubscriptionsEgress(inout {} hdr, inout {} meta, inout standard_metadata_t standard_metadata)",
        parts.headers, parts.metadata
    );
    text.block(head, |text| {
        if let Some(messages) = &format.messages {
            numbers::declare_delivered(text, messages);
        }
        if options.split_horizon {
            split_horizon(text, format, options);
        }
        text.block("apply", |text| {
            let own = |text: &mut Text| {
                if let Some(egress) = &parts.egress {
                    text.line(format!("{egress}.apply(hdr, meta, standard_metadata);"));
                }
            };
            let near = |text: &mut Text, far: &dyn Fn(&mut Text)| {
                if options.split_horizon {
                    text.choice("split_horizon.apply().hit", |text| text.line("mark_to_drop(standard_metadata);"), far)
                } else {
                    far(text)
                }
            };
            let Some(messages) = &format.messages else { return near(text, &own) };
            let again = |text: &mut Text| rest(text, messages, options, parts.compute.is_some());
            let copy = |text: &mut Text| {
                if let Some(bits) = bitmap::pruned(format, options) {
                    bitmap::prune(text, bits, messages, options, parts.compute.is_some());
                }
                if let Some(sequence) = &messages.sequence {
                    numbers::number(text, format, messages, sequence);
                }
                text.block("if (meta.subscription.keep != 0)", |text| text.line("truncate(meta.subscription.keep);"));
                own(text);
            };
            // Controls of the format may clone packets, too.
            let is_clone = format!("standard_metadata.instance_type == {INGRESS_CLONE} && meta.subscription.done != 0");
            let leaves = |text: &mut Text| {
                if goes_alone(format) {
                    text.choice(
                        "meta.subscription.around == 1",
                        |text| text.line(format!("recirculate_preserving_field_list({ROUND});")),
                        |text| near(text, &copy),
                    )
                } else {
                    near(text, &copy)
                }
            };
            text.choice(is_clone, again, leaves);
        });
    });
}

/// Writes the table of port pairs between which nothing is forwarded.
fn split_horizon(text: &mut Text, format: &ProgramFormat, options: &ProgramOptions) {
    // Not every switch preserves the ingress port of a recirculated packet.
    let from = if format.messages.is_some() { "meta.subscription.from" } else { "standard_metadata.ingress_port" };
    text.block("table split_horizon", |text| {
        text.block("key =", |text| {
            text.line(format!("{from}: exact @name(\"from\");"));
            text.line("standard_metadata.egress_port: exact @name(\"to\");");
        });
        text.line("actions = { NoAction; }");
        text.line("default_action = NoAction;");
        text.line(format!("size = {};", options.table_size));
    });
    text.line("");
}

/// Writes code that removes the messages that the cloning pass has handled, and recirculates the clone.
fn rest(text: &mut Text, messages: &Messages, options: &ProgramOptions, has_compute: bool) {
    text.line("bit<32> removed = 0;");
    for index in 0..options.per_pass(messages) {
        text.block(format!("if (meta.subscription.done > {index})"), |text| {
            kinds(text, messages, index, |text, kind, _| {
                text.line(format!("removed = removed + {};", size(messages, kind, index)));
                text.line(format!("{}.setInvalid();", element(messages, kind, index)));
            });
        });
    }
    count_off(text, messages, has_compute, "meta.subscription.done");
    if messages.sequence.is_some() {
        text.line("meta.subscription.passes = meta.subscription.passes + 2;");
    }
    shorten(text, messages, has_compute);
    text.line(format!("recirculate_preserving_field_list({ROUND});"));
}
