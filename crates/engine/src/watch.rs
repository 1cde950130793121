//! What an executor tells whoever watches a packet: the raw material of traces.

use bits::Bits;
use ir::{
    ActionId, Algorithm, BlockId, BodyId, CounterId, HeaderId, LocId, MeterId, ProfileId, Program, RegisterId, SlotId,
    TableId,
};

use crate::Requested;
use crate::objects::{Colour, TableEntry};

/// Someone who watches packets. `()` watches nothing and costs nothing.
pub trait Watch {
    /// Whether events are wanted at all; executors do not put events together when it is false.
    #[inline]
    fn wants_events(&self) -> bool {
        true
    }

    /// Something has happened.
    fn event(&mut self, program: &Program, event: Event<'_>);
}

impl Watch for () {
    #[inline]
    fn wants_events(&self) -> bool {
        false
    }

    #[inline]
    fn event(&mut self, _: &Program, _: Event<'_>) {}
}

/// Where a value was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// To a slot.
    Slot(SlotId),
    /// To a field of a header.
    Field(HeaderId, u32),
    /// Nowhere: beyond the end of a stack.
    Nowhere,
}

/// Something that happened to a packet. `loc` is the place in the source, see [`Program::locs`].
#[derive(Clone, Debug, PartialEq)]
pub enum Event<'a> {
    /// A body begins: a parser or control, or (after `Applied`) an action.
    BodyBegins {
        /// The body.
        body: BodyId,
    },
    /// A body ended.
    BodyEnds {
        /// The body.
        body: BodyId,
        /// How.
        ending: crate::Ending,
    },
    /// The parser is in a state.
    State {
        /// The parser.
        body: BodyId,
        /// The first block of the state; its name is the state's.
        block: BlockId,
    },
    /// A header was taken off the packet.
    Extracted {
        /// Which.
        header: HeaderId,
        /// Where it began, in bits from the start of the packet.
        at_bit: usize,
        /// How long it is, in bits.
        bits: usize,
        /// Place.
        loc: LocId,
    },
    /// The parser skipped some bits.
    Advanced {
        /// How many.
        bits: usize,
        /// Place.
        loc: LocId,
    },
    /// The parser chose by keys.
    Selected {
        /// The keys.
        keys: &'a [Bits],
        /// Index of the case and its target; `None` if no case matched.
        case: Option<(usize, BlockId)>,
        /// Place.
        loc: LocId,
    },
    /// A condition decided.
    Branched {
        /// Its value.
        condition: bool,
        /// Where it went.
        target: BlockId,
        /// Place.
        loc: LocId,
    },
    /// A value decided.
    Switched {
        /// The value.
        subject: &'a Bits,
        /// Where it went.
        target: BlockId,
        /// Place.
        loc: LocId,
    },
    /// A value was written.
    Assigned {
        /// Where to.
        place: Written,
        /// The value.
        value: &'a Bits,
        /// Place.
        loc: LocId,
    },
    /// A header was copied.
    Copied {
        /// To; `None` beyond the end of a stack.
        to: Option<HeaderId>,
        /// From; `None` beyond the end of a stack.
        from: Option<HeaderId>,
        /// Place.
        loc: LocId,
    },
    /// A header became valid or invalid.
    Validity {
        /// Which.
        header: HeaderId,
        /// What it is now.
        valid: bool,
        /// Place.
        loc: LocId,
    },
    /// A table was looked up; the body of the action follows.
    Applied {
        /// Which.
        table: TableId,
        /// The key, an element for each of the table's, selectors included.
        key: &'a [Bits],
        /// The entry; `None` for a miss.
        entry: Option<&'a TableEntry>,
        /// The member of the table's profile that was chosen.
        member: Option<(ProfileId, u32)>,
        /// The action that runs; `None` if the entry's group has no member that is up.
        action: Option<ActionId>,
        /// Its arguments.
        args: &'a [Bits],
        /// Place.
        loc: LocId,
    },
    /// A register was read.
    RegisterRead {
        /// Which.
        register: RegisterId,
        /// Element; `None` beyond 64 bits.
        index: Option<u64>,
        /// What it holds.
        value: &'a Bits,
        /// Place.
        loc: LocId,
    },
    /// A register was written. Nothing is written beyond the end.
    RegisterWritten {
        /// Which.
        register: RegisterId,
        /// Element; `None` beyond 64 bits.
        index: Option<u64>,
        /// What it holds now.
        value: &'a Bits,
        /// Place.
        loc: LocId,
    },
    /// The packet was counted. Nothing is counted beyond the end.
    Counted {
        /// Which.
        counter: CounterId,
        /// Element; `None` beyond 64 bits.
        index: Option<u64>,
        /// Place.
        loc: LocId,
    },
    /// The packet was metered.
    Metered {
        /// Which.
        meter: MeterId,
        /// Element; `None` for a direct meter, and beyond 64 bits.
        index: Option<u64>,
        /// What the meter said.
        colour: Colour,
        /// Place.
        loc: LocId,
    },
    /// A checksum or hash was computed; `Assigned` follows.
    Computed {
        /// How.
        algorithm: Algorithm,
        /// Over what.
        data: &'a [u8],
        /// The result in the width of its destination.
        value: &'a Bits,
        /// Place.
        loc: LocId,
    },
    /// Something was asked of the architecture.
    Requested {
        /// What.
        request: &'a Requested,
        /// Place.
        loc: LocId,
    },
    /// A header was appended to the outgoing packet.
    Emitted {
        /// Which.
        header: HeaderId,
        /// How long it is, in bits.
        bits: usize,
        /// Place.
        loc: LocId,
    },
    /// The parser raised an error.
    ParserError {
        /// Index into [`Program::errors`].
        error: u32,
        /// Place.
        loc: LocId,
    },
    /// The program reported something.
    Log {
        /// What.
        text: &'a str,
        /// Place.
        loc: LocId,
    },
}
