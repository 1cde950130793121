//! Generates the text of the program.

mod arbitration;
mod bitmap;
mod counters;
mod egress;
mod ingress;
mod linked;
mod message;
mod names;
mod numbers;
mod stages;
mod state;
mod text;

use subscribe::{ColumnLayout, Stage, TargetCapabilities};

use crate::RuleFormat;
use crate::format::{Messages, Path, ProgramFormat};
use crate::groups;
use text::Text;

pub use bitmap::bitmap_of;
pub(crate) use bitmap::{CONTROLLER, params as bitmap_params};
pub(crate) use counters::{COMBINES, combine_table, combined_with, update_table, with_counter, with_field};
pub(crate) use linked::{key_parts, key_width, link_params, link_table, parse_link};
pub(crate) use names::{METADATA, TOP_LEVEL, is_declared_by_generator, occurs_in_generated_text};
pub(crate) use stages::{VALIDITY, codes_table, match_kind_name, part_name, to_code, validity};
pub(crate) use state::{COUNTS, cells, place_table};
pub(crate) use text::identifier;

/// Multicast group of all ports that any rule delivers to; heartbeats go there.
pub const EVERYONE: u16 = 0x7fff;
/// Multicast group of all ports on which broadcasts of hosts leave.
pub const FLOOD: u16 = 0x7ffe;
/// Table of hosts by Ethernet address, in programs with [`ProgramOptions::forwards_hosts`].
pub const HOST_ADDRESSES: &str = "Subscriptions.host_addresses";
/// Mirror session that recirculates the rest of a packet.
pub const REST_SESSION: u16 = 1;

/// The field list that a recirculated packet preserves.
const ROUND: u8 = 1;

/// Maximum number of passes, by clone or recirculation, that Triplane's switch preserves. If messages are numbered, the
/// program opens a gap for messages beyond the limit. Delivery plus recirculation takes two passes, recirculation alone
/// takes one.
pub(crate) const PASSES: u8 = 255;

/// Maximum width of a bitmap of ports: one bit for each of a switch's ports.
const MAX_BITMAP: u32 = 512;

/// Egress port of a packet that is only recirculated; any port works.
const AROUND: u16 = 510;

/// Options of the generated program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProgramOptions {
    /// Capabilities of the tables.
    pub target: TargetCapabilities,
    /// Maximum number of messages matched in one pass; the rest is recirculated. `None` for the size of the stack. With
    /// 1, every table is applied in one place, as required by switches whose tables are pipeline stages.
    pub messages_per_pass: Option<u32>,
    /// Size of each table, in entries.
    pub table_size: u32,
    /// Width in bits of the bitmap of ports that an entry holds, a multiple of 64 up to 512; the highest bit stands for
    /// the controller (of 512 bits, bit 510, its usual port). Egress then removes from each copy what its port does not
    /// want. `None` for multicast groups, as other targets need them.
    pub bitmap: Option<u32>,
    /// Whether there is a table of port pairs between which nothing is forwarded (`split_horizon`), for switches that
    /// deliver to each other.
    pub split_horizon: bool,
    /// Whether packets without messages of the feed are forwarded by their Ethernet addresses, which a table
    /// (`host_addresses`) lists. Without effect unless [`ProgramFormat::can_forward_hosts`].
    pub forwards_hosts: bool,
}

impl Default for ProgramOptions {
    fn default() -> Self {
        let target = TargetCapabilities {
            exact_beside: false,
            max_group: groups::COMPILED,
            one_update: true,
            carries: true,
            ..TargetCapabilities::default()
        };
        ProgramOptions {
            target,
            messages_per_pass: None,
            table_size: 1 << 20,
            bitmap: None,
            split_horizon: false,
            forwards_hosts: false,
        }
    }
}

impl ProgramOptions {
    /// Returns these options for a program that replicates to bitmaps of ports, of at least this number of ports.
    #[must_use]
    pub fn with_bitmaps(self, ports: u32) -> ProgramOptions {
        self.with_bitmap_width(Some((ports.min(MAX_BITMAP - 1) + 1).next_multiple_of(64)))
    }

    /// Returns these options for a program with bitmaps of this width, or without bitmaps.
    #[must_use]
    pub fn with_bitmap_width(self, bitmap: Option<u32>) -> ProgramOptions {
        let target = TargetCapabilities { needs_groups: bitmap.is_none(), ..self.target };
        ProgramOptions { bitmap, target, ..self }
    }

