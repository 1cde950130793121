//! Measures the speed of lab simulation: `cargo bench -p triplane --bench lab`.
//!
//! Each network is simulated three times with the command, as a user would run it; the fastest run counts. The time is
//! that of the whole process, including reading, compiling the program and creating the switches. Memory is the peak of
//! the process.

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testing::memory::wait_and_measure;

/// A network, its traffic, and the number of threads.
struct Case {
    name: &'static str,
    shape: &'static [&'static str],
    scenario: String,
    threads: u32,
}

/// Returns a scenario that sends datagrams from each host of the first list to the host at the same place in the
/// second, for one second.
fn datagrams(from: &[u32], to: &[u32], rate: &str, size: u32, timing: &str) -> String {
    let list = |hosts: &[u32]| hosts.iter().map(|host| format!("\"h{host}\"")).collect::<Vec<_>>().join(", ");
    let mut text = "duration = \"1s\"\nsample = \"10ms\"\n[[traffic]]\nkind = \"udp\"\n".to_owned();
    _ = writeln!(text, "from = [{}]\nto = [{}]", list(from), list(to));
    _ = writeln!(text, "rate = \"{rate}\"\nsize = {size}\ntiming = \"{timing}\"");
    text
}

/// Simulates a case once and returns the number of switch hops, the time, and the peak memory in bytes.
fn run(folder: &Path, case: &Case) -> (u64, Duration, u64) {
    let command = || Command::new(env!("CARGO_BIN_EXE_triplane"));
    let (lab, scenario) = (folder.join("lab.toml"), folder.join("scenario.toml"));
    let made = command().args(["lab", "new"]).args(case.shape).output().expect("the command runs");
    std::fs::write(&lab, made.stdout).expect("a temporary file can be written");
    std::fs::write(&scenario, &case.scenario).expect("a temporary file can be written");
    let out = std::fs::File::create(folder.join("results.json")).expect("a temporary file can be written");
    let began = Instant::now();
    let mut child = command()
        .args(["lab", "sim", "--json", "--threads", &case.threads.to_string(), "--scenario"])
        .args([&scenario, &lab])
        .stdout(out)
        .stderr(Stdio::inherit())
        .spawn()
        .expect("the command runs");
    let (_, most) = wait_and_measure(&mut child).expect("a child can be waited for");
    let took = began.elapsed();
    let text = std::fs::read_to_string(folder.join("results.json")).expect("results were written");
    let results: serde_json::Value = serde_json::from_str(&text).expect("as JSON");
    (results["totals"]["switch_hops"].as_u64().expect("a number"), took, most)
}

fn main() {
    let all: Vec<u32> = (1..=128).collect();
    let opposite: Vec<u32> = all.iter().map(|host| (host + 63) % 128 + 1).collect();
    let line = datagrams(&[1, 2], &[5, 6], "2Gbps", 500, "constant");
    let tree = datagrams(&all, &opposite, "40Mbps", 625, "poisson");
    let path: &[&str] = &["line", "--switches", "3", "--hosts", "2", "--rate", "10Gbps"];
    let fat_tree: &[&str] = &["fat-tree", "--k", "8"];
    let cases = [
        Case { name: "line of 3 switches", shape: path, scenario: line, threads: 1 },
        Case { name: "fat tree, k=8", shape: fat_tree, scenario: tree.clone(), threads: 1 },
        Case { name: "fat tree, k=8, 2 threads", shape: fat_tree, scenario: tree, threads: 2 },
    ];
    let folder = std::env::temp_dir().join(format!("triplane-bench-lab-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary directory can be made");
    println!("{:26} {:>12} {:>8} {:>14} {:>10}", "", "switch hops", "s", "hops/s", "MB");
    for case in &cases {
        let fastest = (0..3).map(|_| run(&folder, case)).min_by_key(|(_, took, _)| *took).expect("three runs");
        let (hops, took, most) = fastest;
        let rate = hops as f64 / took.as_secs_f64();
        println!("{:26} {hops:>12} {:>8.2} {rate:>14.0} {:>10}", case.name, took.as_secs_f64(), most / 1_000_000);
    }
    let _ = std::fs::remove_dir_all(&folder);
}
