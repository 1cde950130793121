//! Records traces: all steps of one packet, as a value that can be read, printed and serialised.
//!
//! A [`Trace`] is a list of [`Pass`]es: the received packet is the first; every resubmission, recirculation, clone
//! and multicast copy is a further one that names its parent. A pass has a [`Section`] for each block of the program
//! that ran, with its [`Step`]s, and a [`PassOutcome`]. [`Trace::show_source`] shows conditions as
//! the program's author wrote them; [`Trace::render`] writes the trace for people, [`Trace::to_json`] for programs.
//!
//! An architecture reports the progress of packets to a [`Recorder`]; executors report their steps through
//! [`engine::Watch`]. [`Tracer`] is the recorder that makes a trace, `()` the one that costs nothing.

mod model;
mod recorder;
mod render;
mod shown;
mod source;
mod tracer;
mod value;

pub use model::{HeaderChange, Pass, PassKind, PassOutcome, Section, Step, StepKind, Trace};
pub use recorder::Recorder;
pub use tracer::Tracer;
pub use value::TracedValue;

#[cfg(test)]
mod tests;
