//! Lists the warning kinds that `--allow` accepts.

use diagnostics::names::nearest;

/// Every kind of warning that is about a program or its entries, in alphabetical order.
const KINDS: &[&str] = &[
    "bits-beyond-prefix",
    "constant-comparison",
    "deprecated",
    "duplicate-function",
    "empty-range",
    "extra-tokens",
    "ignored-annotation",
    "ignored-pragma",
    "invalid-header",
    "macro-redefined",
    "missing-default",
    "no-name",
    "overflow",
    "restriction-constant",
    "restriction-ignored",
    "restriction-string",
    "shadow",
    "shared-name",
    "unannotated-state",
    "uninitialized",
    "uninitialized-out",
    "unknown-key",
    "unknown-property",
    "unreachable",
    "unreachable-state",
    "unused-action",
    "unused-constant",
    "unused-control",
    "unused-function",
    "unused-header",
    "unused-instance",
    "unused-parameter",
    "unused-parser",
    "unused-table",
    "unused-type",
    "unused-value-set",
    "unused-variable",
    "useless-selector",
    "warning-directive",
];

/// Checks that `wanted` names a warning kind or a family of them: `unused` stands for every kind that begins with
/// `unused-`.
///
/// # Errors
/// Returns a message that lists the known kinds.
pub fn check(wanted: &str) -> Result<(), String> {
    let matches = |kind: &&str| kind.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    if KINDS.iter().any(matches) {
        return Ok(());
    }
    let guess = match nearest(wanted, KINDS.iter().copied()) {
        Some(kind) => format!("did you mean `{kind}`? The kinds are"),
        None => "the kinds are".to_owned(),
    };
    let all: Vec<_> = KINDS.iter().map(|kind| format!("`{kind}`")).collect();
    Err(format!(
        "--allow {wanted}: unknown kind of warning; {guess} {}; `unused` stands for every kind that begins with \
         `unused-`",
        all.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// Collects the string literals after `Diagnostic::warning(`, and those that begin with `unused-`, in the sources
    /// below `folder`.
    fn collect(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                collect(&path, found);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for after in text.split("Diagnostic::warning(").skip(1) {
                // Computed kinds are found by their prefix, below.
                if let Some(quoted) = after.trim_start().strip_prefix('"') {
                    found.extend(quoted.split('"').next().map(str::to_owned));
                }
            }
            for after in text.split("\"unused-").skip(1) {
                let rest = after.split('"').next().unwrap_or_default();
                found.extend((!rest.is_empty()).then(|| format!("unused-{rest}")));
            }
        }
    }

    #[test]
    fn the_list_matches_the_sources() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        // `p4_constraints` downgrades errors to its warnings.
        let downgraded = ["restriction-constant", "restriction-ignored", "restriction-string"];
        let mut found: BTreeSet<String> = downgraded.map(str::to_owned).into();
        for name in ["p4", "lower", "v1model", "p4info", "p4_constraints", "entries_file"] {
            collect(&crates.join(name).join("src"), &mut found);
        }
        assert_eq!(found.into_iter().collect::<Vec<_>>(), KINDS);
    }

    #[test]
    fn families_and_kinds_are_known_and_others_are_not() {
        for known in ["unused", "unused-table", "unused-value", "unreachable", "shadow"] {
            assert_eq!(check(known), Ok(()), "{known}");
        }
        for unknown in ["", "nosuch", "unus", "unused-tables"] {
            assert!(check(unknown).unwrap_err().contains("`shadow`"), "{unknown}");
        }
        assert!(check("unused-tables").unwrap_err().contains("did you mean `unused-table`?"));
    }
}
