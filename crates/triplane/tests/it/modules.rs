//! Checks the sources of the command. Its top-level modules have an order: no two of them depend on each other,
//! directly or through others. And the command is a surface: sockets, threads and loops that wait are in the crates
//! below it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::support::sources::LIVE;

/// A map from each module to the modules that it names, with one place for each.
type Edges = BTreeMap<String, BTreeMap<String, String>>;

/// Waits, and reads that may come from a socket of another crate.
const WAITS: [&str; 12] = [
    "Condvar",
    ".recv()",
    "block_on",
    "ppoll",
    "ports::wait",
    ".forever()",
    ".read(&mut ",
    ".read_line(&mut ",
    ".read_exact(",
    ".read_to_end(",
    ".read_until(",
    "io::copy",
];

/// Files that may use a name of [`LIVE`] or [`WAITS`], each with the reason.
const EXCEPTIONS: [(&str, &str, &str); 3] = [
    ("src/load.rs", ".read_to_end(", "reads a file up to a limit"),
    ("src/signals.rs", ".forever()", "waits for Ctrl-C while a service of another crate runs"),
    ("src/subscribe/entry_set.rs", ".read_to_end(", "reads the beginning of a file"),
];

/// Returns the names of [`LIVE`] and [`WAITS`] in a line of code.
fn named_live(line: &str) -> Vec<&'static str> {
    let code = line.split("//").next().unwrap_or_default();
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let is_whole = |name: &str, at: usize| !name.starts_with(is_word) || !code[..at].ends_with(is_word);
    let mut names = [&LIVE[..], &WAITS].concat();
    names.retain(|name| code.match_indices(name).any(|(at, _)| is_whole(name, at)));
    names
}

/// Collects the places below `folder` that name a socket, a thread, a wait or a read, except those of [`EXCEPTIONS`],
/// whose indexes are added to `used`.
fn collect_live(folder: &Path, places: &mut Vec<String>, used: &mut BTreeSet<usize>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect_live(&path, places, used);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source file");
            for (number, line) in text.lines().enumerate() {
                for name in named_live(line) {
                    let is_excepted = |(file, what, _): &(&str, &str, &str)| path.ends_with(file) && *what == name;
                    match EXCEPTIONS.iter().position(is_excepted) {
                        Some(exception) => _ = used.insert(exception),
                        None => places.push(format!("{}:{}: {name}", path.display(), number + 1)),
                    }
                }
            }
        }
    }
}

/// Returns the names that follow `crate::` in a line of code.
fn named_modules(line: &str) -> Vec<&str> {
    let code = line.split("//").next().unwrap_or_default();
    let mut names = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let is_whole_word = !code[..at].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_');
        let path = &code[at + "crate::".len()..];
        let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
        let starts: Vec<&str> = match path.strip_prefix('{') {
            Some(list) => list.split(", ").collect(),
            None => vec![path],
        };
        for start in starts.into_iter().filter(|_| is_whole_word) {
            names.push(start.split(|letter| !is_name(letter)).next().unwrap_or_default());
        }
    }
    names
}

/// Collects the edges of the files below `folder`. All files belong to `module` if it is given.
fn collect(folder: &Path, module: Option<&str>, edges: &mut Edges) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a name").to_owned();
        let module = module.unwrap_or(&stem);
        if path.is_dir() {
            collect(&path, Some(module), edges);
        } else if module != "main" {
            let text = std::fs::read_to_string(&path).expect("a source file");
            for (number, line) in text.lines().enumerate() {
                assert!(!line.ends_with("use crate::{"), "{}: a list over several lines is not read", path.display());
                for name in named_modules(line).into_iter().filter(|name| *name != module) {
                    let place = format!("{}:{}", path.display(), number + 1);
                    edges.entry(module.to_owned()).or_default().entry(name.to_owned()).or_insert(place);
                }
            }
        }
    }
}

/// Returns a path of edges from `from` to `to`, each as `module -> module (place)`.
fn path(edges: &Edges, from: &str, to: &str, visited: &mut BTreeSet<String>) -> Option<Vec<String>> {
    for (next, place) in edges.get(from)? {
        let step = format!("{from} -> {next} ({place})");
        if next == to {
            return Some(vec![step]);
        }
        if visited.insert(next.clone())
            && let Some(rest) = path(edges, next, to, visited)
        {
            return Some([vec![step], rest].concat());
        }
    }
    None
}

#[test]
fn no_cycle_among_the_top_level_modules() {
    let mut edges = Edges::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), None, &mut edges);
    assert!(edges.len() > 5, "the sources were found");
    for module in edges.keys() {
        if let Some(cycle) = path(&edges, module, module, &mut BTreeSet::new()) {
            panic!("`{module}` needs itself:\n  {}", cycle.join("\n  "));
        }
    }
}

#[test]
fn a_cycle_is_found_through_others() {
    let names = named_modules("use crate::{load, output}; crate::state::x(); // crate::cli");
    assert_eq!(names, ["load", "output", "state"]);
    let edge = |to: &str| BTreeMap::from([(to.to_owned(), "here:1".to_owned())]);
    let edges = Edges::from([
        ("a".into(), edge("b")),
        ("b".into(), edge("c")),
        ("c".into(), edge("a")),
        ("d".into(), edge("a")),
    ]);
    let cycle = path(&edges, "a", "a", &mut BTreeSet::new());
    assert_eq!(cycle.unwrap().join(", "), "a -> b (here:1), b -> c (here:1), c -> a (here:1)");
    assert_eq!(path(&edges, "d", "d", &mut BTreeSet::new()), None);
}

#[test]
fn the_command_opens_no_socket_starts_no_thread_and_polls_nothing() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut places, mut used) = (Vec::new(), BTreeSet::new());
    collect_live(&source, &mut places, &mut used);
    assert!(places.is_empty(), "these belong into a crate of layer 3:\n  {}", places.join("\n  "));
    assert_eq!(used.len(), EXCEPTIONS.len(), "an exception is not needed any more");
}

#[test]
fn a_socket_a_thread_or_a_wait_is_found() {
    assert_eq!(named_live("    let socket = UdpSocket::bind(address)?;"), ["UdpSocket"]);
    assert_eq!(named_live("std::thread::sleep(wait);"), ["thread::sleep"]);
    assert_eq!(named_live("let count = reader.read(&mut buffer)?;"), [".read(&mut "]);
    assert_eq!(named_live("runtime.block_on(async { events.recv().await });"), [".recv()", "block_on"]);
    assert_eq!(named_live("while let Ok(event) = events.recv() {"), [".recv()"]);
    assert_eq!(named_live("std::thread::available_parallelism() // thread::spawn"), [""; 0]);
    assert_eq!(named_live("thread_local! { static MY_UdpSocket: u8 = 0; }"), [""; 0]);
}
