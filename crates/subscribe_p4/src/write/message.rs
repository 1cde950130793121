//! What is done with a message, wherever it lies: sizes, taking it out, and the packet's own counts.

use crate::format::{Format, Kind, Messages, Path, Piece, Size};

use super::state::has_clock;
use super::text::Text;
use super::{Options, ROUND, Rules, numbers, place};

/// What the tables leave for egress, as a type.
pub(super) fn declaration(format: &Format, rules: &Rules, options: &Options) -> String {
    let mut text = Text::default();
    text.line("// Added: what the rules' tables leave for egress.");
    text.block("struct subscription_t", |text| {
        text.line("bit<32> state;                      // of the diagram, after the last table");
        if let Some(messages) = &format.messages {
            text.line(format!("@field_list({ROUND}) bit<16> done;        // messages that this pass dealt with"));
            text.line("bit<32> keep;                       // bytes of the packet that leaves; 0 for all");
            if messages.sequence.is_some() {
                text.line(format!("@field_list({ROUND}) bit<8> rounds;       // how often it went round before"));
                text.line("bit<64> missed;                     // messages that never came here");
                numbers::carried(text, messages);
            }
            if options.split_horizon {
                text.line(format!("@field_list({ROUND}) bit<9> from;         // the port that the packet came in on"));
            }
        }
        if has_clock(&rules.format) {
            let kept = if format.messages.is_some() { format!("@field_list({ROUND}) ") } else { String::new() };
            text.line(format!("{kept}bit<48> now;         // the time of this pass, in microseconds"));
        }
    });
    text.line("");
    text.finish()
}

/// The heading of what is added behind the program.
pub(super) fn metadata(text: &mut Text, format: &Format) {
    let fields: Vec<&str> = format.fields.iter().map(|field| field.name.as_str()).collect();
    text.line("");
    text.line(format!("// Added: tables for rules over {}.", fields.join(", ")));
}

/// An element of the stack, or its member.
pub(super) fn element(messages: &Messages, kind: &Kind, index: u32) -> String {
    let element = format!("hdr.{}[{index}]", messages.stack);
    match &kind.member {
        Some(member) => format!("{element}.{member}"),
        None => element,
    }
}

/// A message's bytes as an expression of 32 bits.
pub(super) fn size(messages: &Messages, kind: &Kind, index: u32) -> String {
    match &kind.size {
        Size::Fixed(bytes) => format!("32w{bytes}"),
        Size::Computed(pieces) => {
            let element = element(messages, kind, index);
            let pieces = pieces.iter().map(|piece| match piece {
                Piece::Text(text) => text.clone(),
                Piece::Field(field) => format!("(bit<32>){element}.{field}"),
            });
            format!("({})", pieces.collect::<String>())
        }
    }
}

/// A chain of `if` over the kinds that a message may be, with what `body` writes for each.
pub(super) fn kinds(text: &mut Text, messages: &Messages, index: u32, mut body: impl FnMut(&mut Text, &Kind, &str)) {
    for (at, kind) in messages.kinds.iter().enumerate() {
        let element = element(messages, kind, index);
        let head = if at == 0 { "if" } else { "} else if" };
        text.line(format!("{head} ({element}.isValid()) {{"));
        text.indented(|text| body(text, kind, &element));
    }
    text.line("}");
}

/// Whether there is a message at `index`.
pub(super) fn is_there(messages: &Messages, index: u32) -> String {
    let valid = messages.kinds.iter().map(|kind| format!("{}.isValid()", element(messages, kind, index)));
    valid.collect::<Vec<_>>().join(" || ")
}

/// Makes the packet say that `removed` bytes are gone.
pub(super) fn shorten(text: &mut Text, messages: &Messages, has_compute: bool) {
    for length in &messages.lengths {
        let checksum = messages.checksum.as_ref().filter(|checksum| !has_compute && checksum.header == length.header);
        if let Some(checksum) = checksum {
            replace_checksummed(text, length, checksum);
        } else {
            let at = place(length);
            text.line(format!("{at} = {at} - (bit<{}>)removed;", length.width));
        }
    }
    for cleared in &messages.clear {
        text.line(format!("{} = 0;", place(cleared)));
    }
}

/// Changes a word and the checksum over it (RFC 1624, equation 3).
fn replace_checksummed(text: &mut Text, length: &Path, checksum: &Path) {
    let (length, checksum) = (place(length), place(checksum));
    text.line("{");
    text.indented(|text| {
        text.line(format!("bit<32> sum = (bit<32>)(~{checksum}) + (bit<32>)(~{length});"));
        text.line(format!("{length} = {length} - (bit<16>)removed;"));
        text.line(format!("sum = sum + (bit<32>){length};"));
        text.line("sum = (sum & 0xffff) + (sum >> 16);");
        text.line("sum = (sum & 0xffff) + (sum >> 16);");
        text.line(format!("{checksum} = ~(bit<16>)sum;"));
    });
    text.line("}");
}
