//! The middle of the compiler: lowers a checked program for an architecture to pipeline IR.
//!
//! ```text
//! typed::Program ──┐
//!                  ├── lower ──> ir::Program ── passes ──> ir::Program
//! TargetLowering ──┘
//! ```
//!
//! [`lower`] instantiates the package `main` and lowers each programmable block it names. Everything is flattened and
//! inlined on the way: structs become slots ([`Store`]), sub-parsers, sub-controls, functions and directly called
//! actions become part of the block that uses them, constructor parameters become constants, expressions with effects
//! become instructions in the order of evaluation. What the control plane sees keeps its name. Small passes over the
//! IR clean up behind that.
//!
//! An architecture's [`TargetLowering`] says what an extern means, which block plays which role and what metadata there
//! is; this crate knows no architecture by name. `packet_in`, `packet_out`, `verify` and `static_assert` are the
//! language's and lowered here.
//!
//! What holds of every result: it passes [`ir::validate()`], and every instruction carries the place in the source that
//! it comes from.

mod arch;
mod assign;
mod atomic;
mod body;
mod builtin;
mod call;
mod compare;
mod control;
mod entry;
mod expr;
mod externs;
pub mod fold;
mod instance;
mod loops;
mod lowering;
mod packet;
mod parser;
pub mod passes;
mod place;
mod stmt;
mod storage;
mod table;
mod value;
mod walk;

pub use arch::{Block, BlockParam, ExternArg, ExternCall, ExternInstance, Object, TargetLowering};
pub use instance::InstRef;
pub use lowering::Lowering;
pub use place::Lval;
pub use storage::Store;
pub use value::Val;

use diagnostics::{Diagnostic, Diagnostics, SourceMap, Span};

/// Lowers a checked program for an architecture to pipeline IR; `None` if an error was reported.
pub fn lower(
    program: &p4::typed::Program,
    arch: &dyn TargetLowering,
    map: &SourceMap,
    diagnostics: &mut Diagnostics,
) -> Option<ir::Program> {
    let errors_before = diagnostics.error_count();
    let Some(main) = program.main else {
        diagnostics.push(
            Diagnostic::error("no-main", Span::default(), "the program has no package instance named `main`")
                .help(format!("instantiate the package of the architecture `{}` at the end", arch.name())),
        );
        return None;
    };
    let decl_span = program.instances[main].span;
    let mut cx = Lowering::new(program, arch, map, diagnostics);
    cx.program_blocks(main);
    let (mut ir, scoped) = cx.into_parts();
    if diagnostics.error_count() != errors_before {
        return None;
    }
    passes::run(&mut ir, &scoped);
    if let Err(violations) = ir::validate(&ir) {
        // A rule that a program can break by its size alone is the program's; anything else is a bug of ours.
        for violation in violations {
            let limit = is_limit(violation.rule);
            debug_assert!(limit, "{violation}\n{ir}");
            let code = if limit { "too-large" } else { "compiler-bug" };
            diagnostics.push(Diagnostic::error(code, decl_span, violation.to_string()));
        }
        return None;
    }
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

    fn into_parts(self) -> (ir::Program, passes::Scoped) {
        (self.ir, self.scoped)
    }
}
