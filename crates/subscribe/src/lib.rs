//! Implements packet subscriptions: filters over the contents of messages, compiled into table entries.
//!
//! ```text
//! stock == "GOOGL" and price > 50 : fwd(1, 2)
//! rule large: shares >= 10_000 and not stock in {"AAPL", "MSFT"} : fwd(3); to_controller
//! stock == "GOOGL" and avg(price over 100ms) > 60 : fwd(4)
//! ```
//!
//! A subscriber states which messages it wants, and the switch delivers exactly those. All rules that match a message
//! apply, without an order: a message goes to the union of their ports. The rule language is that of Packet
//! Subscriptions (Jepsen et al., Packet Subscriptions for Programmable ASICs, HotNets 2018; the compiler of that paper
//! is Camus).
//!
//! ```text
//! message format ──┐
//! rule text ──> parse ──> Rule ──> diagram of each rule ──> union of all ──> states and entries ──> table change
//!                                  lower             union_trie         emit, slice
//! ```
//!
//! - [`MessageFormat`] is the vocabulary of rules. Its creator knows the program; this crate knows no P4.
//! - [`parse`](parse::parse) reads rule files; [its module](mod@parse) documents the grammar. [`Rule`] is the result;
//!   programs can construct rules, too.
//! - [`ColumnLayout`] is the order of the fields, [chosen](ColumnLayout::sensible) for the expected rules, and
//!   [`stages`] derives the tables. Both follow from the format, the [`TargetCapabilities`] and the order, so one
//!   generated program serves any rules.
//! - [`Subscriptions`] holds a changing set of rules as a decision diagram in normal form: nodes are hash-consed step
//!   functions of one column. The cost of a change is proportional to its effect, and the result is a [`TableChange`];
//!   [`Subscriptions::tables`] returns the full tables.
//! - [`Tables::run`] defines the meaning of the tables ([`tables`] describes it), [`Subscriptions::evaluate`] that of
//!   the rules. They agree on every message.
//! - [`TableChain`] holds tables as installed on a switch, correct or not; [`compare`] checks whether two of them treat
//!   every message alike.
//!
//! **Invalid headers.** Any test of a field is false if the field's header is not valid, and `not` of it is therefore
//! true: `stock != "A"` selects messages with a stock, `not (stock == "A")` also those without one. The diagram tests
//! the validity of all headers first and tests no field of an invalid header.
//!
//! **State.** Tests of counters and aggregates read the values before the message; updates by a message are visible to
//! the next one. An aggregate is computed over the messages for which the rest of its rule holds, that is, the rule's
//! condition with every aggregate test taken as true. An average, a minimum or a maximum over no messages has no value,
//! and a test of it is false. Rules that differ only in the constant that they compare it with, or in tests of its key,
//! share the state. A [`MessageFormat`] may declare the aggregates that a program computes
//! ([`MessageFormat::compute`]); rules then use only those, and keys that they name have a [`KeyCell`]. [`Memory`] is
//! the reference semantics of registers in a data plane.
//!
//! The crate does no I/O, reads no clock and starts no thread. [`Limits`] count nodes, bytes and steps.

#![forbid(unsafe_code)]

mod compile;
mod equivalence;
mod format;
mod inspect;
mod lint;
mod ranges;
mod reference;
mod refusal;
mod rule;
mod subscriptions;
mod syntax;
pub mod tables;
pub mod workload;

pub use compile::aggregates::{ComputedAggregate, KeyCell, MAX_LINKED_KEY_FIELDS, WINDOW_LIMIT_US};
pub use compile::layout::{ColumnKey, ColumnLayout, OrderError};
pub use compile::prefixes::cover;
pub use compile::slots::{SlotIdentity, SlotUse};
pub use compile::state;
pub use equivalence::chain::{self, TableChain};
pub use equivalence::check::{Difference, TooLargeToCompare, compare, difference};
pub use format::{
    ActionDeclaration, ActionId, Counter, CounterId, FieldDeclaration, FieldId, FormatError, HeaderDeclaration,
    HeaderId, MAX_WIDTH, Match, MessageFormat, NameError, Padding, Parameter, Subject, ValueKind, Window, max_of,
};
pub use inspect::explain::{Explanation, TestOutcome, Verdict};
pub use inspect::stats::{StageSize, Stats};
pub use lint::covered::CoverageReport;
pub use lint::finding::LintFinding;
pub use ranges::Ranges;
pub use reference::evaluate::Message;
pub use reference::memory::Memory;
pub use refusal::{ExceededLimit, Refusal};
pub use rule::{
    Aggregate, AggregateWindow, Condition, Function, Operand, Rule, RuleAction, Term, Test, Update, UpdateFunction,
};
pub use subscriptions::{AppliedChange, CompileOptions, Limits, RuleId, Subscriptions, UpdateMode};
pub use syntax::lex::SIGN_WORDS;
pub use syntax::parse::{
    self, IncludeError, Loader, MAX_BYTES, MAX_DEPTH, MAX_FILES, MAX_PARTS, NoIncludes, WORDS, aggregate, condition,
    constant, named_once, parse, window,
};
pub use syntax::show::Shown;
pub use syntax::value::{Constant, ConstantMismatch, show as show_value};
pub use tables::{
    CodeEntry, Delivery, EntryKey, Leaf, PortGroup, Stage, StageEntry, StageKey, StateId, TableChange, Tables,
    TargetCapabilities, Wide, stages,
};
