//! Reads the messages of a packet, as a switch reads them: by the format's own parser, and the program's steps before
//! the rules.

use std::collections::HashMap;

use engine::{Ending, Event, Interpreter, Now, Objects, PacketState, Watch};
use ir::{BodyId, HeaderId, Program};
use subscribe::Message;
use subscribe_p4::format::{Messages, Path};

use super::load::Loaded;
use crate::output::{Failure, Output};

/// The contents of a packet.
pub struct Read {
    /// The messages, in order; the packet itself, if a packet is one message.
    pub messages: Vec<Message>,
    /// The fate of the rest of the packet, if rules do not decide it.
    pub end: Option<String>,
}

/// A reader of a format's packets.
pub struct Reader {
    program: Program,
    parser: BodyId,
    before: BodyId,
    objects: Objects,
    /// Headers by name, without the parser's name for the set of all headers.
    headers: HashMap<String, HeaderId>,
}

/// Positions of the extracted headers, in bits.
#[derive(Default)]
struct Found(HashMap<HeaderId, usize>);

impl Watch for Found {
    fn event(&mut self, _: &Program, event: Event<'_>) {
        if let Event::Extracted { header, at_bit, .. } = event {
            self.0.insert(header, at_bit);
        }
    }
}

/// A packet after the parser.
struct Parsed {
    state: PacketState,
    found: Found,
    ending: Ending,
}

impl Reader {
    /// Creates a reader for packets of this format.
    pub fn new(loaded: &Loaded, output: &Output) -> Result<Reader, Failure> {
        let mut loader = loaded.bare();
        let program = loader.compile();
        loader.report(output)?;
        let program =
            program.ok_or_else(|| Failure::Input("no program can be generated from the format".to_owned()))?.ir;
        let body = |role: &str| {
            program.blocks.get(role).copied().ok_or_else(|| Failure::Input(format!("the format has no {role}")))
        };
        let (parser, before) = (body("parser")?, body("ingress")?);
        let plain = |name: &str| name.split_once('.').map_or(name, |(_, name)| name).to_owned();
        let headers = program.headers.iter().filter(|(_, header)| !header.local);
        let headers = headers.map(|(id, header)| (plain(&header.name), id)).collect();
        Ok(Reader { parser, before, objects: Objects::new(&program), headers, program })
    }

    /// Reads the messages of a packet.
    pub fn read(&mut self, data: &[u8], loaded: &Loaded) -> Read {
        let mut read = Read { messages: Vec::new(), end: None };
        let Some(messages) = &loaded.format.messages else {
            let mut parsed = self.parse(data.to_vec());
            read.end = self.refused(&parsed);
            if self.run(self.before, &mut parsed.state) == Ending::Exit {
                read.end = Some(ends_with_exit(loaded));
                return read;
            }
            read.messages.push(self.message(&parsed.state, None, loaded));
            // A packet that the parser rejects is processed all the same, with the headers extracted so far.
            read.end = read.end.map(|why| format!("{why}; the rules see only the headers extracted before"));
            return read;
        };
        let whole = data.len();
        let mut data = data.to_vec();
        // A packet may have more messages than a stack holds.
        for _ in 0..v1model::Config::default().max_passes {
            match self.pass(&data, whole - data.len(), messages, loaded, &mut read) {
                Some(rest) => data = rest,
                None => return read,
            }
        }
        read.end = Some(format!("the part after message {} is not read", read.messages.len()));
        read
    }

