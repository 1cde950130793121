//! Checks the shipped machines of `resilient`: all runs within bounds, instead of random ones.
//!
//! ```text
//!   SystemState: switches (StateReplica and a program), nodes (StoreNode), messages under way, history
//!        │ deliver, repeat, tick, wake, input, crash, forget, change the chain
//!        ▼
//!   SystemState ── every output is judged with `resilient::history`, every state for two owners
//! ```
//!
//! [`SystemModel`] is a model of `stateright`, which visits each state once. Two runs lead to the same state if all
//! values that determine later behaviour are equal (the types themselves hash them, with the feature `simulation`), as
//! well as the order of outputs and inputs in the history. Losses need no action: a message may remain in flight for
//! ever. Clocks run at the extremes of their drift: slow at switches and fast at nodes.
//!
//! The crate is for tests only. `cargo run --release -p resilient_model` runs the large bounds.

mod bounds;
mod coverage;
mod model_switch;
mod network;
mod observed;
mod operator;
mod search;
mod system;

pub use bounds::{ModelBounds, RowInput};
pub use coverage::Coverage;
pub use model_switch::{ModelSwitch, SwitchEffect};
pub use network::{Hashed, MessageSet, SentMessage};
pub use observed::ObservedHistory;
pub use search::{ModelViolation, SearchReport, search};
pub use system::{SystemAction, SystemModel, SystemState};
