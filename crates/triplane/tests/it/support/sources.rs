//! Scans of Rust sources for names that only some crates may use.

use std::path::{Path, PathBuf};

/// Names of sockets, threads and waits. `thread::available_parallelism` and `thread_local!` start nothing.
pub const LIVE: [&str; 20] = [
    "TcpListener",
    "TcpStream",
    "UdpSocket",
    "UnixDatagram",
    "UnixListener",
    "UnixStream",
    "Socket::new",
    "socket2",
    "libc::",
    "tokio::",
    "thread::{",
    "thread::spawn",
    "thread::scope",
    "thread::Builder",
    "thread::JoinHandle",
    "thread::sleep",
    "thread::yield_now",
    "thread::park",
    "spin_loop",
    "recv_timeout",
];

/// Names that read a clock. `Instant` as an argument is no read.
pub const CLOCKS: [&str; 3] = ["Instant::now", "SystemTime", "_rdtsc"];

/// Returns the Rust files below `folder` with their texts.
pub fn rust_files(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source file");
            files.push((path, text));
        }
    }
    files
}

/// Returns the part of a source file before its unit tests.
pub fn without_tests(text: &str) -> &str {
    text.split("\nmod tests {").next().unwrap_or_default()
}

/// Returns the lines of `text` that use one of `names`, by number, each with the first such name.
pub fn lines_that_name<'n>(text: &str, names: &[&'n str]) -> Vec<(usize, &'n str)> {
    let lines = text.lines().enumerate();
    lines.filter_map(|(index, line)| first_named(line, names).map(|name| (index + 1, name))).collect()
}

/// Returns the first of `names` in a line of code, at the beginning of a word.
pub fn first_named<'n>(line: &str, names: &[&'n str]) -> Option<&'n str> {
    let code = line.split("//").next().unwrap_or_default();
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    names.iter().copied().find(|name| code.match_indices(name).any(|(at, _)| !code[..at].ends_with(is_word)))
}
