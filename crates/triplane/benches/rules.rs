//! Measures `triplane subscribe compile` as a whole command, with bitmaps of ports and with multicast groups, by the
//! number of symbols in its rules: `cargo bench -p triplane --bench rules [-- rules=100000]`.
//!
//! The rules are `stock == S and price > P : fwd(H)`, with thresholds of 1 to 1000 and 200 hosts, each uniformly
//! distributed. Times are wall-clock times; megabytes are the maximum of resident memory, read every 5 ms.

#[path = "../tests/it/support/mod.rs"]
mod support;

use std::process::Stdio;
use std::time::Instant;

use subscribe::workload;
use support::{Directory, triplane};
use testing::memory::wait_and_measure;

const SYMBOLS: [u64; 5] = [1, 100, 1000, 8000, 100_000];

fn main() {
    let rules = std::env::args().find_map(|word| Some(word.strip_prefix("rules=")?.to_owned()));
    let rules = rules.map_or(100_000, |rules| rules.parse().expect("rules= takes a number"));
    let directory = Directory::new();
    let (entries, program) = (directory.path("entries.json"), directory.path("switch.p4"));
    println!("{rules} rules");
    println!("{:>8}  {:<18} {:>6} {:>6}", "symbols", "copies by", "s", "MB");
    for symbols in SYMBOLS {
        let file = directory.write("rules.sub", workload::with_symbols(1, rules, symbols).text);
        for (name, bitmaps) in [("bitmaps", &[][..]), ("multicast groups", &["--groups"])] {
            let mut command = triplane(&["subscribe", "compile", "examples/market-data/orders.p4", &file]);
            command.args(bitmaps).arg("--output").arg(&entries).arg("--program").arg(&program);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let begin = Instant::now();
            let mut child = command.spawn().expect("the command runs");
            let (status, bytes) = wait_and_measure(&mut child).expect("a child can be waited for");
            let seconds = begin.elapsed().as_secs_f64();
            let refused = if status.success() { "" } else { "  refused" };
            println!("{symbols:>8}  {name:<18} {seconds:>6.2} {:>6.0}{refused}", bytes as f64 / 1e6);
        }
    }
}
