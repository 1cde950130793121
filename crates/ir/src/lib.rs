//! Pipeline IR: what a packet program does, small enough to hold in the head.
//!
//! The central type is [`Program`]. A compiler makes one from a P4 program, and an executor runs it: the interpreter,
//! which says what it means, or something faster that has to agree. This page says what a program is and how it is
//! evaluated; the types repeat the details where they belong.
//!
//! # What there is while a packet is in the pipeline
//!
//! **The packet** is a string of bytes. A parser walks over it from the front with a cursor that counts bits, and
//! takes headers off. What it did not take is the payload. A deparser puts headers in front of the payload again.
//!
//! **Header instances** ([`Header`]) are all known beforehand: a program can only ever have the headers it declares,
//! each of a [`HeaderType`], which is a list of fields in wire order. An instance has a validity bit and a value for
//! each field. A field is a bit vector of a fixed width, but for at most one *variable* field in a type, whose width is
//! decided by each extraction, between 0 and its largest.
//!
//! **Header stacks** ([`Stack`]) are runs of neighbouring instances of one type that can be named by a computed index
//! ([`HeaderRef::Element`]). The index of the next element to extract is an ordinary slot, and moving it is an ordinary
//! assignment.
//!
//! **Slots** ([`Slot`]) are named bit vectors: metadata, which lives as long as the packet is in the pipeline; locals,
//! which live as long as the body that uses them runs; and arguments, which whoever runs an action fills before. There
//! is no other storage: structs, unions, local variables, parameters and return values of the P4 program have all
//! become slots and header instances, named by their full path.
//!
//! **Objects** outlive the packet: [`Table`]s with their entries, [`Profile`]s, [`Register`]s, [`Counter`]s,
//! [`Meter`]s and [`ValueSet`]s. The control plane knows them by name.
//!
//! # How a body runs
//!
//! Code is in bodies ([`Body`]): parsers, controls and actions. A body is a list of blocks, and a block is a straight
//! line of instructions ([`Op`]) with a terminator ([`Terminator`]) at its end. Evaluation begins at `block0`, executes
//! the instructions one after the other, and goes where the terminator says, until one ends the body. An instruction
//! sees everything that those before it did. Its operands are expressions ([`Expr`]), trees that are computed from
//! slots, headers and constants, without any effect; whatever has an effect is an instruction of its own, so no order
//! of evaluation within an expression can be observed.
//!
//! The architecture runs bodies by their role ([`Program::blocks`]): for v1model `parser`, `verify_checksum`,
//! `ingress`, `egress`, `compute_checksum` and `deparser`. What happens between them, and which slots it reads and
//! writes then (`standard_metadata.egress_spec`, say), is the architecture's business.
//!
//! Bodies may have loops: a parser's states, and `for` statements. Nothing here bounds them; an executor stops a body
//! after a number of blocks and drops the packet.
//!
//! # Parsers
//!
//! A parser's blocks are its states and what its states needed in between; [`Block::is_state`] tells the two apart for
//! traces. Extracting a header reads its fields at the cursor, moves the cursor behind them, and makes it valid;
//! looking ahead reads and leaves the cursor where it is; advancing moves it. [`Terminator::Select`] tries its cases in
//! order. [`Terminator::Return`] accepts.
//!
//! A *parser error* is an index into [`Program::errors`]. Some instructions raise one: `PacketTooShort`,
//! `HeaderTooShort`, `StackOutOfBounds`, `NoMatch` and `ParserInvalidArgument` are raised by name, wherever the program
//! declares them, and [`Op::Verify`] raises whichever it is given. Raising an error ends the parser as
//! [`Terminator::Reject`] does, and what was extracted before stays. Whether the packet is dropped then is the
//! architecture's to say; v1model goes on to ingress with the error in its metadata.
//!
//! # Tables and actions
//!
//! [`Op::Apply`] evaluates the table's key expressions, looks the values up, and runs an action: that of the entry
//! found (of the member, for a table with a profile), or the default action on a miss. The entry's arguments are written
//! to the action's argument slots ([`ActionParam`]), the action's body runs, and evaluation goes on behind the
//! application. Hit or miss, and which of the table's actions ran, can be had in slots, and the program branches on
//! those as on any others. A lookup may also be answered *not yet* by tables that live elsewhere; the executor then gives
//! the packet back and the body runs again later from a copy taken before.
//!
//! [`Terminator::Exit`] ends the body it is in and, from an action, the body that applied the table. What exits is the
//! architecture's block; exiting in ingress does not skip egress.
//!
//! Actions that only the program calls have been inlined; an [`Action`] is what an entry can name. An action's body
//! applies no tables, so bodies nest two deep at most and no executor needs a stack.
//!
//! Entries that the program gives ([`Entry`]) are in the table from the start; a control plane can change those that are
//! not constant, as themselves or with all of the table's. Annotations that nothing in the compiler
//! consumed stay on what they annotate.
//!
//! # Requests
//!
//! Some things are asked for while a body runs and happen when it has ended: cloning, resubmitting, recirculating,
//! truncating and sending a digest ([`Request`]). The instruction evaluates its operands at once and leaves a request;
//! the architecture acts on what was left. A field list ([`Program::field_lists`]) says which slots and headers a copy
//! keeps.
//!
//! # What would be undefined
//!
//! P4 leaves some things undefined. Here all of them have one meaning, so that executors can be compared bit by bit:
//!
//! - Every slot is 0, and every header invalid with fields of 0, when a packet enters the pipeline.
//! - Fields of an invalid header read as they were last written. Writing to them changes them and not the validity.
//! - Beyond the end of a stack there is an invalid header of zeros: reads give that, writes go nowhere, and extracting
//!   it raises `StackOutOfBounds`.
//! - Division by zero and the remainder by zero are 0. A shift by the width or more leaves nothing but, for
//!   [`BinaryOp::ShrSigned`], the sign. Everything else wraps, unless its name says that it saturates.
//! - Registers read 0 beyond their end; writes there, and counts, go nowhere; meters are green.
//!
//! # What holds of every program that runs
//!
//! [`validate()`] checks it, and its page numbers the rules: ids name something, widths agree, each instruction stands in
//! a kind of body that may have it, every block is reachable, entries fit their tables, sizes are within limits. Code
//! that consumes programs relies on these rules and does not check them again. An expression's width is not stored: it
//! follows from its parts ([`Program::width`]).
//!
//! # What the IR refuses to know
//!
//! There are no types but bit vectors of a width: `bool` is one bit, errors and enums are 32, and signedness is a
//! property of operators ([`Slot::signed`] and its like matter only to people, and to the comparison of ranges in a
//! key). There are no scopes, no copy-in and copy-out, no functions, no structs, no header unions, no generics and no
//! externs with methods: all of those were rules for turning P4 into this. There are no ports, queues or clocks, and
//! nothing of protobuf or P4Runtime. There are no pointers, and no storage whose size is not known beforehand.
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
//! header's name, `hdr.vlan[meta.i]` an element of the stack `hdr.vlan`, and `meta.i[7:0]` a slice. Names that are not
//! words of letters, digits, `_`, `$`, dots and indices, or that are keywords, stand in quotes. If two entities share a
//! name, the later ones are written with their number (`tmp#slot8`); numbers follow the order of declaration. `;` begins a
//! place in the P4 source, `//` a comment. Places are numbered as they are mentioned; a program that numbers them
//! otherwise prints a list of them at its end ([`Program::put_places_in_order`] makes that unnecessary).
//!
//! Parts of programs print, with names for ids, by `display_expr`, `display_op` and their like; traces and violations
//! use those.

mod body;
mod expr;
mod objects;
mod print;
mod program;
mod read;
mod text;
pub mod validate;

pub use body::*;
pub use expr::*;
pub use objects::*;
pub use program::*;
pub use read::parse;
pub use validate::{
    MAX_ALL_ARRAYS, MAX_ARRAY_SIZE, MAX_EXPR_DEPTH, MAX_HEADER_BITS, MAX_NAME, MAX_REGISTER_BITS, Rule, Violation,
    validate,
};
