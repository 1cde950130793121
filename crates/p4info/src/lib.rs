//! Generates P4Info, the description of a program for its control plane, as specified by P4Runtime 1.5.
//!
//! ```text
//! typed::Program ── inventory ──> what there is, under which names ── symbols ──> ids, aliases
//!                                              └───────── describe, objects, types ──> P4Info
//! ```
//!
//! The [inventory](p4info) is a walk over everything that the package instantiates; it does not depend on protobuf. Ids
//! are those of `@id`, or hashes of names, identical to the reference compiler's. An architecture's
//! [`ControlPlaneModel`] defines the resources that extern objects represent; this crate knows no architecture by name.
//!
//! Repeated fields are in the order of declaration, as far as inlining preserves it: controls in the order of the
//! package's parameters, the objects of a sub-control where it is instantiated, top-level actions before a control's
//! own.

mod annotations;
mod code;
mod describe;
mod eval;
mod inventory;
mod model;
mod objects;
mod package;
mod symbols;
mod types;

pub use model::{ControlPlaneModel, MatchKind, MatchType, Property, Resource};
pub use p4runtime_proto::config::P4Info;

use diagnostics::{Diagnostics, SourceMap};

/// Describes a checked program to the control plane. Reports constructs that P4Info cannot express; the result is then
/// incomplete, and the caller, who sees the errors, does not use it.
pub fn p4info(
    program: &p4::typed::Program,
    model: &dyn ControlPlaneModel,
    map: &SourceMap,
    diagnostics: &mut Diagnostics,
) -> P4Info {
    let inventory = inventory::take(program, model, diagnostics);
    let mut describer = describe::Describer::new(program, model, map, &inventory, diagnostics);
    describer.describe();
    let mut out = describer.out;
    if describer.mentions_types {
        out.type_info = Some(describer.types.info);
    }
    if let Some(main) = program.main {
        out.pkg_info = Some(package::describe(&program.instances[main], model.architecture(), map, diagnostics));
    }
    out
}
