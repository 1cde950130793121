//! A controller's throughput over gRPC on the loopback interface: `cargo bench -p p4runtime_server --bench updates`.
//!
//! One process runs the switch, the server and the client on a thread each, like three programs. Words after `--`
//! choose measurements: `exact`, `lpm`, `ternary` (insertions), `packets` (packet-in), `plane` (packets per second
//! during updates; `plane-exact` and `plane-lpm` for one table), `keep` (packets per second while registers and
//! counters are kept), `elastic` (insertions and packets during updates of a table in a server's memory), `entries=N`
//! the size to which tables are filled (1000000), and `together=N` the number of updates per write during packets (1
//! and 100).

mod elastic;
mod inserts;
mod keep;
#[path = "../../../elastic_switch/benches/shared/nodes.rs"]
mod nodes;
mod packets;
mod plane;
mod program;
mod rig;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let number = |name: &str| {
        let given = words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        given.map(|number| number.parse().unwrap_or_else(|_| panic!("{name}= takes a number")))
    };
    let entries = number("entries").unwrap_or(1_000_000);
    let together = number("together").map_or_else(|| vec![1, 100], |together| vec![together]);
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
    if wanted("keep") {
        keep::measure();
    }
    if wanted("elastic") {
        elastic::measure(entries, &together);
    }
    for kind in [program::EXACT, program::LPM] {
        if wanted("plane") || chosen.contains(&format!("plane-{}", kind.name).as_str()) {
            together.iter().for_each(|together| plane::measure(&kind, *together));
        }
    }
}
