//! Prints results to standard output and everything else to standard error, and defines exit codes and [`Failure`].

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

use diagnostics::{Diagnostic, Diagnostics, Label, Severity, SourceMap};
use local_socket::SocketError;
use serde_json::json;

/// Exit codes, as `--help` lists them.
pub mod exit {
    /// Everything went well.
    pub const OK: u8 = 0;
    /// A program, entries file or packet that the user gave is wrong; the diagnostics say where.
    pub const INPUT: u8 = 1;
    /// The command line is wrong; clap uses it too.
    pub const USAGE: u8 = 2;
    /// The environment refused: a missing interface, a missing permission, a full disk.
    pub const ENVIRONMENT: u8 = 3;
    /// For commands that compare, as in diff(1): both inputs are valid, and they differ.
    pub const DIFFERENT: u8 = 1;
    /// For commands that compare: an input is invalid or too large.
    pub const TROUBLE: u8 = 2;
}

/// When to use colour.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// If the output is a terminal and `NO_COLOR` is not set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The reason why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// The user's input is wrong. The diagnostics have been printed; this is the summary printed after them.
    Input(String),
    /// The command line asks for something impossible.
    Usage(String),
    /// Two inputs were compared and differ. The differences have been printed.
    Different(String),
    /// Two inputs cannot be compared: one is invalid or too large.
    Trouble(String),
    /// The environment refused.
    Environment(anyhow::Error),
    /// Nobody reads the output any more.
    Closed,
}

impl Failure {
    /// Returns the exit code.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Input(_) => exit::INPUT,
            Failure::Usage(_) => exit::USAGE,
            Failure::Different(_) => exit::DIFFERENT,
            Failure::Trouble(_) => exit::TROUBLE,
            Failure::Environment(_) => exit::ENVIRONMENT,
            Failure::Closed => exit::OK,
        }
    }

    /// Returns the reason in one sentence; `None` if nobody is there to read it.
    pub fn sentence(&self) -> Option<String> {
        match self {
            Failure::Input(text) | Failure::Usage(text) | Failure::Different(text) | Failure::Trouble(text) => {
                Some(text.clone())
            }
            Failure::Environment(error) => {
                // Causes that the error's own sentence already contains are not repeated.
                let mut text = error.to_string();
                for cause in error.chain().skip(1).map(ToString::to_string) {
                    if !text.contains(&cause) {
                        text = format!("{text}: {cause}");
                    }
                }
                Some(text)
            }
            Failure::Closed => None,
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Failure::Environment(error)
    }
}

impl From<ports::PortError> for Failure {
    fn from(error: ports::PortError) -> Self {
        if is_damaged_capture(&error) { Failure::Input(error.to_string()) } else { Failure::Environment(error.into()) }
    }
}

impl From<SocketError> for Failure {
    fn from(error: SocketError) -> Self {
        Failure::Environment(error.into())
    }
}

/// Returns the failure of a request to a socket, with the remedy if no process listens.
pub fn socket_failure(error: SocketError, remedy: &str) -> Failure {
    match error {
        SocketError::NotRunning { .. } => Failure::Environment(anyhow::anyhow!("{error}: {remedy}")),
        error => error.into(),
    }
}

/// Whether the fault is in a capture that the user gave: it is damaged, or not a capture file at all. A capture that
/// cannot be read is a fault of the environment.
pub fn is_damaged_capture(error: &ports::PortError) -> bool {
    matches!(error, ports::PortError::Capture { source, .. } if !matches!(source, wire::pcap::PcapError::Io(_)))
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::Closed,
            _ => Failure::Environment(error.into()),
        }
    }
}

/// The command's standard output and standard error.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    stdout_color: bool,
    stderr_color: bool,
    /// Whether diagnostics are suppressed, since they were shown before.
    is_quiet: bool,
    notes: NoteStream,
}

/// The place for notes.
#[derive(Clone, Copy, Debug)]
pub enum NoteStream {
    /// Standard error.
    Stderr,
    /// Standard output.
    Stdout,
    /// A log file.
    Log(&'static File),
    /// None.
    Nowhere,
}

impl NoteStream {
    /// Returns the stream to a file, which stays open until the process ends.
    pub fn to_log(file: File) -> NoteStream {
        NoteStream::Log(Box::leak(Box::new(file)))
    }
}

impl Output {
    /// Creates the output, and decides on which of the streams to use colour.
    pub fn new(color: Color) -> Self {
        let wanted = |terminal: bool| match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        };
        Output {
            stdout_color: wanted(std::io::stdout().is_terminal()),
            stderr_color: wanted(std::io::stderr().is_terminal()),
            is_quiet: false,
            notes: NoteStream::Stderr,
        }
    }

    /// Returns the same output without diagnostics, for reading a file again.
    pub fn quiet(self) -> Output {
        Output { is_quiet: true, ..self }
    }

    /// Returns the same output with another place for notes.
    pub fn with_notes(self, notes: NoteStream) -> Output {
        Output { notes, ..self }
    }

    /// Prints what was asked for.
    pub fn print(&self, text: &str) -> Result<(), Failure> {
        self.print_bytes(text.as_bytes())
    }

