//! Which headers can be there together, and which values their fields can have then, as the program's parser makes it
//! out.
//!
//! The parser is followed through its states with what is known of the packet so far (`parse`): each state with every
//! set of valid headers that comes there. `select` and `lookahead` tell of values; whatever is not understood leaves what
//! it may write unknown (`effects`). So what is said to be impossible is. Packets that end too early count: v1model's
//! rules see the headers before their end, unless the packet has several messages.

mod effects;
mod parse;
mod places;
mod select;

use std::collections::BTreeMap;

use p4::typed::{Control, Program};
use subscribe::Ranges;

use crate::format::{Bound, Format, HeaderId};
use effects::Effects;
use places::Places;

/// Values of a header's fields, by their names; the others may have any.
pub type Values = BTreeMap<String, Ranges>;

/// What is known of the headers that a packet has once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Whether headers are valid, where that is known.
    pub valid: BTreeMap<HeaderId, bool>,
    /// Values in headers that are valid.
    pub values: BTreeMap<HeaderId, Values>,
}

/// What is known of packets and messages; `None` where nothing is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Possible {
    /// Every packet is one of these; if packets have several messages, every packet with one.
    pub packets: Option<Vec<Given>>,
    /// Every message is of one of these kinds; any message may be in any packet that has messages.
    pub messages: Option<BTreeMap<HeaderId, Values>>,
}

/// What is known of packets when the rules see them.
pub(crate) fn read(program: &Program, format: &Format) -> Possible {
    let known = Places::new(program, format).and_then(|places| behind(program, format, &places));
    known.unwrap_or_default()
}

fn behind(program: &Program, format: &Format, places: &Places<'_>) -> Option<Possible> {
    let parser = program.parsers.values().find(|parser| *parser.name == *format.parts.parser)?;
    let parsed = parse::follow(program, parser, places, format.messages.is_none())?;
    // What comes between the parser and the rules.
    let mut before = Effects::default();
    for name in [&format.parts.verify, &format.parts.before].into_iter().flatten() {
        let control: &Control = program.controls.values().find(|control| *control.name == **name)?;
        before.add(Effects::of_control(program, places, control));
    }
    // An action that is called for one message may write to the ones behind it.
    let mut between = Effects::default();
    for action in &format.actions {
        let of = program.actions.values().find(|known| *known.name == *action.name)?;
        let headers = action.bound.iter().position(|bound| *bound == Bound::Headers);
        if let Some(param) = headers.and_then(|at| of.params.get(at)) {
            between.add(Effects::of_block(program, places, param.var, &of.body));
        }
    }
    let mut packets: BTreeMap<_, _> = BTreeMap::new();
    for mut world in parsed.packets {
        world.apply(&before);
        if let Some(messages) = &format.messages {
            let count = format.headers.iter().position(|header| header.name == messages.count.header)?;
            if world.valid[count] == Some(false) || *world.has_message() == Some(false) {
                continue;
            }
            (world.valid[count], *world.has_message()) = (Some(true), Some(true));
        }
        parse::join(&mut packets, world.valid, world.values);
    }
    let packets = packets.into_iter().map(|(valid, values)| places.given(&valid, values)).collect();
    let is_known = format.messages.is_some() && !(before.messages || between.messages);
    let messages = parsed.messages.filter(|_| is_known);
    let messages = messages.map(|of| of.into_iter().map(|(kind, values)| (kind, places.named(kind, values))).collect());
    Some(Possible { packets: Some(packets), messages })
}
