//! Measures the resources of tables in the memory of servers: memory of the switch, and machine code. Bytes of memory
//! are those requested from the allocator; code is measured in pages of executable memory.
//!
//! `cargo bench -p elastic_switch --bench resources`

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Instant;

use bits::Bits;
use compiler::Source;
use elastic_switch::{ElasticConfig, ElasticSwitch, EntryForm, MemoryServerPort, SwitchAddress, bytes_per_server};
use engine::TableEntry;
use ir::{KeyValue, Program};
use rdma::{FrameList, MemoryNode, MemoryNodeConfig};
use rng::SplitMix64;
use switch::{Device, Frame, PortId, SwitchControl, Time};
use testing::allocations::{CountingAllocator, measure};
use testing::memory::executable_kib;
use v1model::{Config, Executor, Switch, V1Model};
use wire::ethernet;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// The network functions, and the macros that select them.
const FUNCTIONS: [(&str, &str); 4] =
    [("NAT", "NAT"), ("stateful firewall", "FIREWALL"), ("load balancer", "BALANCER"), ("VPN gateway", "VPN_GATEWAY")];

const PROGRAM: &str = include_str!("../../xtask/programs/remote-tables.p4");

const ENTRIES: u64 = 100_000;

/// Compilations of each program; the fastest counts.
const TURNS: usize = 9;

/// Port of the memory server.
const SERVER: MemoryServerPort = MemoryServerPort { address: Ipv4Addr::new(10, 9, 0, 1), port: PortId(3) };

fn main() {
    println!("| resource | of | value | unit |\n|---|---|---|---|");
    for (name, selector) in FUNCTIONS {
        let [plain, elastic] = ["", "@elastic"].map(|annotation| program(selector, annotation));
        let local = per_entry(|entries| local_bytes(&plain, entries));
        let (fixed, remote) = (remote_bytes(&elastic, 0), per_entry(|entries| remote_bytes(&elastic, entries)));
        let form = EntryForm::all(&elastic).remove(0);
        println!("| memory of the switch | {name}, local table | {local:.0} | bytes an entry |");
        println!("| memory of the switch | {name}, @elastic | {remote:.0} | bytes an entry |");
        println!("| memory of the switch | {name}, @elastic, without entries | {:.2} | MB |", fixed as f64 / 1e6);
        let of_server = bytes_per_server(&elastic, 1, 1) as f64 / f64::from(form.settings.entries);
        println!("| memory of a server | {name}, one copy | {of_server:.0} | bytes an entry |");
        for (kind, program) in [("local table", &plain), ("@elastic", &elastic)] {
            let (ms, kib) = compile(program);
            println!("| compile time | {name}, {kind} | {ms:.1} | ms |");
            println!("| machine code | {name}, {kind} | {kib} | KiB |");
        }
    }
}

fn program(selector: &str, annotation: &str) -> Arc<Program> {
    let defines = format!("#define {selector}\n#define ENTRIES {ENTRIES}\n#define TABLE_ANNOTATION {annotation}\n");
    Arc::new(compiler::expect_program(&Source::new("function.p4", &(defines + PROGRAM)), &V1Model).ir)
}

fn config() -> Config {
    Config { executor: Executor::Jit, ..Config::with_ports(4) }
}

/// Returns the bytes that an entry adds to those of an empty table.
fn per_entry(bytes: impl Fn(u64) -> i64) -> f64 {
    (bytes(ENTRIES) - bytes(0)) as f64 / ENTRIES as f64
}

/// Inserts entries into the only table.
fn insert(switch: &mut dyn SwitchControl, entries: u64) {
    let program = Arc::clone(switch.program());
    let (id, table) = program.tables.iter().next().expect("the program has a table");
    let action = table.actions[0].action;
    let params = program.actions[action]
        .params
        .iter()
        .map(|param| Bits::new(7, program.slots[param.slot].width))
        .collect::<Vec<_>>();
    for number in 0..entries {
        let key = |width: u32| KeyValue::Exact(Bits::new(u128::from(number) & (u128::MAX >> (128 - width)), width));
        let keys = table.keys.iter().map(|element| key(element.width)).collect();
        switch.objects_mut().insert(id, TableEntry::new(keys, 0, action, params.clone())).expect("there is room");
    }
}

/// Returns the bytes of a switch with a local table: those that it releases when it is dropped.
fn local_bytes(program: &Arc<Program>, entries: u64) -> i64 {
    let mut switch = Switch::new(Arc::clone(program), config()).expect("it is a v1model program");
    insert(&mut switch, entries);
    -measure(|| drop(switch)).1.kept
}

/// Returns the bytes of a switch whose entries are in the memory of a server.
fn remote_bytes(program: &Arc<Program>, entries: u64) -> i64 {
    let inner = Switch::new(Arc::clone(program), config()).expect("it is a v1model program");
    let settings = ElasticConfig::new(SwitchAddress::of(Ipv4Addr::new(10, 9, 1, 1)), vec![SERVER]);
    let mut switch =
        ElasticSwitch::new(inner, &settings, [1, 2], Box::new(SplitMix64::new(3))).expect("it has a table");
    let mut node = MemoryNode::new(MemoryNodeConfig {
        mac: ethernet::Address([2, 0, 0, 0, 1, 1]),
        address: SERVER.address,
        bytes: bytes_per_server(program, 1, 1),
        connections: 8,
    });
    insert(&mut switch, entries);
    let mut random = SplitMix64::new(4);
    let (mut now, mut output) = (Time::ZERO, Vec::new());
    let is_done = |switch: &ElasticSwitch<Switch>| {
        let counts = &switch.counts()[0];
        switch.server_counts()[0].connections == 1 && counts.entries == entries as usize && counts.is_settled
    };
    while !is_done(&switch) {
        now = now.after_ns(10_000);
        let mut replies = FrameList::default();
        let requests: Vec<Frame> = std::mem::take(&mut output);
        let data: Vec<&[u8]> = requests.iter().map(|frame| &frame.data[..]).collect();
        for batch in data.chunks(rdma::MAX_BATCH) {
            node.on_frames(now, &mut random, batch, &mut replies);
        }
        let mut input: Vec<Frame> = Vec::new();
        while let Some(data) = replies.pop() {
            input.push(Frame { port: SERVER.port, data });
        }
        switch.step(now, &mut input, &mut output);
    }
    -measure(|| drop(switch)).1.kept
}

/// Returns the milliseconds of a compilation, and the KiB of machine code.
fn compile(program: &Arc<Program>) -> (f64, u64) {
    let (mut fastest, mut switches) = (f64::MAX, Vec::new());
    let before = executable_kib();
    for _ in 0..TURNS {
        let begin = Instant::now();
        switches.push(Switch::new(Arc::clone(program), config()).expect("it is a v1model program"));
        fastest = fastest.min(begin.elapsed().as_secs_f64() * 1e3);
    }
    (fastest, (executable_kib() - before) / TURNS as u64)
}
