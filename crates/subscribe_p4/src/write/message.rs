//! Generates the code for single messages: sizes, removal, and updates of the packet's counts.

use crate::format::{MessageKind, Messages, Path, Piece, ProgramFormat, Size};

use super::state::has_clock;
use super::text::Text;
use super::{ProgramOptions, ROUND, RuleFormat, bitmap, numbers, place};

/// Returns the declaration of the metadata type that carries results from ingress to egress.
pub(super) fn declaration(format: &ProgramFormat, rules: &RuleFormat, options: &ProgramOptions) -> String {
    let mut text = Text::default();
    text.line("// Added: the results of the rule tables, for egress.");
    text.block("struct subscription_t", |text| {
        text.line("bit<32> state;                      // of the decision diagram, after the last table");
        if let Some(messages) = &format.messages {
            text.line(format!("@field_list({ROUND}) bit<16> done;        // messages that this pass processed"));
            text.line("bit<32> keep;                       // bytes of the packet to send; 0 for all");
            if numbers::others_leave(format) {
                text.line("bit<1> matched;                     // 1 if rules decide about the packet");
            }
            if goes_alone(format) {
                text.line(
                    "bit<1> around;                      // 1 if the packet itself recirculates, since no message leaves",
                );
            }
            if let Some(bits) = bitmap::pruned(format, options) {
                bitmap::carried(text, bits, messages, options);
            }
            if messages.sequence.is_some() {
                text.line(format!(
                    "@field_list({ROUND}) bit<8> passes;       // number of clones and recirculations"
                ));
                text.line("bit<64> missed;                     // messages that never arrived");
                numbers::carried(text, messages);
            }
            if options.split_horizon {
                text.line(format!("@field_list({ROUND}) bit<9> from;         // input port of the packet"));
            }
        }
        if has_clock(&rules.format) {
            let kept = if format.messages.is_some() { format!("@field_list({ROUND}) ") } else { String::new() };
            text.line(format!("{kept}bit<48> now;         // time of this pass, in microseconds"));
        }
    });
    text.line("");
    text.finish()
}

/// Whether the packet itself may be recirculated if a pass has no subscribers. Otherwise a clone of the packet as it
/// came in is recirculated, because changes by the format's own parts belong to the other messages.
pub(super) fn goes_alone(format: &ProgramFormat) -> bool {
    format.actions.is_empty() && format.parts.before.is_none()
}

/// Writes the heading of the added code.
pub(super) fn metadata(text: &mut Text, format: &ProgramFormat) {
    let fields: Vec<&str> = format.fields.iter().map(|field| field.name.as_str()).collect();
    text.line("");
    text.line(format!("// Added: tables for rules over {}.", fields.join(", ")));
}

/// Returns an element of the stack, or its member, as an expression.
pub(super) fn element(messages: &Messages, kind: &MessageKind, index: u32) -> String {
    let element = format!("hdr.{}[{index}]", messages.stack);
    match &kind.member {
        Some(member) => format!("{element}.{member}"),
        None => element,
    }
}

/// Returns the size of a message in bytes as a 32-bit expression.
pub(super) fn size(messages: &Messages, kind: &MessageKind, index: u32) -> String {
    bytes(&kind.size, &element(messages, kind, index))
}

/// Returns the size in bytes of a header at `element`.
pub(super) fn bytes(size: &Size, element: &str) -> String {
    match size {
        Size::Fixed(bytes) => format!("32w{bytes}"),
        Size::Computed(pieces) => {
            let pieces = pieces.iter().map(|piece| match piece {
                Piece::Text(text) => text.clone(),
                Piece::Field(field) => format!("(bit<32>){element}.{field}"),
            });
            format!("({})", pieces.collect::<String>())
        }
    }
}

