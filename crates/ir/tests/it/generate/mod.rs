//! Generates random valid programs, including unusual names, from a seed.

mod code;
mod expr;

use bits::Bits;
use diagnostics::SourcePosition;
use ir::*;
use rng::SplitMix64;

/// A source of random choices, the same on every platform.
pub struct Random(SplitMix64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(SplitMix64::new(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a number below `end`, or 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.next() % end as u64) as usize }
    }

    pub fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    pub fn pick<'a, T>(&mut self, things: &'a [T]) -> &'a T {
        &things[self.below(things.len())]
    }
}

/// Names that have broken, or could break, printers and readers.
const NAMES: &[&str] = &[
    "a",
    "a.b",
    "a.b.c",
    "b",
    "b.c",
    "c",
    "hdr.x",
    "hdr.x[0]",
    "hdr.x[1]",
    "emit",
    "state",
    "valid",
    "_",
    "",
    ".",
    "..",
    ".b3",
    "x.",
    "1",
    "0x1:8",
    "with space",
    "quote\"",
    "back\\slash",
    "line\nend",
    "tab\t",
    "ünïcödé",
    "\u{0}",
    "a#1",
    "#slot1",
    "slot1",
    "; x:1:1",
    "// no",
    "a[7:0]",
    "$valid$",
    "s",
    "next",
    "\u{202e}",
    "{",
    "}",
    "a -> b",
];

const WIDTHS: &[u32] = &[1, 1, 3, 8, 8, 9, 12, 16, 16, 32, 32, 48, 64, 128, 129, 300];

/// Generator of one program.
pub struct Generator {
    pub random: Random,
    pub program: Program,
    used: std::collections::HashSet<(&'static str, String)>,
    /// The argument slots of the body being generated.
    arguments: Vec<SlotId>,
    /// Kind of the body being generated.
    kind: BodyKind,
}

/// Generates a valid program.
pub fn program(seed: u64) -> Program {
    let mut generator = Generator {
        random: Random::new(seed),
        program: Program::new("v1model"),
        used: Default::default(),
        arguments: Vec::new(),
        kind: BodyKind::Control,
    };
    generator.storage();
    generator.objects();
    generator.code();
    let mut program = generator.program;
    if generator.random.chance(2) {
        program.renumber_locs();
    }
    program
}

impl Generator {
    fn any_name(&mut self) -> String {
        let name = (*self.random.pick(NAMES)).to_owned();
        if self.random.chance(3) { format!("{name}.{}", self.random.pick(NAMES)) } else { name }
    }

    /// Returns a name that is unique within its kind.
    fn name(&mut self, kind: &'static str) -> String {
        let mut name = self.any_name();
        while !self.used.insert((kind, name.clone())) {
            name.push_str(&format!("{}", self.random.below(10)));
        }
        name
    }

    fn width(&mut self) -> u32 {
        *self.random.pick(WIDTHS)
    }

    pub fn bits(&mut self, width: u32) -> Bits {
        let mut bytes: Vec<u8> = (0..width.div_ceil(8)).map(|_| self.random.next() as u8).collect();
        if self.random.chance(3) {
            bytes.fill(*self.random.pick(&[0, 0xff]));
        }
        Bits::from_be_bytes(&bytes, width)
    }

    fn annotations(&mut self) -> Vec<Annotation> {
        let count = if self.random.chance(4) { self.random.below(3) } else { 0 };
        (0..count).map(|_| Annotation { name: self.any_name(), text: self.any_name() }).collect()
    }

    fn loc(&mut self) -> LocId {
        let program = &mut self.program;
        if self.random.chance(2) || program.locs.len() > 100 {
            return LocId::from_u32(self.random.below(program.locs.len()) as u32);
        }
        let file =
            (*self.random.pick(&["a.p4", "dir/b.p4", "with space.p4", "", "q\".p4", "x:1", " #loc2"])).to_owned();
        let line = self.random.below(10) as u32;
        program.locs.push(SourcePosition { file, line, column: self.random.next() as u32 % 5 })
    }