    /// Returns the largest port that entries can deliver to, besides the controller's; `None` with multicast groups,
    /// which contain any port.
    pub fn max_port(&self) -> Option<u32> {
        // The highest bit is the controller's. Of 512 bits, it is that of port 510 itself.
        Some((self.bitmap? - 1).min(CONTROLLER) - 1)
    }

    /// Returns these options, with one message per pass if a pass might otherwise leave messages of its stack to the
    /// next one, although the format needs to know the messages of a pass before it matches them.
    fn with_whole_passes(self, format: &ProgramFormat) -> ProgramOptions {
        let arbitrates = format.messages.as_ref().is_some_and(|messages| messages.arbitrate().is_some());
        let messages_per_pass = match bitmap::pruned(format, &self) {
            None if arbitrates => Some(1),
            _ => self.messages_per_pass,
        };
        ProgramOptions { messages_per_pass, ..self }
    }

    fn per_pass(&self, messages: &Messages) -> u32 {
        self.messages_per_pass.unwrap_or(messages.max_messages).clamp(1, messages.max_messages)
    }
}

/// Returns the text of the program that matches rules over `format`: `source`, the text of the main file, with a field
/// added to its metadata, followed by the controls and the package.
///
/// A message (or a packet without messages) passes the stages in order: the tables of a field map the state and the
/// field's value to the next state, and the leaf table maps the last state to a port or a group. Table names contain
/// the field and its position in the order (`stock_exact_3`, `price_range_5`); each field also has a table for all
/// other values (`stock_rest_3`).
///
/// # Several messages
///
/// With bitmaps of ports, a pass matches all messages of the stack and sends one copy to every port that wants any of
/// them; egress removes the others from the copy. Only messages beyond the stack are recirculated.
///
/// With multicast groups, messages are matched in order. Messages without subscribers are removed. The others, up to
/// the first with different subscribers, leave as one packet for their subscribers. The rest, from that message on or
/// beyond the capacity of one pass, is recirculated as a packet of its own (a clone). Every subscriber thus receives
/// exactly its messages, in order. A packet with n messages costs one pass, plus one for each change of subscribers
/// among the messages with subscribers. If a pass finds no subscribers, the packet itself is recirculated, unless the
/// format's own parts may have changed it. Counts, lengths and checksums are those of the packets that leave.
///
/// If messages are numbered, the messages to each port are renumbered from 1 without gaps, in a register. A gap then
/// shows the subscriber that a packet to it was lost. A gap in the incoming numbers becomes a gap for every subscriber,
/// because the subscribers of the lost messages are unknown. Incoming gaps are counted per ingress port, from the first
/// number on that port. If packets carry a session, all of these numbers are per session, and restart with a new
/// session. Packets without messages (count 0 or all ones) go to everyone. Messages that exceed the limit of 255 passes
/// or cannot be parsed are lost; they cause a gap for every subscriber, like an incoming gap.
pub fn program(
    source: &str,
    format: &ProgramFormat,
    rules: &RuleFormat,
    layout: &ColumnLayout,
    options: &ProgramOptions,
) -> String {
    let parts = &format.parts;
    let stages = subscribe::stages(&rules.format, layout, &options.target);
    let options = &options.with_whole_passes(format);
    let replicates = options.bitmap.is_some() || source.contains("replicate_to_ports");
    let inputs = ProgramInputs { format, rules, stages, options, replicates };
    let (before, behind) = source.split_at(parts.metadata_at);
    let mut text = Text::default();
    message::metadata(&mut text, format);
    ingress::control(&mut text, &inputs);
    egress::control(&mut text, format, options);
    let mut pass = |name: &str, given: &Option<String>, head: &str| -> String {
        given.clone().unwrap_or_else(|| {
            text.line("");
            text.line(format!("control {name}({head}) {{ apply {{}} }}"));
            name.to_owned()
        })
    };
    let two = format!("inout {} hdr, inout {} meta", parts.headers, parts.metadata);
    let verify = pass("SubscriptionsVerify", &parts.verify, &two);
    let compute = pass("SubscriptionsCompute", &parts.compute, &two);
    let deparser = parts.deparser.clone().unwrap_or_else(|| {
        text.line("");
        text.block(format!("control SubscriptionsDeparser(packet_out packet, in {} hdr)", parts.headers), |text| {
            text.line("apply { packet.emit(hdr); }")
        });
        "SubscriptionsDeparser".to_owned()
    });
    text.line("");
    text.line(format!(
        "V1Switch({}(), {verify}(), Subscriptions(), SubscriptionsEgress(), {compute}(), {deparser}()) main;",
        parts.parser
    ));
    let addition = "\n    // Added: the results of the rule tables, for egress.\n    subscription_t subscription;\n";
    let heading = heading(rules, layout);
    format!("{heading}{}{before}{addition}{behind}\n{}", message::declaration(format, rules, options), text.finish())
}