    /// Reads as many messages as a stack holds, and returns the rest of the packet. Earlier passes removed `removed`
    /// bytes of it.
    fn pass(
        &mut self,
        data: &[u8],
        removed: usize,
        messages: &Messages,
        loaded: &Loaded,
        read: &mut Read,
    ) -> Option<Vec<u8>> {
        let mut parsed = self.parse(data.to_vec());
        let before = read.messages.len();
        let lost = |why: String| match before {
            0 => format!("{why}: the packet is dropped"),
            _ => format!("{why}: the messages after the {before} above are lost"),
        };
        // A frame that ends too early may have complete messages before its end.
        if let Some(why) = self.refused(&parsed).filter(|_| !self.is_too_short(&parsed)) {
            read.end = Some(lost(why));
            return None;
        }
        let Some(header) = self.valid(&parsed.state, &messages.count.header) else {
            let parts = &loaded.format.parts;
            let fate = match parts.fallback.as_ref().or(parts.before.as_ref()) {
                Some(control) => format!("`{control}` decides about it"),
                None => "it is dropped".to_owned(),
            };
            let none = format!("the packet has no `{}` and no messages: {fate}", messages.count.header);
            read.end = Some(self.refused(&parsed).map_or(none.clone(), |why| format!("{why}: {none}")));
            return None;
        };
        let field = |id: HeaderId, path: &Path| {
            self.program.layout(id).fields.iter().position(|field| field.name == path.field)
        };
        let field_of_count = field(header, &messages.count)?;
        let count = parsed.state.header(header).fields[field_of_count].low_u128();
        // The length that the packet declares, up to the end of its messages.
        let promised = messages.innermost_length().map(|length| {
            let declared = self
                .valid(&parsed.state, &length.header)
                .and_then(|id| Some(parsed.state.header(id).fields[field(id, length)?].low_u128()));
            (length, declared.unwrap_or(0).saturating_sub(removed as u128))
        });
        if before == 0 && (count == 0 || count == messages.count.all_ones()) {
            let field = &messages.count.field;
            read.end =
                Some(format!("the packet announces no messages (`{field}` is {count}) and is sent to all subscribers"));
            return None;
        }
        let extent = self.extent(&parsed, messages);
        let seen = extent.map_or(0, |(first, end)| (end - first) as u128);
        if let (Some(_), Some((length, promised))) = (extent, promised)
            && promised < seen + u128::from(messages.before)
        {
            let path = format!("`{}.{}`", length.header, length.field);
            read.end = Some(lost(format!("according to {path}, the packet ends before its messages do")));
            return None;
        }
        if self.run(self.before, &mut parsed.state) == Ending::Exit {
            read.end = Some(ends_with_exit(loaded));
            return None;
        }
        let mut done = 0;
        for index in 0..messages.max_messages {
            let is_there = messages.kinds.iter().any(|kind| {
                let name = element(messages, kind.member.as_deref(), index);
                self.valid(&parsed.state, &name).is_some()
            });
            if !is_there {
                break;
            }
            read.messages.push(self.message(&parsed.state, Some((messages, index)), loaded));
            done += 1;
        }
        let left = count.saturating_sub(done);
        if left == 0 {
            return None;
        }
        if done == 0 {
            let number = before + 1;
            read.end = Some(match before {
                0 => "the first message cannot be parsed: the packet is dropped".to_owned(),
                _ if left == 1 => format!("message {number}, the last one, cannot be parsed and is lost"),
                _ => format!("message {number} cannot be parsed: it and the {} after it are lost", left - 1),
            });
            return None;
        }
        self.rest(&parsed, extent?, header, (field_of_count, left))
    }

    /// Returns the byte offsets at which the messages of the stack begin and end: the parser stops after them. Returns
    /// `None` if there are none.
    fn extent(&self, parsed: &Parsed, messages: &Messages) -> Option<(usize, usize)> {
        let stack = format!("{}[", messages.stack);
        let of_messages = self.headers.iter().filter(|(name, _)| name.starts_with(&stack));
        let there = of_messages.map(|(_, id)| parsed.state.header(*id)).filter(|header| header.valid);
        let bits: usize = there.map(engine::HeaderState::len_bits).sum();
        let end = parsed.state.cursor_bits();
        (bits > 0).then(|| (end.saturating_sub(bits) / 8, end.div_ceil(8)))
    }

