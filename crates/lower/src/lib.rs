//! The middle of the compiler: lowers a checked program for an architecture to pipeline IR.
//!
//! ```text
//! typed::Program ────────┐
//!                        ├── lower ──> ir::Program ── passes ──> ir::Program
//! ArchitectureLowering ──┘
//! ```
//!
//! [`lower`] instantiates the package `main` and lowers each programmable block it names. Everything is flattened and
//! inlined: structs become slots ([`Store`]), sub-parsers, sub-controls, functions and directly called actions become
//! part of the block that uses them, constructor parameters become constants, and expressions with side effects become
//! instructions in the order of evaluation. Objects that the control plane sees keep their names. Small passes over the
//! IR clean up afterwards.
//!
//! An architecture's [`ArchitectureLowering`] defines the meaning of externs, the roles of blocks and the available
//! metadata; this crate knows no architecture by name. `packet_in`, `packet_out`, `verify` and `static_assert` belong
//! to the language and are lowered here.
//!
//! Invariants of every result: it passes [`ir::validate()`], and every instruction carries its source position.

mod arch;
mod assign;
mod atomic;
mod body;
mod builtin;
mod call;
mod compare;
mod control;
mod elastic;
mod entry;
mod expr;
mod externs;
mod instance;
mod loops;
mod lowering;
mod lvalue;
mod packet;
mod parser;
pub mod passes;
mod resilient;
mod stmt;
mod storage;
mod table;
mod unannotated;
mod value;
mod walk;

pub use arch::{ArchitectureLowering, Block, BlockParam, ExternArg, ExternCall, ExternInstance, Object};
pub use instance::InstRef;
pub use lowering::Lowering;
pub use lvalue::Lval;
pub use storage::Store;
pub use value::Val;

use diagnostics::{Diagnostic, Diagnostics, SourceMap, Span};

/// Lowers a checked program for an architecture to pipeline IR; `None` if an error was reported.
pub fn lower(
    program: &p4::typed::Program,
    arch: &dyn ArchitectureLowering,
    map: &SourceMap,
    diagnostics: &mut Diagnostics,
) -> Option<ir::Program> {
    let errors_before = diagnostics.error_count();
    let Some(main) = program.main else {
        diagnostics.push(
            Diagnostic::error("no-main", Span::default(), "the program has no package instance named `main`")
                .help(format!("end it with the package of the architecture `{}`: `{}`", arch.name(), arch.main_form())),
        );
        return None;
    };
    let decl_span = program.instances[main].span;
    let mut cx = Lowering::new(program, arch, map, diagnostics);
    cx.program_blocks(main);
    cx.check_resilient();
    cx.check_elastic();
    let unannotated = cx.take_unannotated();
    let (mut ir, scoped) = cx.into_parts();
    if diagnostics.error_count() != errors_before {
        return None;
    }
    passes::run(&mut ir, &scoped);
    if let Err(violations) = ir::validate(&ir) {
        // A program can break some rules by its size alone, which is its author's mistake; any other violation is a bug
        // of ours.
        for violation in violations {
            let limit = is_limit(violation.rule);
            debug_assert!(limit, "{violation}\n{ir}");
            let code = if limit { "too-large" } else { "compiler-bug" };
            diagnostics.push(Diagnostic::error(code, decl_span, violation.to_string()));
        }
        return None;
    }
    unannotated::warn(&mut ir, &unannotated, diagnostics);
    Some(ir)
}

fn is_limit(rule: ir::Rule) -> bool {
    matches!(rule, ir::Rule::NameLength | ir::Rule::WidthLimit | ir::Rule::SizeLimit | ir::Rule::ExprDepth)
}

impl Lowering<'_> {
    fn program_blocks(&mut self, main: p4::typed::InstanceId) {
        let decl = &self.program.instances[main];
        self.at(decl.span);
        let Object::Package(args) = self.object(main) else { return };
        let p4::typed::Type::Package(package) = &decl.ty else { return };
        let name = self.program.packages[*package].name.clone();
        let arch = self.arch;
        let Some(blocks) = arch.bind(self, &name, &args, decl.span) else { return };
        for block in &blocks {
            self.programmable_block(block);
        }
        arch.finish(self);
    }

    fn into_parts(self) -> (ir::Program, passes::ScopedStorage) {
        (self.ir, self.scoped)
    }
}