    /// Prints what was asked for, if it is not text.
    pub fn print_bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        self.print_with(|out| out.write_all(bytes))
    }

    /// Prints what `write` writes, without keeping it in memory.
    pub fn print_with(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        let mut stdout = BufWriter::new(io::stdout().lock());
        write(&mut stdout)?;
        stdout.flush()?;
        Ok(())
    }

    /// Prints a note on its stream, by default standard error. Errors are ignored, since the stream may be closed.
    pub fn note(&self, text: &str) {
        let _ = match self.notes {
            NoteStream::Stderr => writeln!(std::io::stderr(), "{text}"),
            NoteStream::Stdout => writeln!(std::io::stdout(), "{text}"),
            NoteStream::Log(mut log) => writeln!(log, "{text}"),
            NoteStream::Nowhere => Ok(()),
        };
    }

    /// Notes that the interpreter runs packets, and why, where machine code could be expected.
    pub fn note_if_interpreted(&self, why: Option<&str>) {
        if let Some(why) = why {
            self.note(&format!("{why}: falling back to the interpreter, which is many times slower"));
        }
    }

    /// Prints diagnostics.
    pub fn diagnostics(&self, map: &SourceMap, diagnostics: &Diagnostics) {
        if self.is_quiet {
            return;
        }
        let _ = std::io::stderr().write_all(diagnostics.render(map, self.stderr_color).as_bytes());
    }

    /// Prints why the command failed, in one sentence.
    pub fn failure(&self, failure: &Failure) {
        let Some(text) = failure.sentence() else { return };
        let (on, off) = if self.stderr_color { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
        let _ = writeln!(std::io::stderr(), "{on}error{off}: {text}");
    }

    /// Prints why the command line is refused, or the help that it asks for. Returns the exit code.
    pub fn refusal(&self, error: &clap::Error) -> ExitCode {
        if error.use_stderr() {
            let text = error.render();
            let text = if self.stderr_color { text.ansi().to_string() } else { text.to_string() };
            let _ = std::io::stderr().write_all(ranges_in_words(&text).as_bytes());
            return ExitCode::from(exit::USAGE);
        }
        // Standard output may be closed.
        let _ = error.print();
        ExitCode::from(exit::OK)
    }

    /// Returns `text` in bold, for standard output.
    pub fn bold(&self, text: &str) -> String {
        if self.stdout_color { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Replaces ranges in the notation of Rust by words: `7 is not in 1..=3` by `7 is not from 1 to 3`.
fn ranges_in_words(text: &str) -> String {
    const BEFORE: &str = " is not in ";
    let Some((subject, rest)) = text.split_once(BEFORE) else { return text.to_owned() };
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (range, rest) = rest.split_at(end);
    match range.split_once("..=") {
        Some((low, high)) => format!("{subject} is not from {low} to {high}{rest}"),
        None => text.to_owned(),
    }
}

/// Returns a number with its thousands separated: `12,345,678`.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count with its noun: `1 rule`, `2,000 rules`.
pub fn counted(count: usize, one: &str, several: &str) -> String {
    format!("{} {}", grouped(count as u64), if count == 1 { one } else { several })
}

/// Returns a finding as JSON, with its places.
pub fn diagnostic_json(finding: &Diagnostic, map: &SourceMap) -> serde_json::Value {
    let label = |label: &Label| {
        let place = map.position(label.span);
        let end = map.position(label.span.after());
        json!({ "file": place.file, "line": place.line, "column": place.column,
                "end_line": end.line, "end_column": end.column, "text": label.text })
    };
    json!({
        "severity": match finding.severity { Severity::Error => "error", Severity::Warning => "warning" },
        "code": finding.code,
        "message": finding.message,
        "place": label(&finding.primary),
        "also": finding.secondary.iter().map(label).collect::<Vec<_>>(),
        "help": finding.help,
    })
}

/// Formats a duration: `12.3 us`.
pub fn duration(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "us"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    format!("{} {unit}", three_digits(value))
}

/// Formats a number with three digits, or without decimals and with its thousands separated: `1.23`, `12,345`.
pub fn three_digits(value: f64) -> String {
    match value {
        ..10.0 => format!("{value:.2}"),
        ..100.0 => format!("{value:.1}"),
        999.5..=f64::MAX => grouped(value.round_ties_even() as u64),
        _ => format!("{value:.0}"),
    }
}

/// Aligns columns to their widest cells, with two spaces between them; the columns in `right` are right-aligned.
pub fn aligned<const N: usize>(rows: &[[String; N]], right: &[usize]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().enumerate().map(|(at, cell)| {
            let width = widths[at];
            if right.contains(&at) { format!("{cell:>width$}") } else { format!("{cell:width$}") }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_written_in_words() {
        assert_eq!(ranges_in_words("for '--n': 7 is not in 1..=3\n\nmore"), "for '--n': 7 is not from 1 to 3\n\nmore");
        for other in ["`a` is not in b", "is not in 1..=3", "nothing"] {
            assert_eq!(ranges_in_words(other), other);
        }
    }

    #[test]
    fn thousands_are_separated() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(123), "123");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    #[test]
    fn numbers_have_three_digits_or_separated_thousands() {
        let numbers = [0.126, 9.876, 98.76, 999.4, 999.5, 10_000.4, 1e9, f64::INFINITY];
        let expected = ["0.13", "9.88", "98.8", "999", "1,000", "10,000", "1,000,000,000", "inf"];
        assert_eq!(numbers.map(three_digits), expected);
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cells() {
        let rows = [["a", "count", ""], ["größe", "7", "x"], ["b", "", ""]].map(|row| row.map(str::to_owned));
        assert_eq!(aligned(&rows, &[1]), "a      count\ngröße      7  x\nb\n");
        assert_eq!(aligned::<2>(&[], &[]), "");
    }
}
