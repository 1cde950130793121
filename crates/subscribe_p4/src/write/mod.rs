//! The whole program, as text.

mod counters;
mod egress;
mod ingress;
mod message;
mod names;
mod numbers;
mod stages;
mod state;
mod text;

use subscribe::{Layout, Stage, Target};

use crate::Rules;
use crate::format::{Format, Messages, Path};
use crate::groups;
use text::Text;

pub(crate) use counters::{update_table, with_field};
pub(crate) use names::{METADATA, TOP_LEVEL, is_declared, is_written};
pub(crate) use stages::{VALIDITY, codes_table, part_name, to_code, validity, wide_name};
pub(crate) use state::{COUNTS, cells, place_table};
pub(crate) use text::identifier;

/// The replication group of all ports that any rule delivers to: heartbeats go there.
pub const EVERYONE: u16 = 0x7fff;
/// The mirror session by which what is left of a packet goes round once more.
pub const REST_SESSION: u16 = 1;

/// The list of fields that what is left of a packet takes with it as it goes round.
const ROUND: u8 = 1;

/// How often Triplane's switch clones a packet, or has it go round, with all that it was before: what it would drop the program
/// opens a gap for, where messages are numbered. To leave and to go round take two of these, to go round alone takes one.
pub(crate) const PASSES: u8 = 64;

/// The port for which a packet goes to egress only to go round: any would do.
const AROUND: u16 = 510;

/// How the program is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// What tables can match.
    pub target: Target,
    /// How many messages are matched in one pass; what is left goes round. `None` for as many as the stack has. With 1,
    /// every table is applied in one place, as switches want it whose tables are stages.
    pub messages_per_pass: Option<u32>,
    /// The size of each table, in entries.
    pub table_size: u32,
    /// Whether there is a table of pairs of ports between which nothing is copied (`split_horizon`), as switches need it that
    /// deliver to each other.
    pub split_horizon: bool,
}

impl Default for Options {
    fn default() -> Self {
        let target = Target {
            exact_beside: false,
            max_group: groups::COMPILED,
            one_update: true,
            carries: true,
            ..Target::default()
        };
        Options { target, messages_per_pass: None, table_size: 1 << 20, split_horizon: false }
    }
}

impl Options {
    fn per_pass(&self, messages: &Messages) -> u32 {
        self.messages_per_pass.unwrap_or(messages.most).clamp(1, messages.most)
    }
}

/// The text of the program that matches rules over `format`: `source`, the main file's text, with a field added to its
/// metadata, and behind it the controls and the package.
///
/// A message (or a packet, if it has none) goes through the stages in order: the tables of a field take the state and the
/// field's value to the next state, and the leaf table takes the last state to a port or a group. The tables are called
/// after the field and its place in the order (`stock_exact_3`, `price_range_5`), and each has one for all other values
/// (`stock_rest_3`).
///
/// # Several messages
///
/// Messages are matched in order. Those that nobody asked for are taken out. The ones before the first whose subscribers
/// are others than those of the messages before it stay, and leave as one packet for their subscribers; what is left,
/// from that message on or beyond what one pass can match, goes round once more as a packet of its own (a clone, which is
/// recirculated). So every subscriber gets the messages that it asked for and no others, in order; a packet with n messages
/// costs one pass, and one more for each change of subscribers among the messages that anyone wants. Where a pass finds none that
/// anyone wants, the packet itself goes round, unless the format's own parts may have changed it. Counts, lengths and
/// checksums are those of the packets that leave.
///
/// Where messages are numbered, each port's are numbered anew without gaps, from 1 on, in a register: a subscriber finds
/// out by a gap that a packet to it was lost. A gap in what comes in becomes a gap in every subscriber's numbers, since
/// nobody knows for whom the lost messages were. Gaps are counted apart for each port that packets come in on, from the first
/// number there on. If packets say which session they belong to, all of that is a session's, and begins anew with another one. Packets without messages (count 0, and all ones) go to everyone. What a switch lets go round
/// no further (64 passes), or cannot be read, is lost, and a gap in every subscriber's numbers like one that comes in.
pub fn program(source: &str, format: &Format, rules: &Rules, layout: &Layout, options: &Options) -> String {
    let parts = &format.parts;
    let stages = subscribe::stages(&rules.format, layout, &options.target);
    let written = Written { format, rules, stages, options };
    let (before, behind) = source.split_at(parts.metadata_at);
    let mut text = Text::default();
    message::metadata(&mut text, format);
    ingress::control(&mut text, &written);
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
    let addition = "\n    // Added: what the rules' tables leave for egress.\n    subscription_t subscription;\n";
    let heading = heading(rules, layout);
    format!("{heading}{}{before}{addition}{behind}\n{}", message::declaration(format, rules, options), text.finish())
}

/// What entries have to agree with.
fn heading(rules: &Rules, layout: &Layout) -> String {
    let order = layout.shown(&rules.format).join(",");
    format!(
        "// Made by `triplane subscribe`. Entries for it are compiled with `--order-of` this file, or with\n// --order {order}\n\n"
    )
}

/// The program's tables for validity and fields in the order in which they are asked, by their full names: the match kind of what
/// each looks up beside the state, if it does.
pub fn stage_tables(rules: &Rules, layout: &Layout, options: &Options) -> Vec<(String, Option<&'static str>)> {
    let stages = subscribe::stages(&rules.format, layout, &options.target);
    let all = stages.iter().enumerate().flat_map(|(number, stage)| stages::tables(stage, number, &rules.format));
    all.map(|(name, kind)| (format!("Subscriptions.{name}"), kind)).collect()
}

/// The program without tables of rules: its parser, and what it does before the rules. With it a packet can be read as the
/// whole program reads it.
pub fn bare(source: &str, format: &Format) -> String {
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

/// What the program is written from.
struct Written<'a> {
    format: &'a Format,
    rules: &'a Rules,
    stages: Vec<Stage>,
    options: &'a Options,
}

impl Written<'_> {
    /// Whether the program has counters or aggregates.
    fn remembers(&self) -> bool {
        !self.format.counters.is_empty() || !self.format.aggregates.is_empty()
    }
}

/// The table that calls an action of the program.
pub(crate) fn do_table(action: &str) -> String {
    format!("do_{}", text::identifier(action))
}

/// The value of a field in 64 bits.
fn amount(written: &Written<'_>, field: subscribe::FieldId) -> String {
    let field = &written.format.fields[usize::from(field.0)];
    let value = format!("{}_value", identifier(&field.name));
    match field.width {
        ..=64 => format!("(bit<64>){value}"),
        width => format!("({value} > {width}w{0:#x} ? 64w{0:#x} : (bit<64>){value})", u64::MAX),
    }
}

/// `hdr.udp.length`.
fn place(path: &Path) -> String {
    format!("hdr.{}.{}", path.header, path.field)
}
