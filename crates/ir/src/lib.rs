//! Defines the pipeline IR: a representation of packet programs that is small enough to keep in mind.
//!
//! The central type is [`Program`]. The compiler produces one from a P4 program, and an executor runs it: the
//! interpreter, which defines its meaning, or a faster one that has to agree with the interpreter. This page specifies
//! the structure of a program and its evaluation; the types repeat the details.
//!
//! # State of a packet in the pipeline
//!
//! **The packet** is a string of bytes. A parser moves a cursor, which counts bits, over it from the front and extracts
//! headers. The rest is the payload. A deparser puts headers in front of the payload again.
//!
//! **Header instances** ([`Header`]) are all known statically: a program has only the headers that it declares. Each
//! has a [`HeaderType`], which is a list of fields in wire order. An instance has a validity bit and a value for each
//! field. A field is a bit vector of fixed width, except for at most one *variable* field per type. Each extraction
//! sets the width of that field, between 0 and its maximum.
//!
//! **Header stacks** ([`Stack`]) are sequences of adjacent instances of one type that can be indexed by a computed
//! value ([`HeaderRef::Element`]). The index of the next element to extract is an ordinary slot; advancing it is an
//! ordinary assignment.
//!
//! **Slots** ([`Slot`]) are named bit vectors: metadata, which lives as long as the packet is in the pipeline; locals,
//! which live as long as the body that uses them runs; and arguments, which the caller of an action writes before it
//! runs. There is no other storage: structs, unions, local variables, parameters and return values of the P4 program
//! have all become slots and header instances, named by their full path.
//!
//! **Objects** outlive the packet: [`Table`]s with their entries, [`Profile`]s, [`Register`]s, [`Counter`]s, [`Meter`]s
//! and [`ValueSet`]s. The control plane identifies them by name.
//!
//! # Execution of a body
//!
//! Code is in bodies ([`Body`]): parsers, controls and actions. A body is a list of basic blocks, and a block is a
//! sequence of instructions ([`Op`]) followed by a terminator ([`Terminator`]). Execution begins at `block0`, executes
//! the instructions in order, and continues at the block that the terminator selects, until a terminator ends the body.
//! An instruction observes the effects of all instructions before it. Its operands are expressions ([`Expr`]): trees
//! that are computed from slots, headers and constants without side effects. Every side effect is an instruction of its
//! own, so no order of evaluation within an expression can be observed.
//!
//! The architecture runs bodies by their role ([`Program::blocks`]): for v1model `parser`, `verify_checksum`,
//! `ingress`, `egress`, `compute_checksum` and `deparser`. The architecture defines what happens between them, and
//! which slots it reads and writes then (for example `standard_metadata.egress_spec`).
//!
//! Bodies may contain loops: cycles of parser states, and `for` statements. The IR does not bound them; an executor
//! stops a body after a number of blocks and drops the packet.
//!
//! # Parsers
//!
//! A parser's blocks are the first blocks of its states and the blocks in between; [`Block::is_state`] distinguishes
//! the two for traces. Extracting a header reads its fields at the cursor, moves the cursor past them, and makes the
//! header valid. A lookahead reads without moving the cursor; an advance only moves it. [`Terminator::Select`] tries
//! its cases in order. [`Terminator::Return`] accepts.
//!
//! A *parser error* is an index into [`Program::errors`]. Some instructions raise one: `PacketTooShort`,
//! `HeaderTooShort`, `StackOutOfBounds`, `NoMatch` and `ParserInvalidArgument` are raised by name, wherever the program
//! declares them, and [`Op::Verify`] raises the error of its operand. Raising an error ends the parser as
//! [`Terminator::Reject`] does; headers extracted before stay valid. The architecture decides whether the packet is
//! then dropped; v1model continues with ingress and stores the error in its metadata.
//!
//! # Tables and actions
//!
//! [`Op::Apply`] evaluates the table's key expressions, looks up the values, and runs an action: that of the matching
//! entry (of the member, for a table with a profile), or the default action on a miss. The entry's arguments are
//! written to the action's argument slots ([`ActionParam`]), the action's body runs, and execution continues after the
//! application. Slots can receive whether the lookup hit and which of the table's actions ran; the program branches on
//! these as on any other slots. A table that lives elsewhere may also answer *not yet*. The executor then returns the
//! packet, and the body runs again later from a copy made before.
//!
//! [`Terminator::Exit`] ends the body it is in and, from an action, the body that applied the table. It ends the
//! current block of the architecture: exiting in ingress does not skip egress.
//!
//! Actions that only the program calls have been inlined; an [`Action`] is one that an entry can name. An action's body
//! applies no tables, so bodies nest at most two deep and no executor needs a stack.
//!
//! Entries of the program ([`Entry`]) are in the table from the start. A control plane can change those that are not
//! constant, unless all entries of the table are. Annotations that the compiler did not consume stay on the
//! declarations they annotate.
//!
//! # Requests
//!
//! Some operations are requested while a body runs and performed after it has ended: cloning, resubmitting,
//! recirculating, truncating and sending a digest ([`Request`]). The instruction evaluates its operands at once and
//! records a request; the architecture acts on the recorded requests. A field list ([`Program::field_lists`]) names the
//! slots and headers that a copy preserves.
//!
//! # Undefined behaviour of P4
//!
//! P4 leaves some behaviour undefined. The IR defines all of it, so that executors can be compared bit by bit:
//!
//! - Every slot is 0, and every header is invalid with fields of 0, when a packet enters the pipeline.
//! - Fields of an invalid header read as their last written value. Writing to them changes their value but not the
//!   validity.
//! - An out-of-bounds element of a stack is an invalid header of zeros: reads yield it, writes have no effect, and
//!   extracting it raises `StackOutOfBounds`.
//! - Division and remainder by zero are 0. A shift by the width or more leaves only zeros or, for
//!   [`BinaryOp::ShrSigned`], copies of the sign bit. All other operations wrap, unless their name says that they
//!   saturate.
//! - Registers read 0 out of bounds; out-of-bounds writes and counts have no effect; out-of-bounds meters are green.
//!
//! # Invariants of every executable program
//!
//! [`validate()`] checks them, and its page numbers the rules: ids are in range, widths agree, each instruction is in a
//! body of a kind that permits it, every block is reachable, entries fit their tables, sizes are within limits. Code
//! that consumes programs relies on these rules and does not check them again. An expression's width is not stored: it
//! follows from its operands ([`Program::width`]).
//!
//! # What the IR refuses to know
//!
//! There are no types except bit vectors of a width: `bool` is 1 bit, errors and enums are 32 bits, and signedness is a
//! property of operators ([`Slot::signed`] and similar flags matter only to people, and to range comparison in a key).
//! There are no scopes, no copy-in and copy-out, no functions, no structs, no header unions, no generics and no externs
//! with methods: lowering from P4 resolves all of these. There are no ports, queues or clocks, and nothing of protobuf
//! or P4Runtime. There are no pointers, and no storage whose size is not known statically.
//!
//! # The text form
//!
//! A program prints ([`Display`](std::fmt::Display)) as text that people can read and edit and that [`parse`] reads
//! back as an equal program:
//!
//! ```text
//! program v1model
//! errors { NoError PacketTooShort NoMatch }
//! header_type ethernet_t { dstAddr: 48  srcAddr: 48  etherType: 16 }
//! header hdr.ethernet: ethernet_t
//! metadata standard_metadata.egress_spec: 9
//! argument MyIngress.forward.port: 9
//!
//! action MyIngress.forward(port: MyIngress.forward.port) body MyIngress.forward
//! table MyIngress.mac {  ; basic.p4:71:5
//!   key hdr.ethernet.dstAddr: exact 48 = hdr.ethernet.dstAddr
//!   action MyIngress.forward
//!   default MyIngress.forward(0x1:9)
//! }
//! role parser: MyParser
//!
//! parser MyParser {
//!   state start:
//!     extract hdr.ethernet  ; basic.p4:49:9
//!     branch (hdr.ethernet.etherType & 0xff00:16) == 0x800:16 -> ip else "accept it"
//!   ...
//! ```
//!
//! A constant carries its width (`0x800:16`), operators have no precedence, and signed operators end in `s` (`<s`).
//! `hdr.ethernet.etherType` is the slot of that name or, if there is none, the field of a header. `hdr.vlan[1]` is a
//! header's name, `hdr.vlan[meta.i]` an element of the stack `hdr.vlan`, and `meta.i[7:0]` a slice. Names that are
//! keywords, or that are not words of letters, digits, `_`, `$`, dots and indices, are quoted. If several entities
//! share a name, the later ones are written with their number (`tmp#slot8`); numbers follow the order of declaration.
//! `;` begins a position in the P4 source, `//` a comment. Positions are numbered in the order in which they are first
//! mentioned; a program that numbers them differently prints a list of them at its end ([`Program::renumber_locs`]
//! makes the list unnecessary).
//!
//! `display_expr`, `display_op` and similar methods print parts of programs with names in place of ids, for traces and
//! violations.

mod body;
mod elastic;
mod expr;
pub mod fold;
mod objects;
mod print;
mod program;
mod read;
mod resilient;
mod text;
pub mod validate;
pub mod visit;

pub use body::*;
pub use elastic::{ELASTIC, ELASTIC_EXPANSION_BITS, ElasticMistake, ElasticPrefix, ElasticSettings};
pub use expr::*;
pub use objects::*;
pub use program::*;
pub use read::parse;
pub use resilient::{
    DEFAULT_TABLE_ROWS, MAX_PAGE_BYTES, MAX_ROW_BYTES, MAX_ROW_KEY_BYTES, MAX_SNAPSHOT_BYTES, NumberRange, RESILIENT,
    ReplicationMode, ResilientGroup, ResilientMistake, ResilientObject, ResilientTable, RowOrigin, SnapshotSettings,
    StaleAction,
};
pub use validate::{
    MAX_ALL_ARRAYS, MAX_ARRAY_SIZE, MAX_DATA_BITS, MAX_EXPR_DEPTH, MAX_NAME, MAX_REGISTER_BITS, Rule, Violation,
    validate,
};