    /// Returns the packet to recirculate, without the processed messages.
    fn rest(
        &self,
        parsed: &Parsed,
        (first, end): (usize, usize),
        header: HeaderId,
        (field, left): (usize, u128),
    ) -> Option<Vec<u8>> {
        let mut data = parsed.state.data().to_vec();
        let at = *parsed.found.0.get(&header)?;
        let fields = &self.program.layout(header).fields;
        let offset: usize = fields[..field].iter().map(|field| field.width as usize).sum();
        bits::Bits::new(left, fields[field].width).write(&mut data, at + offset);
        data.drain(first..end);
        Some(data)
    }

    fn parse(&mut self, data: Vec<u8>) -> Parsed {
        let mut state = PacketState::new(&self.program, data);
        let mut found = Found::default();
        let now = Now::default();
        let ending = Interpreter::run(&self.program, &mut self.objects, self.parser, &mut state, now, &mut found);
        Parsed { state, found, ending }
    }

    fn run(&mut self, body: BodyId, state: &mut PacketState) -> Ending {
        Interpreter::run(&self.program, &mut self.objects, body, state, Now::default(), &mut ())
    }

    /// Returns the reason why the parser rejects a packet, or `None` if it accepts the packet.
    fn refused(&self, parsed: &Parsed) -> Option<String> {
        match parsed.ending {
            Ending::Return | Ending::Exit => None,
            Ending::Reject => {
                let name = self.program.errors.get(parsed.state.parser_error() as usize);
                Some(format!("the parser rejects the packet ({})", name.map_or("unknown error", String::as_str)))
            }
            _ => Some("the parser does not terminate".to_owned()),
        }
    }

    /// Whether the packet ends before the parser is done.
    fn is_too_short(&self, parsed: &Parsed) -> bool {
        let error = self.program.errors.get(parsed.state.parser_error() as usize);
        error.is_some_and(|name| name == "PacketTooShort")
    }

    /// Returns the header with this name, if it is valid.
    fn valid(&self, state: &PacketState, name: &str) -> Option<HeaderId> {
        self.headers.get(name).copied().filter(|id| state.header(*id).valid)
    }

    /// Returns the packet, or one of its messages, as rules see it.
    fn message(&self, state: &PacketState, of: Option<(&Messages, u32)>, loaded: &Loaded) -> Message {
        let format = &loaded.format;
        let instance = |at: usize| {
            let header = &format.headers[at];
            match of.filter(|_| header.in_message) {
                None => self.valid(state, &header.name),
                Some((messages, index)) => {
                    let kind = messages.kinds.iter().find(|kind| kind.header.0 == at)?;
                    self.valid(state, &element(messages, kind.member.as_deref(), index))
                }
            }
        };
        let mut message = Message::empty(&loaded.rules.format);
        for (valid, any) in message.valid.iter_mut().zip(&loaded.rules.headers) {
            *valid = any.iter().any(|header| instance(header.0).is_some());
        }
        for (value, field) in message.fields.iter_mut().zip(&format.fields) {
            for source in &field.sources {
                let Some(id) = instance(source.header.0) else { continue };
                if let Some(at) = self.program.layout(id).fields.iter().position(|field| field.name == source.member) {
                    *value = state.header(id).fields[at].low_u128();
                }
            }
        }
        message
    }
}

/// Returns the fate of a packet for which the control before the rules ends with `exit`.
fn ends_with_exit(loaded: &Loaded) -> String {
    let before = loaded.format.parts.before.as_deref().unwrap_or("the program");
    format!("`{before}` ends with `exit`: it decides about the packet, not the rules")
}

/// Formats the name of an element of the stack, or of its member.
fn element(messages: &Messages, member: Option<&str>, index: u32) -> String {
    match member {
        Some(member) => format!("{}[{index}].{member}", messages.stack),
        None => format!("{}[{index}]", messages.stack),
    }
}
