//! Writes histories for external checkers.

use std::fmt::Write;

use super::program::{ProgramInput, values_of};
use super::record::RowHistory;

/// Returns a history as one line of JSON:
///
/// ```json
/// {"seed":7,"row":0,"verdict":"linearizable","calls":[
///   {"input":"add","argument":5,"called":10,"returned":30,"output":"00000000000000050000000100000005"},
///   {"input":"read","argument":0,"called":20}]}
/// ```
///
/// `verdict` is that of this crate: `linearizable`, `violation` or `undecided`. Times are in nanoseconds. An input
/// without `returned` may have had its effect at any time after `called`, or never. `output` has the values of the row
/// in hexadecimal digits: the number (8 bytes), the number of updates (4), and the argument of the last one modulo
/// 2^32 (4). It is `null` for a row without values.
pub fn history_line(seed: u64, row: u32, verdict: &str, history: &RowHistory) -> String {
    let mut line = format!("{{\"seed\":{seed},\"row\":{row},\"verdict\":\"{verdict}\",\"calls\":[");
    for (number, call) in history.iter().enumerate() {
        let (input, argument) = match call.input {
            ProgramInput::Read => ("read", 0),
            ProgramInput::Add(amount) => ("add", amount),
            ProgramInput::Set(value) => ("set", value),
            ProgramInput::Toggle => ("toggle", 0),
            ProgramInput::Remove => ("remove", 0),
        };
        let comma = if number > 0 { "," } else { "" };
        let called = call.called;
        let _ = write!(line, "{comma}{{\"input\":\"{input}\",\"argument\":{argument},\"called\":{called}");
        if let Some((output, returned)) = &call.returned {
            let output = values_of(*output).map_or("null".to_owned(), |values| format!("\"{values:?}\""));
            let _ = write!(line, ",\"returned\":{returned},\"output\":{output}");
        }
        line.push('}');
    }
    line + "]}"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Invocation, Specification};
    use crate::simulation::RowProgram;

    #[test]
    fn a_history_is_one_line() {
        let program = RowProgram { has_removals: false };
        let (after, _) = program.step(&None, &ProgramInput::Add(5));
        let call = |input, called, returned| Invocation { input, called, returned };
        let history = vec![
            call(ProgramInput::Read, 5, Some((None, 6))),
            call(ProgramInput::Add(5), 10, Some((after, 30))),
            call(ProgramInput::Set(1 << 40), 20, None),
        ];
        let expected = concat!(
            r#"{"seed":7,"row":1,"verdict":"linearizable","calls":["#,
            r#"{"input":"read","argument":0,"called":5,"returned":6,"output":null},"#,
            r#"{"input":"add","argument":5,"called":10,"returned":30,"output":"00000000000000050000000100000005"},"#,
            r#"{"input":"set","argument":1099511627776,"called":20}]}"#
        );
        assert_eq!(history_line(7, 1, "linearizable", &history), expected);
    }
}
