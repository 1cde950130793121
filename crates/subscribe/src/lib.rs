//! Packet subscriptions: filters over the contents of messages, compiled into table entries.
//!
//! ```text
//! stock == "GOOGL" and price > 50 : fwd(1, 2)
//! rule large: shares >= 10_000 and not stock in {"AAPL", "MSFT"} : fwd(3); to_controller
//! stock == "GOOGL" and avg(price over 100ms) > 60 : fwd(4)
//! ```
//!
//! A subscriber says which messages it wants; the switch delivers those, and only those. All rules that match a message
//! act, in no order: a message goes to the ports of all of them together (Jepsen et al.: Packet Subscriptions for
//! Programmable ASICs, HotNets 2018).
//!
//! ```text
//! Format ──┐
//! text ──> parse ──> Rule ──> Subscriptions: diagram of each rule ──> union of all ──> states and entries ──> Change
//!          (diagnostics)                     lower                    merge            emit, slice
//! ```
//!
//! - [`Format`] is what rules may speak of. Whoever knows the program fills it in; this crate knows no P4.
//! - [`parse`](parse::parse) reads rule files; the grammar is on the page of [its module](mod@parse). [`Rule`] is what it gives, and what programs can make.
//! - [`Layout`] is the order of the fields, [chosen](Layout::sensible) for rules such as there will be, and [`stages`] what tables
//!   there are. They follow from the format, the [`Target`] and the order, so that a program made once serves any rules.
//! - [`Subscriptions`] holds rules that come and go. A change costs what it changes, and comes back as a [`Change`] of
//!   the tables; [`Subscriptions::tables`] gives all of them.
//! - [`Tables::run`] is what the tables mean (the page of [`tables`] says it in words), [`Subscriptions::evaluate`] what the rules mean. They agree on every
//!   message.
//! - [`Chain`] is tables as a switch has them, right or not; [`compare`] says whether two of them do the same with every message.
//!
//! **Headers that are not valid.** A test of a field is false where the field's header is not valid, whatever it asks, and
//! `not` of it is therefore true: `stock != "A"` is for messages with a stock, `not (stock == "A")` for the others too. The
//! diagram asks for the validity of all headers first, and asks no field of a header that is not valid.
//!
//! **State.** Tests of counters and aggregates see the values before the message; what a message changes, the next one
//! sees. An aggregate is computed over the messages for which the rest of its rule holds, that is the rule's condition
//! with every test of an aggregate taken as true. Rules that differ only in what they compare it with, or in tests of its key,
//! share it. A [`Format`] may say what a program computes ([`Format::compute`]); rules then use nothing else, and keys that
//! they name have a [`Place`]. [`Memory`] is what registers in a data plane have to hold.
//!
//! Nothing here does I/O, reads a clock or starts a thread. Limits ([`Limits`]) are numbers of nodes, bytes and steps.

#![forbid(unsafe_code)]

mod acts;
pub mod chain;
mod check;
mod codes;
mod computed;
mod covered;
mod crossing;
mod dot;
mod emit;
mod evaluate;
mod explain;
mod format;
mod groups;
mod layout;
mod lex;
mod lower;
mod memory;
mod merge;
mod never;
mod order;
pub mod parse;
mod prefixes;
mod ranges;
mod refusal;
mod report;
mod rule;
mod show;
mod slice;
mod slots;
pub mod state;
mod stats;
mod subscriptions;
pub mod tables;
mod value;
mod veto;
pub mod workload;

pub use chain::Chain;
pub use check::{Difference, compare, difference};
pub use computed::{Computed, Place};
pub use covered::Covered;
pub use evaluate::Message;
pub use explain::{Decided, Explanation, Verdict};
pub use format::{
    ActionDeclaration, ActionId, Counter, CounterId, Field, FieldId, Format, FormatError, Header, HeaderId, Kind,
    MAX_WIDTH, Match, NoName, Padding, Parameter, Subject, Window, max_of,
};
pub use layout::{Key, Layout, OrderError};
pub use lex::SIGN_WORDS;
pub use memory::Memory;
pub use parse::{
    Loader, MAX_BYTES, MAX_DEPTH, MAX_FILES, MAX_PARTS, NoIncludes, WORDS, aggregate, condition, constant, named_once,
    parse, window,
};
pub use prefixes::cover;
pub use ranges::Ranges;
pub use refusal::{Refusal, TooMuch};
pub use report::Useless;
pub use rule::{Action, Aggregate, Condition, Function, Operand, Rule, Test, Update, UpdateFunction};
pub use show::Shown;
pub use slots::SlotUse;
pub use stats::{StageSize, Stats};
pub use subscriptions::{Applied, Limits, Options, RuleId, Subscriptions, Writes};
pub use tables::{
    Change, CodeEntry, Delivery, Entry, EntryKey, Group, Leaf, Stage, StageKey, State, Tables, Target, Wide, stages,
};
pub use value::{Constant, show as show_value};
