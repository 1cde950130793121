//! What a controller gets done over gRPC on the loopback interface: `cargo bench -p p4runtime --bench updates`.
//!
//! One process has the switch on a thread of its own, the server on another and the client on a third, as three programs
//! would. Words behind `--` choose what is measured: `exact`, `lpm`, `ternary` (insertions), `packets` (packet-in), `plane`
//! (packets a second while updates arrive), and `entries=N` how far tables are filled (1000000).

mod inserts;
mod packets;
mod plane;
mod program;
mod rig;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let entries = words
        .iter()
        .find_map(|word| word.strip_prefix("entries="))
        .map_or(1_000_000, |number| number.parse().expect("entries= takes a number"));
    let chosen: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.contains('=')).collect();
    let wanted = |word: &str| chosen.is_empty() || chosen.contains(&word);
    for kind in [program::EXACT, program::LPM, program::TERNARY] {
        if wanted(kind.name) {
            inserts::measure(&kind, entries);
        }
    }
    if wanted("packets") {
        packets::measure();
    }
    if wanted("plane") {
        plane::measure();
    }
}
