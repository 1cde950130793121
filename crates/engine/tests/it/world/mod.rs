//! Common fixture: a program from text, its objects, and packets that run through its bodies.

use bits::Bits;
use diagnostics::{Diagnostics, SourceMap};
use engine::{Ending, Event, Interpreter, Now, Objects, PacketState, TableEntry, Watch};
use ir::{ActionId, BodyId, HeaderId, KeyValue, Program, TableId};

/// The errors of `core.p4`, prepended to every test's program.
const CORE: &str = "program v1model
errors { NoError PacketTooShort NoMatch StackOutOfBounds HeaderTooShort ParserTimeout ParserInvalidArgument Mine }
";

pub struct World {
    pub program: Program,
    pub objects: Objects,
    pub state: PacketState,
    pub now_ns: u64,
    /// Events of the last run.
    pub events: Vec<String>,
}

/// Records events as text.
pub struct Recorder<'a>(pub &'a mut Vec<String>);

impl Watch for Recorder<'_> {
    fn event(&mut self, _: &Program, event: Event<'_>) {
        self.0.push(format!("{event:?}"));
    }
}

impl World {
    /// Creates a fixture from the text of the IR without its first two lines.
    pub fn new(text: &str) -> World {
        Self::whole(&format!("{CORE}{text}"))
    }

    /// Creates a fixture from the whole text of the IR.
    pub fn whole(text: &str) -> World {
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let file = map.add("test.ir", text);
        let program = ir::parse(&map, file, &mut diagnostics);
        let program = program.unwrap_or_else(|| panic!("{}", diagnostics.render(&map, false)));
        if let Err(violations) = ir::validate(&program) {
            panic!("{violations:#?}\n{text}");
        }
        let (objects, state) = (Objects::new(&program), PacketState::new(&program, Vec::new()));
        World { program, objects, state, now_ns: 0, events: Vec::new() }
    }

    fn body(&self, name: &str) -> BodyId {
        self.program.bodies.iter().find(|(_, body)| body.name == name).expect("the body is there").0
    }

    /// Runs a body on a new packet.
    pub fn run(&mut self, body: &str, packet: &[u8]) -> Ending {
        self.state.reset(&self.program, packet.to_vec());
        self.go_on(body)
    }

    /// Runs a body on the packet in its current state.
    pub fn go_on(&mut self, body: &str) -> Ending {
        let body = self.body(body);
        self.events.clear();
        let now = Now { ns: self.now_ns };
        let mut watch = Recorder(&mut self.events);
        Interpreter::run(&self.program, &mut self.objects, body, &mut self.state, now, &mut watch)
    }

    pub fn slot(&self, name: &str) -> Bits {
        self.state.slot(self.program.slot_named(name).expect("the slot is there")).clone()
    }

    pub fn set(&mut self, name: &str, value: u64) {
        let slot = self.program.slot_named(name).expect("the slot is there");
        self.state.set_slot_to(slot, value);
    }

    /// Returns the value of a slot as a number.
    pub fn get(&self, name: &str) -> u64 {
        self.slot(name).low_u64()
    }

    pub fn header(&self, name: &str) -> HeaderId {
        self.program.headers.iter().find(|(_, header)| header.name == name).expect("the header is there").0
    }

    pub fn valid(&self, header: &str) -> bool {
        self.state.header(self.header(header)).valid
    }

    /// Returns a header's fields as text.
    pub fn fields(&self, header: &str) -> String {
        format!("{:?}", self.state.header(self.header(header)).fields)
    }

    pub fn error(&self) -> &str {
        &self.program.errors[self.state.parser_error() as usize]
    }

    pub fn table(&self, name: &str) -> TableId {
        self.program.table_named(name).expect("the table is there")
    }

    pub fn action(&self, name: &str) -> ActionId {
        self.program.actions.iter().find(|(_, action)| action.name == name).expect("the action is there").0
    }

    /// Creates an entry that runs the action `set(v: 8)` or another one with an 8-bit parameter.
    pub fn entry(&self, keys: Vec<KeyValue>, priority: i32, action: &str, arg: u8) -> TableEntry {
        TableEntry::new(keys, priority, self.action(action), vec![Bits::new(u128::from(arg), 8)])
    }
}

/// Returns `value` in 8 bits.
pub fn byte(value: u8) -> Bits {
    Bits::new(u128::from(value), 8)
}
