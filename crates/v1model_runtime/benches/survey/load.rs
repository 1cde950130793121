//! Prepares programs, their entries and their traffic.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use compiler::Source;
use diagnostics::{Diagnostics, SourceMap};
use ir::Program;
use itch_feed::{Feed, Mix, Workload};
use traffic_gen::{Generator, TrafficSource};
use v1model::{Executor, Switch, V1Model};
use v1model_runtime::bench::memory;

use crate::cases::Case;

/// Number of frames of a case.
const FRAMES: usize = 1 << 13;

/// A switch with entries, and frames with the ports on which they arrive.
pub struct Loaded {
    pub switch: Switch,
    pub frames: Vec<(u32, Vec<u8>)>,
}

/// Returns the repository's root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the text of a program of the repository.
pub fn source(path: &str) -> String {
    read(&root().join(path))
}

/// Compiles a program of the repository.
pub fn program(path: &str) -> Arc<Program> {
    compiled(path, &source(path))
}

/// Compiles a text in the place of a program of the repository.
pub fn compiled(path: &str, text: &str) -> Arc<Program> {
    let name = root().join(path).display().to_string();
    Arc::new(compiler::expect_program(&Source::new(&name, text), &V1Model).ir)
}

/// Creates a switch with all ports of v1model.
pub fn switch(program: &Arc<Program>) -> Switch {
    memory::switch(program, Executor::Jit, None).expect("the program becomes machine code")
}

/// Panics if there are errors.
fn expect_none(map: &SourceMap, diagnostics: &Diagnostics) {
    assert_eq!(diagnostics.error_count(), 0, "{}", diagnostics.render(map, false));
}

/// Writes entries, given as a file's name or as JSON, to a switch.
pub fn fill(switch: &mut Switch, entries: &str) {
    let text = if entries.starts_with('{') { entries.to_owned() } else { read(&root().join(entries)) };
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let file = map.add(entries, text);
    let program = switch.program().clone();
    let parsed = entries_file::parse(&map, file, &program, v1model::MAX_PORT.into(), &mut diagnostics);
    if let Some(parsed) = parsed {
        entries_file::apply(switch, &parsed, &mut diagnostics);
    }
    expect_none(&map, &diagnostics);
}

/// Generates frames from a specification, or those of an exchange's feed from `feed` with the name of a workload.
pub fn traffic(spec: &str, count: usize) -> Vec<(u32, Vec<u8>)> {
    if let Some(name) = spec.strip_prefix("feed ") {
        let workload = Workload::ALL.into_iter().find(|workload| workload.name() == name).expect("a workload");
        let mut feed = Feed::new(itch_feed::Spec { mix: Mix::ADD_ONLY, ..workload.spec(1) });
        return (0..count).map(|_| (1, datagram(&feed.datagram(0)))).collect();
    }
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let file = map.add("traffic", spec);
    let source = traffic_gen::read(&map, file, v1model::MAX_PORT.into(), &mut diagnostics);
    expect_none(&map, &diagnostics);
    let Some(TrafficSource::Made(spec)) = source else { panic!("traffic of the survey is generated") };
    let mut generator = Generator::new(&spec);
    let next = |_| {
        let mut frame = Vec::new();
        (generator.next(&mut frame), frame)
    };
    (0..count).map(next).collect()
}

/// Returns a frame with a UDP datagram to the port of feeds.
fn datagram(payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![1, 0, 0x5e, 0, 0, 1, 2, 0, 0, 0, 0, 1, 8, 0];
    let udp = (payload.len() + 8) as u16;
    frame.extend([0x45, 0]);
    frame.extend((udp + 20).to_be_bytes());
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 239, 0, 0, 1]);
    let sum: u32 = frame[14..34].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame.extend([[0x9c, 0x40], itch_feed::PORT.to_be_bytes(), udp.to_be_bytes(), [0, 0]].concat());
    frame.extend_from_slice(payload);
    frame
}

/// Prepares a case.
pub fn case(case: &Case) -> Loaded {
    let mut switch = switch(&program(case.program));
    if !case.entries.is_empty() {
        fill(&mut switch, case.entries);
    }
    Loaded { switch, frames: traffic(case.traffic, FRAMES) }
}

/// Returns the packet tests of the language and the architecture: names and scripts.
pub fn packet_tests() -> Vec<(String, PathBuf)> {
    let folder = std::fs::read_dir(root().join("testdata/stf")).expect("the packet tests are there");
    let scripts = folder.map(|entry| entry.expect("a file").path());
    let scripts = scripts.filter(|path| path.extension().is_some_and(|extension| extension == "stf"));
    let mut named: Vec<(String, PathBuf)> =
        scripts.map(|path| (path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), path)).collect();
    named.sort();
    named
}

/// Prepares a packet test: the switch as the script leaves it, and the script's packets.
pub fn packet_test(script: &Path) -> Loaded {
    let program = program(&script.with_extension("p4").display().to_string());
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let file = map.add(&script.display().to_string(), read(script));
    let parsed = stf::parse(&map, file, &mut diagnostics);
    let test = parsed.and_then(|parsed| stf::bind(&parsed, &program, &mut diagnostics));
    expect_none(&map, &diagnostics);
    let stf::PreparedTest { switch, packets } =
        test.expect("the script fits").prepare(&program).expect("a v1model program");
    // Batches are as full as they can be; a script has few packets.
    let copies = FRAMES / packets.len().max(1);
    let frames = packets.into_iter().flat_map(|packet| std::iter::repeat_n(packet, copies)).collect();
    Loaded { switch, frames }
}
