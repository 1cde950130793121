//! What happened to one packet, step by step, as a value that can be read, printed and serialised.
//!
//! A [`Trace`] is a list of [`Pass`]es: the packet as it came in is the first; every resubmission, recirculation,
//! clone and multicast copy is a further one that names its parent. A pass has [`Section`]s, one for each block of the
//! program that ran, with the [`Step`]s in it, and an [`Outcome`]. [`Trace::render`] writes it for people,
//! [`Trace::to_json`] for programs.
//!
//! An architecture tells a [`Recorder`] where a packet stands; executors tell it ([`engine::Watch`]) what they do.
//! [`Tracer`] is the recorder that makes a trace, `()` the one that costs nothing.

mod model;
mod recorder;
mod render;
mod shown;
mod tracer;
mod value;

pub use model::{Change, Outcome, Pass, PassKind, Section, Step, Trace, What};
pub use recorder::Recorder;
pub use tracer::Tracer;
pub use value::Value;

#[cfg(test)]
mod tests;