    fn storage(&mut self) {
        for _ in 0..self.random.below(4) {
            let error = self.any_name();
            self.program.errors.push(error);
        }
        for at in 0..2 + self.random.below(3) {
            let mut fields = Vec::new();
            let varbit = if at == 0 { Some(0) } else { None };
            let mut names = std::collections::HashSet::new();
            for at in 0..1 + self.random.below(5) {
                let mut name = self.any_name();
                while !names.insert(name.clone()) {
                    name.push('_');
                }
                let varbit = varbit == Some(at);
                let annotations = self.annotations();
                fields.push(HeaderField {
                    name,
                    width: self.width(),
                    varbit,
                    signed: self.random.chance(5),
                    annotations,
                });
            }
            let (name, annotations) = (self.name("header_type"), self.annotations());
            self.program.header_types.push(HeaderType { name, fields, annotations });
        }
        for _ in 0..2 + self.random.below(10) {
            let local = self.random.chance(4);
            let name = if local { self.any_name() } else { self.name("header") };
            let ty = HeaderTypeId::from_u32(self.random.below(self.program.header_types.len()) as u32);
            self.program.headers.push(Header { name, ty, local });
        }
        for _ in 0..4 + self.random.below(12) {
            let kind = *self.random.pick(&[SlotKind::Metadata, SlotKind::Metadata, SlotKind::Local]);
            let name = if kind == SlotKind::Metadata { self.name("slot") } else { self.any_name() };
            let (width, signed) = (self.width(), self.random.chance(5));
            self.program.slots.push(Slot { name, width, kind, signed });
        }
        for width in [1, 32] {
            let name = self.name("slot");
            self.program.slots.push(Slot { name, width, kind: SlotKind::Metadata, signed: false });
        }
        for _ in 0..self.random.below(3) {
            let (name, ty) = (self.name("stack"), HeaderTypeId::from_u32(0));
            let size = 1 + self.random.below(3) as u32;
            let first = self.program.headers.next_key();
            for _ in 0..size {
                let name = self.name("header");
                self.program.headers.push(Header { name, ty, local: false });
            }
            let next = self.slot_of(32);
            self.program.stacks.push(Stack { name, first, size, next });
        }
    }

    /// Picks a slot of an existing width: widths 1 and 32 exist.
    fn slot_of(&mut self, width: u32) -> SlotId {
        let usable = |(id, slot): &(SlotId, &Slot)| {
            slot.width == width && (slot.kind != SlotKind::Argument || self.arguments.contains(id))
        };
        let slots: Vec<_> = self.program.slots.iter().filter(usable).map(|(id, _)| id).collect();
        *self.random.pick(&slots)
    }

    fn objects(&mut self) {
        for _ in 0..self.random.below(3) {
            let (name, annotations) = (self.name("register"), self.annotations());
            let (width, size) = (self.width(), self.random.below(1000) as u64);
            self.program.registers.push(Register { name, width, size, annotations });
        }
        for _ in 0..self.random.below(4) {
            let unit = *self.random.pick(&[Unit::Packets, Unit::Bytes, Unit::PacketsAndBytes]);
            let size = if self.random.chance(2) { Some(self.random.below(1000) as u64) } else { None };
            let (name, annotations) = (self.name("counter"), self.annotations());
            self.program.counters.push(Counter { name, unit, size, annotations });
        }
        for _ in 0..self.random.below(4) {
            let unit = *self.random.pick(&[Unit::Packets, Unit::Bytes]);
            let size = if self.random.chance(2) { Some(self.random.below(1000) as u64) } else { None };
            let (name, annotations) = (self.name("meter"), self.annotations());
            self.program.meters.push(Meter { name, unit, size, annotations });
        }
        for _ in 0..self.random.below(3) {
            let selector = *self.random.pick(&[None, Some(Algorithm::Crc16), Some(Algorithm::Identity)]);
            let (name, annotations) = (self.name("profile"), self.annotations());
            self.program.profiles.push(Profile { name, size: 7, selector, hash_width: 14, annotations });
        }
        for _ in 0..self.random.below(3) {
            let fields =
                (0..self.random.below(3)).map(|_| (self.any_name(), self.width(), MatchKind::Ternary)).collect();
            let (name, annotations) = (self.name("value_set"), self.annotations());
            self.program.value_sets.push(ValueSet { name, fields, size: 4, annotations });
        }
        for _ in 0..self.random.below(3) {
            let fields = (0..self.random.below(3)).map(|_| (self.any_name(), self.width())).collect();
            let name = self.name("digest");
            self.program.digests.push(Digest { name, fields });
        }
        for list in 0..self.random.below(3) as u32 {
            let mut kept = Vec::new();
            for (id, slot) in &self.program.slots {
                if slot.kind == SlotKind::Metadata && self.random.chance(3) {
                    kept.push(FieldListItem::Slot(id));
                }
            }
            for (id, header) in &self.program.headers {
                if !header.local && self.random.chance(3) {
                    kept.push(FieldListItem::Header(id));
                }
            }
            self.program.field_lists.insert(list * 5, kept);
        }
    }
}
