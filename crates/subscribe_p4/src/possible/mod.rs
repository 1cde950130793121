//! Computes possible packets: the combinations of valid headers and field values that the program's parser can produce.
//!
//! This is an abstract interpretation of the parser. An abstract state (`parse`) holds what is known of the packet at a
//! parser state: header validity, ranges of field values, and ranges of bits ahead of the cursor. The analysis is
//! path-sensitive in validity: it keeps one abstract state per parser state and set of valid headers, and joins value
//! ranges. `select` and `lookahead` refine values (`select`); the transfer function of any other code sets whatever it
//! may write to unknown (`effects`). Widening drops ranges that become too fragmented, so that the fixed-point
//! iteration terminates. The result is sound: whatever it excludes cannot occur. Packets that end too early count:
//! v1model's rules see the headers before their end, unless the packet has several messages.

mod effects;
mod header_paths;
mod interpreter;
mod refine;

use std::collections::BTreeMap;

use p4::typed::{Control, Program};
use subscribe::Ranges;

use crate::format::{Bound, HeaderId, ProgramFormat};
use effects::Effects;
use header_paths::HeaderPaths;

/// Values of a header's fields by name; absent fields may have any value.
pub type Values = BTreeMap<String, Ranges>;

/// Known properties of the headers that a packet has once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownHeaders {
    /// Validity of headers, if known.
    pub valid: BTreeMap<HeaderId, bool>,
    /// Values of fields in valid headers.
    pub values: BTreeMap<HeaderId, Values>,
}

/// Known properties of packets and messages; `None` if nothing is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Possible {
    /// Every packet satisfies one of these; with several messages per packet, every packet that has a message does.
    pub packets: Option<Vec<KnownHeaders>>,
    /// Every message is of one of these kinds. Any message may occur in any packet that has messages.
    pub messages: Option<BTreeMap<HeaderId, Values>>,
}

/// Returns the known properties of packets at the point at which rules are matched.
pub(crate) fn read(program: &Program, format: &ProgramFormat) -> Possible {
    let known = HeaderPaths::new(program, format).and_then(|paths| behind(program, format, &paths));
    known.unwrap_or_default()
}

/// Whether the control before the rules may clone the packet.
pub(crate) fn clones_before(program: &Program, format: &ProgramFormat) -> bool {
    let paths = HeaderPaths::new(program, format);
    let before = program.controls.values().find(|control| Some(&*control.name) == format.parts.before.as_deref());
    paths.zip(before).is_some_and(|(paths, before)| Effects::of_control(program, &paths, before).clones)
}

fn behind(program: &Program, format: &ProgramFormat, paths: &HeaderPaths<'_>) -> Option<Possible> {
    let parser = program.parsers.values().find(|parser| *parser.name == *format.parts.parser)?;
    let parsed = interpreter::interpret(program, parser, paths, format.messages.is_none())?;
    // Effects of the controls between the parser and the rules.
    let mut before = Effects::default();
    for name in [&format.parts.verify, &format.parts.before].into_iter().flatten() {
        let control: &Control = program.controls.values().find(|control| *control.name == **name)?;
        before.add(Effects::of_control(program, paths, control));
    }
    // An action called for one message may write to the following ones.
    let mut between = Effects::default();
    for action in &format.actions {
        let of = program.actions.values().find(|known| *known.name == *action.name)?;
        let headers = action.bound.iter().position(|bound| *bound == Bound::Headers);
        if let Some(param) = headers.and_then(|at| of.params.get(at)) {
            between.add(Effects::of_block(program, paths, param.var, &of.body));
        }
    }
    let mut packets: BTreeMap<_, _> = BTreeMap::new();
    for mut state_in in parsed.packets {
        state_in.apply(&before);
        if let Some(messages) = &format.messages {
            let count = format.headers.iter().position(|header| header.name == messages.count.header)?;
            if state_in.valid[count] == Some(false) || *state_in.has_message() == Some(false) {
                continue;
            }
            (state_in.valid[count], *state_in.has_message()) = (Some(true), Some(true));
        }
        interpreter::join(&mut packets, state_in.valid, state_in.values);
    }
    let packets = packets.into_iter().map(|(valid, values)| paths.given(&valid, values)).collect();
    let is_known = format.messages.is_some() && !(before.messages || between.messages);
    let messages = parsed.messages.filter(|_| is_known);
    let messages = messages.map(|of| of.into_iter().map(|(kind, values)| (kind, paths.named(kind, values))).collect());
    Some(Possible { packets: Some(packets), messages })
}
