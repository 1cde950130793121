//! Defines [`Architecture`], the value that callers hand to the compiler.

use std::fmt::Debug;

use diagnostics::Diagnostics;
use p4::ast;

/// An architecture: the part of a switch that a P4 program does not describe itself.
///
/// It bundles the views that the compiler's steps have of it: files for the preprocessor, target lowering for
/// `lower`, a control-plane model for P4Info. A crate such as `v1model` implements all of them for one type.
pub trait Architecture: lower::ArchitectureLowering + p4info::ControlPlaneModel + Debug + Send + Sync {
    /// Returns the files that programs include (`v1model.p4`), as names and texts.
    fn includes(&self) -> &'static [(&'static str, &'static str)];

    /// Returns the name of the package whose instance `main` makes a program one for this architecture.
    fn package(&self) -> &'static str;

    /// Reports declarations that the language allows but the architecture does not, wherever they come from: programs
    /// may bring an architecture file of their own.
    fn check_declarations(&self, program: &ast::Program, diagnostics: &mut Diagnostics);
}