/// Returns the heading comment with the options that entries must agree with.
fn heading(rules: &RuleFormat, layout: &ColumnLayout) -> String {
    let order = layout.shown(&rules.format).join(",");
    format!(
        "// Generated by `triplane subscribe`. Compile its entries with `--order-of` this file, or with\n// --order {order}\n\n"
    )
}

/// Returns the full names of the program's tables for validity and fields in lookup order, each with the match kind of
/// its key besides the state, if any.
pub fn stage_tables(
    rules: &RuleFormat,
    layout: &ColumnLayout,
    options: &ProgramOptions,
) -> Vec<(String, Option<&'static str>)> {
    let stages = subscribe::stages(&rules.format, layout, &options.target);
    let all = stages.iter().enumerate().flat_map(|(number, stage)| stages::tables(stage, number, &rules.format));
    all.map(|(name, kind)| (format!("Subscriptions.{name}"), kind)).collect()
}

/// Returns the program without tables of rules: its parser, and the control before the rules. It parses packets exactly
/// as the full program does.
pub fn bare(source: &str, format: &ProgramFormat) -> String {
    let parts = &format.parts;
    let mut text = Text::default();
    let two = format!("inout {} hdr, inout {} meta", parts.headers, parts.metadata);
    let three = format!("{two}, inout standard_metadata_t standard_metadata");
    let before = parts.before.as_ref().map(|before| format!("{before}.apply(hdr, meta, standard_metadata);"));
    text.line(format!("control Subscriptions({three}) {{ apply {{ {} }} }}", before.unwrap_or_default()));
    text.line(format!("control SubscriptionsEgress({three}) {{ apply {{}} }}"));
    for name in ["SubscriptionsVerify", "SubscriptionsCompute"] {
        text.line(format!("control {name}({two}) {{ apply {{}} }}"));
    }
    text.line(format!("control SubscriptionsDeparser(packet_out packet, in {} hdr) {{ apply {{}} }}", parts.headers));
    let rest = "SubscriptionsVerify(), Subscriptions(), SubscriptionsEgress(), SubscriptionsCompute(), SubscriptionsDeparser()";
    text.line(format!("V1Switch({}(), {rest}) main;", parts.parser));
    format!("{source}\n{}", text.finish())
}

/// Inputs of the generator.
struct ProgramInputs<'a> {
    format: &'a ProgramFormat,
    rules: &'a RuleFormat,
    stages: Vec<Stage>,
    options: &'a ProgramOptions,
    /// Whether the program, or a control of the format, replicates to ports.
    replicates: bool,
}

impl ProgramInputs<'_> {
    /// Whether the program has counters or aggregates.
    fn is_stateful(&self) -> bool {
        !self.format.counters.is_empty() || !self.format.aggregates.is_empty()
    }
}

/// Returns the name of the table that calls an action of the program.
pub(crate) fn do_table(action: &str) -> String {
    format!("do_{}", text::identifier(action))
}

/// Returns the value of a field, limited to 64 bits, as an expression.
fn amount(inputs: &ProgramInputs<'_>, field: subscribe::FieldId) -> String {
    let field = &inputs.format.fields[usize::from(field.0)];
    let value = format!("{}_value", identifier(&field.name));
    match field.width {
        ..=64 => format!("(bit<64>){value}"),
        width => format!("({value} > {width}w{0:#x} ? 64w{0:#x} : (bit<64>){value})", u64::MAX),
    }
}

/// Returns the expression of a field: `hdr.udp.length`.
fn place(path: &Path) -> String {
    format!("hdr.{}.{}", path.header, path.field)
}
