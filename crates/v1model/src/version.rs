//! Checks the version of the architecture that a program selects with `V1MODEL_VERSION`.
//!
//! `v1model.p4` keeps the macro's value in a constant. A version that does not exist would select the declarations of
//! another one without a word.

use diagnostics::{Diagnostic, Diagnostics};
use p4::ast::{DeclKind, ExprKind, Program, UnaryOp};

/// The constant with the version.
const NAME: &str = "__v1model_version";

/// The first version, which programs without `V1MODEL_VERSION` have.
const FIRST: u32 = 20180101;

/// The latest version.
const LATEST: u32 = 20200408;

/// Reports a version that does not exist.
pub(crate) fn check(program: &Program, diagnostics: &mut Diagnostics) {
    for decl in &program.decls {
        let DeclKind::Const { name, value, .. } = &decl.kind else { continue };
        if &*name.name != NAME {
            continue;
        }
        let (sign, number) = match &value.kind {
            ExprKind::Int(number) => ("", number),
            ExprKind::Unary(UnaryOp::Neg, inner) => match &inner.kind {
                ExprKind::Int(number) => ("-", number),
                _ => continue,
            },
            _ => continue,
        };
        if sign == "-" || number.value < FIRST.into() || number.value > LATEST.into() {
            let message = format!("v1model has no version {sign}{}", number.value);
            diagnostics.push(
                Diagnostic::error("version", value.span, message)
                    .label("the value of `V1MODEL_VERSION`")
                    .also(name.span, "which selects the declarations of this file")
                    .help(format!("define it as a version from {FIRST}, the default, to {LATEST}, the latest")),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use compiler::Source;
    use diagnostics::SourceMap;

    use super::*;

    /// Returns the number of errors and the diagnostics of a program that begins with this line.
    fn check(defined: &str) -> (usize, String) {
        let text = format!("{defined}\n#include <v1model.p4>\n");
        let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        compiler::check(&Source::without_files("a.p4", &text), &crate::V1Model, &mut map, &mut diagnostics);
        (diagnostics.error_count(), diagnostics.render(&map, false))
    }

    #[test]
    fn versions_that_do_not_exist_are_refused() {
        for version in ["20200409", "20180100", "-6419018"] {
            let (errors, text) = check(&format!("#define V1MODEL_VERSION {version}"));
            assert_eq!(errors, 1, "{text}");
            assert!(text.contains(&format!("v1model has no version {version}")), "{text}");
            assert!(text.contains("<v1model.p4>") && text.contains("20180101, the default, to 20200408"), "{text}");
        }
    }

    #[test]
    fn versions_that_exist_are_accepted() {
        for defined in ["", "#define V1MODEL_VERSION 20180101", "#define V1MODEL_VERSION 20200408"] {
            let (errors, text) = check(defined);
            assert_eq!(errors, 0, "{text}");
        }
    }
}
