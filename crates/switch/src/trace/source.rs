//! Shows conditions in the words of the program's source.

use diagnostics::{SourceMap, SourcePosition};

use super::model::{Step, StepKind, Trace};

/// Maximum length of a condition, in characters.
const MAX_CONDITION: usize = 1000;

impl Trace {
    /// Replaces the conditions of `if` statements by their source text, where `map` has it. Other conditions stay as
    /// the compiled program has them: those of programs without source, those that a macro or an extern makes, and
    /// those that are evaluated in several steps (`a && t.apply().hit`), which are steps of the trace themselves.
    pub fn show_source(&mut self, map: &SourceMap) {
        for section in self.passes.iter_mut().flat_map(|pass| &mut pass.sections) {
            show_steps(&mut section.steps, map);
        }
    }
}

fn show_steps(steps: &mut [Step], map: &SourceMap) {
    for step in steps {
        match &mut step.what {
            StepKind::Table { steps, .. } => show_steps(steps, map),
            StepKind::Branch { condition, .. } => {
                let at = step.at.as_deref().and_then(position);
                let text = at.and_then(|at| condition_in(map.text_from(&at)?));
                *condition = text.or(condition.take());
            }
            _ => {}
        }
    }
}

/// Parses `FILE:LINE:COLUMN`.
fn position(text: &str) -> Option<SourcePosition> {
    let mut parts = text.rsplitn(3, ':');
    let (column, line) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some(SourcePosition { file: parts.next()?.to_owned(), line, column })
}

/// Returns the condition of the `if` statement with which a text begins, with single spaces.
fn condition_in(text: &str) -> Option<String> {
    let behind = text.strip_prefix("if")?.trim_start().strip_prefix('(')?;
    let mut depth = 1;
    let end = behind.char_indices().take(MAX_CONDITION).find_map(|(at, c)| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        (depth == 0).then_some(at)
    })?;
    let condition = behind[..end].split_whitespace().collect::<Vec<_>>().join(" ");
    is_one_step(&condition).then_some(condition)
}

/// Whether a condition is evaluated by a single branch. The right side of `&&` and `||`, and both sides of `?:`, are
/// branches of their own if they call what may have effects.
fn is_one_step(condition: &str) -> bool {
    let is_plain = !["?", "//", "/*", "#", "\""].iter().any(|sign| condition.contains(sign));
    let is_connected = condition.contains("&&") || condition.contains("||");
    is_plain && !(is_connected && has_calls(condition))
}

/// Whether a condition calls anything but `isValid`.
fn has_calls(condition: &str) -> bool {
    condition.match_indices('(').any(|(at, _)| {
        let before = condition[..at].trim_end();
        let is_call = before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        is_call && !before.ends_with(".isValid")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Pass, PassKind, PassOutcome, Section};

    #[test]
    fn conditions_that_one_branch_evaluates_are_found() {
        for (text, condition) in [
            ("if (a == 1) { b(); }", Some("a == 1")),
            ("if(h.isValid()\n      && (a | b) != 0) x = 1;", Some("h.isValid() && (a | b) != 0")),
            ("if (t.apply().hit) {", Some("t.apply().hit")),
            ("if (!f((bit<8>)(a + 1))) {", Some("!f((bit<8>)(a + 1))")),
            ("if (a && t.apply().hit) {", None),
            ("if (f(b ? 1 : 2)) {", None),
            ("if (a /* ) */) {", None),
            ("if (a", None),
            ("verify_checksum(a, b);", None),
            ("iffy(a);", None),
        ] {
            assert_eq!(condition_in(text).as_deref(), condition, "{text}");
        }
    }

    #[test]
    fn a_trace_shows_the_source_of_its_conditions() {
        let mut map = SourceMap::new();
        map.add("dir/r.p4", "control c() { apply {\n    if (hdr.h.isValid()) { }\n} }\n");
        let branch = |at: Option<&str>| Step {
            what: StepKind::Branch { condition: Some("valid(hdr.h)".to_owned()), value: true },
            at: at.map(str::to_owned),
        };
        let steps = vec![
            branch(Some("dir/r.p4:2:5")),
            branch(Some("dir/r.p4:1:1")),
            branch(Some("dir/r.p4:9:5")),
            branch(Some("other.p4:2:5")),
            branch(None),
        ];
        let section = Section { role: "ingress".to_owned(), body: "c".to_owned(), steps };
        let pass = Pass {
            parent: None,
            kind: PassKind::Received,
            bytes: 0,
            egress_port: None,
            sections: vec![section],
            outcome: PassOutcome::Running,
        };
        let mut trace = Trace { time_ns: 0, port: 1, data: String::new(), passes: vec![pass], cut: false };
        trace.show_source(&map);
        let shown: Vec<&str> = trace.passes[0].sections[0]
            .steps
            .iter()
            .map(|step| match &step.what {
                StepKind::Branch { condition, .. } => condition.as_deref().unwrap_or_default(),
                _ => "",
            })
            .collect();
        assert_eq!(shown, ["hdr.h.isValid()", "valid(hdr.h)", "valid(hdr.h)", "valid(hdr.h)", "valid(hdr.h)"]);
    }
}
