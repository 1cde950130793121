//! Shrinks programs by lines: a statement, or a block with everything in it.

use crate::compare::{Verdict, compare};

/// Maximum number of programs that are tried.
const MAX_TRIALS: usize = 1_500;

/// Removes everything from a program without which the executors still disagree.
pub fn shrink(text: &str, seed: u64, machine_code: bool) -> String {
    let is_panic = |verdict: &Verdict| matches!(verdict, Verdict::Differs(text) if text.starts_with("panic"));
    let first = is_panic(&compare(text, seed, machine_code));
    let mut trials = 0;
    let mut differs = |lines: &[String]| {
        trials += 1;
        let verdict = compare(&(lines.join("\n") + "\n"), seed, machine_code);
        (matches!(verdict, Verdict::Differs(_)) && is_panic(&verdict) == first, trials > MAX_TRIALS)
    };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    loop {
        let before = lines.len();
        let mut at = lines.len();
        while at > 0 {
            at -= 1;
            for candidate in candidates(&lines, at) {
                let (still, spent) = differs(&candidate);
                if spent {
                    return lines.join("\n") + "\n";
                }
                if still {
                    lines = candidate;
                    break;
                }
            }
            at = at.min(lines.len());
        }
        if lines.len() == before {
            return lines.join("\n") + "\n";
        }
    }
}

/// Returns the program without the statement or block that begins at a line, and without only the block's braces.
fn candidates(lines: &[String], at: usize) -> Vec<Vec<String>> {
    let Some(end) = end_of(lines, at) else { return Vec::new() };
    let without = |from: usize, to: usize| {
        let mut rest = lines.to_vec();
        rest.drain(from..=to);
        rest
    };
    let mut all = vec![without(at, end)];
    if end > at + 1 {
        let mut flat = lines.to_vec();
        flat.remove(end);
        flat.remove(at);
        all.push(flat);
    }
    all
}

/// Returns the last line of what begins at a line; `None` if braces do not match from there.
fn end_of(lines: &[String], at: usize) -> Option<usize> {
    let mut depth = 0i32;
    for (number, line) in lines.iter().enumerate().skip(at) {
        for c in line.chars() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth < 0 {
                return None;
            }
        }
        if depth == 0 {
            return Some(number);
        }
    }
    None
}
