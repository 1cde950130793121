//! Drives the compiler: one function compiles a P4 source to a program that can be run.
//!
//! ```text
//!               preprocess      parse       check                 lower
//!  Source ──────────────> tokens ──> ast ──────> typed::Program ──┬────> ir::Program ─────┬──> CompiledProgram
//!    + Architecture                                               │      describe         │          │
//!                                                                 └────> P4Info ──────────┘      ProgramFile
//!                                                                          └─ restrictions        (`.tpl`)
//! ```
//!
//! [`compile`] is the only answer to the question whether a program is valid. `triplane check` and every command that
//! runs a program, the P4Runtime server, tests and benchmarks call it. [`tokenize`], [`check`] and [`fn@lower`] stop
//! earlier, for callers that want an intermediate result; [`compile_checked`] goes on from what `check` returned.
//!
//! # Order and stop rules
//! One run reports as many mistakes as possible, but none that only follows from another. The steps, in their order:
//!
//! 1. *Preprocess, parse* run always. Both recover from mistakes.
//! 2. *Check* runs unless an included file was not found or not readable: it would report every name that the file
//!    declares. A syntax error does not stop it.
//! 3. *Lower* runs if no step before reported an error, since only then there is a typed program.
//! 4. *Describe* (P4Info) runs if *lower* ran and `main` is an instance of the architecture's package; externs of
//!    another architecture have no description. Both steps read the typed program, so errors of *lower* do not stop
//!    it.
//! 5. *Restrictions* are checked if *describe* reported no error: they name tables and fields, and an incomplete P4Info
//!    lacks some.
//!
//! Restrictions are `@entry_restriction`, `@action_restriction` and `@refers_to` (crate `p4_constraints`). The result
//! is a program if and only if no step reported an error; warnings never change that. [`check_restrictions`] is also
//! the last step for a [`ProgramFile`]: its parser has checked everything else.
//!
//! A program whose `main` is missing, or is a package of another architecture, is not valid: *lower* reports it.
//! Callers that accept libraries ask [`is_for`] between [`check`] and [`compile_checked`], as `triplane check` does.
//!
//! A name that two instances would show to the control plane is a warning: the program runs, and the objects after the
//! first are called `t (2)`, `t (3)`. Where control-plane names matter, callers ask [`check_names`] and refuse it.
//!
//! # One architecture
//! An [`Architecture`] is a value that callers hand in. It is the sum of the files that programs include, a check of
//! declarations, the lowering of its constructs ([`lower::ArchitectureLowering`]) and its view for control planes
//! ([`p4info::ControlPlaneModel`]). This crate knows no architecture by name, no switch, and no file but by the
//! [`p4::Loader`] of a [`Source`].

#![forbid(unsafe_code)]

mod arch;
mod driver;
mod file;
mod missing_include;
mod shared_names;
mod source;

pub use arch::Architecture;
pub use driver::{
    CompiledProgram, check, check_restrictions, compile, compile_checked, expect_program, is_for, lower, tokenize,
};
pub use file::{
    ContentError, DifferentPart, Disagreement, FORMAT, FilePart, MAX_FILE_BYTES, ProgramFile, ProgramFileError,
    TooLargeToEmit, TooManyParts, WidthOf, agree, is_program_file,
};
pub use shared_names::check_names;
pub use source::Source;