/// Writes a chain of `if` over the kinds of a message; `body` writes each branch.
pub(super) fn kinds(
    text: &mut Text,
    messages: &Messages,
    index: u32,
    mut body: impl FnMut(&mut Text, &MessageKind, &str),
) {
    for (at, kind) in messages.kinds.iter().enumerate() {
        let element = element(messages, kind, index);
        let head = if at == 0 { "if" } else { "} else if" };
        text.line(format!("{head} ({element}.isValid()) {{"));
        text.indented(|text| body(text, kind, &element));
    }
    text.line("}");
}

/// Returns the condition that there is a message at `index`.
pub(super) fn is_there(messages: &Messages, index: u32) -> String {
    let valid = messages.kinds.iter().map(|kind| format!("{}.isValid()", element(messages, kind, index)));
    valid.collect::<Vec<_>>().join(" || ")
}

/// Writes code that subtracts `removed` bytes from the packet's length fields.
pub(super) fn shorten(text: &mut Text, messages: &Messages, has_compute: bool) {
    for length in &messages.lengths {
        let shorter = format!("{} - (bit<{}>)removed", place(length), length.width);
        assign(text, messages, has_compute, length, &shorter);
    }
    clear(text, messages, has_compute);
}

/// Writes code that zeroes optional checksums.
pub(super) fn clear(text: &mut Text, messages: &Messages, has_compute: bool) {
    messages.clear.iter().for_each(|cleared| assign(text, messages, has_compute, cleared, "0"));
}

/// Writes code that removes the first `done` messages from the packet's count and sequence number.
pub(super) fn count_off(text: &mut Text, messages: &Messages, has_compute: bool, done: &str) {
    let count = &messages.count;
    let fewer = format!("{} - (bit<{}>){done}", place(count), count.width);
    assign(text, messages, has_compute, count, &fewer);
    if let Some(sequence) = &messages.sequence {
        let later = format!("{} + (bit<{}>){done}", place(sequence), sequence.width);
        assign(text, messages, has_compute, sequence, &later);
    }
}

/// Writes an assignment to a field with an incremental update of the checksum over it (RFC 1624, equation 3), unless
/// the format computes the checksum itself.
pub(super) fn assign(text: &mut Text, messages: &Messages, has_compute: bool, path: &Path, value: &str) {
    let at = place(path);
    let Some(checksum) = messages.checksum.as_ref().filter(|_| !has_compute && messages.covers(path)) else {
        return text.line(format!("{at} = {value};"));
    };
    let (checksum, words) = (place(checksum), words(path));
    text.line("{");
    text.indented(|text| {
        let old: String = words.iter().map(|word| format!(" + (bit<32>)(~{word})")).collect();
        let new: String = words.iter().map(|word| format!(" + (bit<32>){word}")).collect();
        text.line(format!("bit<32> sum = (bit<32>)(~{checksum}){old};"));
        text.line(format!("{at} = {value};"));
        text.line(format!("sum = sum{new};"));
        text.line("sum = (sum & 0xffff) + (sum >> 16);");
        text.line("sum = (sum & 0xffff) + (sum >> 16);");
        text.line(format!("{checksum} = ~(bit<16>)sum;"));
    });
    text.line("}");
}

/// Returns the contributions of a field to its 16-bit words, from the last word to the first.
fn words(path: &Path) -> Vec<String> {
    let at = place(path);
    let end = path.offset.expect("the reader asks for it") + path.width;
    let (mut low, mut shift) = (0, (16 - end % 16) % 16);
    let mut words = Vec::new();
    while low < path.width {
        let high = (low + 16 - shift).min(path.width);
        let bits = match (low, high) {
            (0, high) if high == path.width => at.clone(),
            (low, high) => format!("{at}[{}:{low}]", high - 1),
        };
        words.push(match (high - low, shift) {
            (16, _) => bits,
            (_, 0) => format!("((bit<16>){bits})"),
            (_, shift) => format!("((bit<16>){bits} << {shift})"),
        });
        (low, shift) = (high, 0);
    }
    words
}
