//! Defines the events that an executor reports to the observer of a packet: the raw material of traces.

use bits::Bits;
use ir::{
    ActionId, Algorithm, BlockId, BodyId, CounterId, HeaderId, LocId, MeterId, ProfileId, Program, RegisterId, SlotId,
    TableId,
};

use crate::Requested;
use crate::objects::{Colour, EntryHandle, TableEntry};

/// An observer of packets. `()` observes nothing and costs nothing.
pub trait Watch {
    /// Whether the observer wants events; if not, executors do not construct any.
    #[inline]
    fn wants_events(&self) -> bool {
        true
    }

    /// Receives an event.
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

/// The target of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteTarget {
    /// To a slot.
    Slot(SlotId),
    /// To a field of a header.
    Field(HeaderId, u32),
    /// No target: beyond the end of a stack.
    Nowhere,
}

/// An event in the processing of a packet. `loc` is the source location, see [`Program::locs`].
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
        /// The way in which it ended.
        ending: crate::Ending,
    },
    /// The parser enters a state.
    State {
        /// The parser.
        body: BodyId,
        /// The first block of the state; its name is the state's.
        block: BlockId,
    },
    /// A header was extracted.
    Extracted {
        /// The header.
        header: HeaderId,
        /// Start of the header, in bits from the start of the packet.
        at_bit: usize,
        /// Length of the header in bits.
        bits: usize,
        /// Source location.
        loc: LocId,
    },
    /// The parser skipped some bits.
    Advanced {
        /// Number of bits.
        bits: usize,
        /// Source location.
        loc: LocId,
    },
    /// A `select` was evaluated.
    Selected {
        /// The keys.
        keys: &'a [Bits],
        /// Index of the case and its target; `None` if no case matched.
        case: Option<(usize, BlockId)>,
        /// Source location.
        loc: LocId,
    },
    /// A condition was evaluated.
    Branched {
        /// Its value.
        condition: bool,
        /// The next block.
        target: BlockId,
        /// Source location.
        loc: LocId,
    },
    /// A switch was evaluated.
    Switched {
        /// The value.
        subject: &'a Bits,
        /// The next block.
        target: BlockId,
        /// Source location.
        loc: LocId,
    },
    /// A value was written.
    Assigned {
        /// Target of the write.
        place: WriteTarget,
        /// The value.
        value: &'a Bits,
        /// Source location.
        loc: LocId,
    },
    /// A header was copied.
    Copied {
        /// Destination; `None` beyond the end of a stack.
        to: Option<HeaderId>,
        /// Source; `None` beyond the end of a stack.
        from: Option<HeaderId>,
        /// Source location.
        loc: LocId,
    },
    /// A header became valid or invalid.
    Validity {
        /// The header.
        header: HeaderId,
        /// The new validity.
        valid: bool,
        /// Source location.
        loc: LocId,
    },
    /// A table was applied; the body of the action follows.
    Applied {
        /// The table.
        table: TableId,
        /// The key, one element for each of the table's, selectors included.
        key: &'a [Bits],
        /// The entry; `None` for a miss.
        entry: Option<&'a TableEntry>,
        /// The handle of the entry.
        handle: Option<EntryHandle>,
        /// The selected member of the table's profile.
        member: Option<(ProfileId, u32)>,
        /// The action that runs; `None` if the entry's group has no member that is up.
        action: Option<ActionId>,
        /// Its arguments.
        args: &'a [Bits],
        /// Source location.
        loc: LocId,
    },
    /// A register was read.
    RegisterRead {
        /// The register.
        register: RegisterId,
        /// Element index; `None` if it exceeds 64 bits.
        index: Option<u64>,
        /// The value read.
        value: &'a Bits,
        /// Source location.
        loc: LocId,
    },
    /// A register was written. Nothing is written beyond the end.
    RegisterWritten {
        /// The register.
        register: RegisterId,
        /// Element index; `None` if it exceeds 64 bits.
        index: Option<u64>,
        /// The new value.
        value: &'a Bits,
        /// Source location.
        loc: LocId,
    },
    /// The packet was counted. Nothing is counted beyond the end.
    Counted {
        /// The counter.
        counter: CounterId,
        /// Element index; `None` if it exceeds 64 bits.
        index: Option<u64>,
        /// Source location.
        loc: LocId,
    },
    /// The packet was metered.
    Metered {
        /// The meter.
        meter: MeterId,
        /// Element index; `None` for a direct meter, and if it exceeds 64 bits.
        index: Option<u64>,
        /// The meter's result.
        colour: Colour,
        /// Source location.
        loc: LocId,
    },
    /// A checksum or hash was computed; `Assigned` follows.
    Computed {
        /// The algorithm.
        algorithm: Algorithm,
        /// The input.
        data: &'a [u8],
        /// The result, in the width of its destination.
        value: &'a Bits,
        /// Source location.
        loc: LocId,
    },
    /// A request was made to the architecture.
    Requested {
        /// The request.
        request: &'a Requested,
        /// Source location.
        loc: LocId,
    },
    /// A header was appended to the outgoing packet.
    Emitted {
        /// The header.
        header: HeaderId,
        /// Length of the header in bits.
        bits: usize,
        /// Source location.
        loc: LocId,
    },
    /// The parser raised an error.
    ParserError {
        /// Index into [`Program::errors`].
        error: u32,
        /// Source location.
        loc: LocId,
    },
    /// The program logged a message.
    Log {
        /// The message.
        text: &'a str,
        /// Source location.
        loc: LocId,
    },
}
