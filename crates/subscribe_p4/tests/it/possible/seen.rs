//! Results of a switch's parser and of the control before the rules.

use std::collections::HashMap;
use std::sync::Arc;

use compiler::Source;
use engine::{Ending, Interpreter, Now, Objects, PacketState};
use ir::{BodyId, HeaderId, Program};
use subscribe::Message;

use crate::possible::Read;

/// A format that parses packets.
pub struct Seen<'a> {
    read: &'a Read,
    program: Arc<Program>,
    objects: Objects,
    parser: BodyId,
    before: BodyId,
    headers: HashMap<String, HeaderId>,
}

impl<'a> Seen<'a> {
    pub fn new(read: &'a Read) -> Seen<'a> {
        let text = subscribe_p4::bare(&read.text, &read.format);
        let source = Source::new("program.p4", &text);
        let program = Arc::new(compiler::expect_program(&source, &v1model::V1Model).ir);
        let plain = |name: &str| name.split_once('.').map_or(name, |(_, name)| name).to_owned();
        let headers = program.headers.iter().filter(|(_, header)| !header.local);
        let headers = headers.map(|(id, header)| (plain(&header.name), id)).collect();
        let objects = Objects::new(&program);
        let (parser, before) = (program.blocks["parser"], program.blocks["ingress"]);
        Seen { read, program, objects, parser, before, headers }
    }

    /// Returns the headers that the parser finds, its result, and the message that rules see.
    pub fn packet(&mut self, bytes: &[u8]) -> ((Vec<bool>, bool), Vec<Message>) {
        let mut state = PacketState::new(&self.program, bytes.to_vec());
        let ending =
            Interpreter::run(&self.program, &mut self.objects, self.parser, &mut state, Now::default(), &mut ());
        let is_read = matches!(ending, Ending::Return | Ending::Exit);
        assert!(is_read || matches!(ending, Ending::Reject), "{ending:?}");
        let mut way: Vec<(HeaderId, bool)> = self.headers.values().map(|id| (*id, state.header(*id).valid)).collect();
        way.sort();
        let way = (way.into_iter().map(|(_, valid)| valid).collect(), is_read);
        let Some(messages) = &self.read.format.messages else {
            self.run(&mut state);
            return (way, vec![self.message(&state, &|_| None)]);
        };
        // Conditions that the program checks before it looks for messages.
        if !is_read || !self.is_valid(&state, &messages.count.header) {
            return (way, Vec::new());
        }
        self.run(&mut state);
        let mut found = Vec::new();
        for index in 0..messages.max_messages {
            let of = |kind: &subscribe_p4::format::MessageKind| match &kind.member {
                Some(member) => format!("{}[{index}].{member}", messages.stack),
                None => format!("{}[{index}]", messages.stack),
            };
            if messages.kinds.iter().any(|kind| self.is_valid(&state, &of(kind))) {
                let name = |at: usize| messages.kinds.iter().find(|kind| kind.header.0 == at).map(of);
                found.push(self.message(&state, &name));
            }
        }
        (way, found)
    }

    fn run(&mut self, state: &mut PacketState) {
        Interpreter::run(&self.program, &mut self.objects, self.before, state, Now::default(), &mut ());
    }

    fn is_valid(&self, state: &PacketState, name: &str) -> bool {
        state.header(self.headers[name]).valid
    }

    /// Returns a message with these valid headers besides those of the packet.
    fn message(&self, state: &PacketState, of_message: &dyn Fn(usize) -> Option<String>) -> Message {
        let format = &self.read.format;
        let instance = |at: usize| {
            let name = of_message(at).unwrap_or_else(|| format.headers[at].name.clone());
            Some(self.headers[&name]).filter(|id| state.header(*id).valid)
        };
        let mut message = Message::empty(&self.read.rules.format);
        for (valid, any) in message.valid.iter_mut().zip(&self.read.rules.headers) {
            *valid = any.iter().any(|header| instance(header.0).is_some());
        }
        for (value, field) in message.fields.iter_mut().zip(&format.fields) {
            for source in &field.sources {
                let Some(id) = instance(source.header.0) else { continue };
                let fields = &self.program.layout(id).fields;
                let at = fields.iter().position(|field| field.name == source.member).expect("a field");
                *value = state.header(id).fields[at].low_u128();
            }
        }
        message
    }
}
