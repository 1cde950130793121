//! Measures the resources of resilient state: memory of a row in the switch and in a store, bytes of the replication,
//! and the compilation of an annotated program. Bytes of memory are those requested from the allocator; code is
//! measured in pages of executable memory.
//!
//! `cargo bench -p resilient_switch --bench resources`

#[allow(dead_code, reason = "the other benchmark uses the rest")]
mod applications;
#[allow(dead_code, reason = "the other benchmark uses the rest")]
mod replicated;

use std::sync::Arc;
use std::time::Instant;

use resilient::sealed::TAG_BYTES;
use resilient::wire_form::datagrams;
use resilient::{
    ChainMember, HoldMode, NodeId, Peer, ReplicaConfig, ReplicaEvent, RowId, RowValues, ShardChain, StateReplica,
    StoreConfig, StoreEvent, StoreLayout, StoreMessage, StoreNode, SwitchId,
};
use resilient_switch::ResilientConfig;
use switch::{HeadroomBuf, PacketSwitch, PortId, Time};
use testing::allocations::{CountingAllocator, measure};
use testing::memory::executable_kib;
use v1model::{Config, Executor, Switch};

use replicated::{Replicated, program, without_annotations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const ROWS: u32 = 100_000;
const NOW: Time = Time::from_ms(1);
/// Frames of a batch.
const BATCH: usize = 32;
/// Compilations of each program; the fastest counts.
const TURNS: usize = 9;

const PROGRAMS: [(&str, &str); 6] = [
    ("NAT", "nat/nat.p4"),
    ("firewall", "connection-firewall/firewall.p4"),
    ("load balancer", "sticky-balancer/balancer.p4"),
    ("EPC-SGW", "gateway/gateway.p4"),
    ("Sync-Counter", "flow-counter/counter.p4"),
    ("key-value store", "key-value/store.p4"),
];

fn main() {
    println!("| resource | of | value | unit |\n|---|---|---|---|");
    for (name, key, value_bytes) in [("row of a register, 4 bytes", 4, 4), ("row of a table, 13 byte key", 13, 2)] {
        let (switch, store) = row_bytes(key, value_bytes);
        println!("| {name} | replica in the switch | {switch:.0} | bytes a row |");
        println!("| {name} | store | {store:.0} | bytes a row |");
    }
    for frames in [1, 8, BATCH] {
        let bytes = replication_bytes(HoldMode::Local, frames);
        println!("| replication | Sync-Counter, {frames} frames at once | {bytes:.1} | bytes a packet |");
    }
    let bytes = replication_bytes(HoldMode::Piggyback, BATCH);
    println!(
        "| replication | Sync-Counter, {BATCH} frames of 60 bytes at once, piggyback | {bytes:.1} | bytes a packet |"
    );
    for (hold, name) in [(HoldMode::Local, "held"), (HoldMode::Piggyback, "piggyback")] {
        for length in [60, 1000, 1400] {
            let (counted, allocated) = waiting_bytes(hold, length);
            let of = format!("Sync-Counter, {length} byte frames, {name}");
            println!("| outputs that wait | {of} | {counted:.0} | bytes a packet |");
            println!("| memory of packets under way | {of} | {allocated:.0} | bytes a packet |");
        }
    }
    for (name, path) in PROGRAMS {
        let path = format!("{}/../../examples/{path}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).expect("the example can be read");
        for (kind, text) in [("plain", without_annotations(&text)), ("resilient", text)] {
            let (ms, kib) = compile(&path, &text);
            println!("| compile time | {name}, {kind} | {ms:.1} | ms |");
            println!("| machine code | {name}, {kind} | {kib} | KiB |");
        }
    }
}

/// Returns the bytes of a row that a replica owns, and of the same row at a store.
fn row_bytes(key_bytes: usize, value_bytes: usize) -> (f64, f64) {
    let member = ChainMember { node: NodeId(1), life: 1 };
    let layout = Arc::new(StoreLayout::new(1, vec![ShardChain { members: vec![member], learner: None }]));
    let mut store = StoreNode::founding(StoreConfig::default(), member, 1, NOW, &layout);
    let config = ReplicaConfig { max_rows: 1 << 20, ..ReplicaConfig::default() };
    let mut replica = StateReplica::new(config, layout, SwitchId(1), 1);
    for number in 0..ROWS {
        let mut key = vec![0; key_bytes];
        key[..4].copy_from_slice(&number.to_be_bytes());
        let row = RowId::new(1, &key).expect("a short key");
        replica.acquire(NOW, row);
        exchange(&mut replica, &mut store);
        replica.write(NOW, &row, RowValues::new(&vec![1; value_bytes]));
        exchange(&mut replica, &mut store);
        replica.unpin(NOW, &row);
    }
    // The memory that a replica or store releases when dropped is the memory that it had.
    let kept = |memory: testing::allocations::MemoryUse| -memory.kept as f64 / f64::from(ROWS);
    (kept(measure(|| drop(replica)).1), kept(measure(|| drop(store)).1))
}

/// Delivers messages until there are none.
fn exchange(replica: &mut StateReplica, store: &mut StoreNode) {
    loop {
        let requests: Vec<StoreMessage> = replica
            .take_events()
            .filter_map(|event| match event {
                ReplicaEvent::Send { message, .. } => Some(message),
                _ => None,
            })
            .collect();
        if requests.is_empty() {
            return;
        }
        requests.into_iter().for_each(|message| store.receive(NOW, Peer::Switch(SwitchId(1)), message));
        store.flush(NOW);
        let replies: Vec<StoreEvent> = store.take_events().collect();
        for event in replies {
            if let StoreEvent::Send { message, .. } = event {
                replica.receive(NOW, NodeId(1), &message);
            }
        }
    }
}

/// Returns the bytes of frames between the flow counter's switch and one store, both ways, for each packet of a flow
/// of its own, if this many arrive together.
fn replication_bytes(hold: HoldMode, together: usize) -> f64 {
    let counter = applications::all().into_iter().next_back().expect("the flow counter is the last one");
    let mut replicated = Replicated::with(counter.switch(str::to_owned), holding(hold));
    replicated.switch.step_in_place(NOW, PortId(1), &mut counter.frames.clone(), &mut Vec::new());
    replicated.exchange(NOW);
    let mut bytes = 0;
    for frames in counter.frames.chunks(together) {
        let (mut batch, mut left) = (frames.to_vec(), Vec::new());
        replicated.switch.step_in_place(NOW, PortId(1), &mut batch, &mut left);
        let requests = replicated.switch.take_messages();
        bytes += frame_bytes(&requests);
        for (_, message) in requests {
            replicated.store.receive(NOW, Peer::Switch(SwitchId(1)), message);
        }
        replicated.store.flush(NOW);
        let events = replicated.store.take_events().filter_map(|event| match event {
            StoreEvent::Send { to, message } => Some((to, message)),
            StoreEvent::Persist { .. } => None,
        });
        let replies: Vec<_> = events.collect();
        bytes += frame_bytes(&replies);
        let mut released = Vec::new();
        replies.iter().for_each(|(_, message)| replicated.switch.deliver(NOW, NodeId(1), message, &mut released));
        assert_eq!(left.len() + released.len(), frames.len());
    }
    bytes as f64 / counter.frames.len() as f64
}

fn holding(hold: HoldMode) -> ResilientConfig {
    let replica = ReplicaConfig { hold, ..ReplicaConfig::default() };
    ResilientConfig { replica, ..ResilientConfig::default() }
}

/// Returns the memory of a switch for each packet of a flow of its own whose write is under way, in bytes: that of the
/// outputs that it holds, and the total requested from the allocator when the requests have left.
fn waiting_bytes(hold: HoldMode, length: usize) -> (f64, f64) {
    let counter = applications::all().into_iter().next_back().expect("the flow counter is the last one");
    let mut replicated = Replicated::with(counter.switch(str::to_owned), holding(hold));
    let longer = |frame: &HeadroomBuf| {
        let mut bytes = frame.bytes().to_vec();
        bytes.resize(length, 0);
        HeadroomBuf::new(&bytes, 128)
    };
    // The rows arrive, and all buffers reach their size.
    for _ in 0..2 {
        let mut frames: Vec<HeadroomBuf> = counter.frames.iter().map(longer).collect();
        replicated.switch.step_in_place(NOW, PortId(1), &mut frames, &mut Vec::new());
        replicated.exchange(NOW);
    }
    let mut frames: Vec<HeadroomBuf> = counter.frames.iter().map(longer).collect();
    let (_, memory) = measure(|| {
        replicated.switch.step_in_place(NOW, PortId(1), &mut frames, &mut Vec::new());
        drop(replicated.switch.take_messages());
    });
    let packets = frames.len() as f64;
    (replicated.switch.counts(NOW).held_bytes as f64 / packets, memory.kept as f64 / packets)
}

/// Returns the bytes of the frames that carry these messages.
fn frame_bytes<R: Copy + Ord>(messages: &[(R, StoreMessage)]) -> usize {
    let around = wire::ethernet::HEADER_LEN + wire::ipv4::HEADER_LEN + wire::udp::HEADER_LEN + TAG_BYTES;
    let owner = messages.iter().find_map(|(_, message)| match message {
        StoreMessage::Request(request) => Some(request.owner),
        _ => None,
    });
    datagrams(messages, |_| owner).iter().map(|(_, datagram)| datagram.len() + around).sum()
}

/// Returns the milliseconds that a program takes from IR to machine code, and the KiB of code.
fn compile(path: &str, text: &str) -> (f64, u64) {
    let program = program(path, text);
    let config = Config { executor: Executor::Jit, ..Config::with_ports(4) };
    let (mut fastest, mut switches) = (f64::MAX, Vec::new());
    let before = executable_kib();
    for _ in 0..TURNS {
        let begin = Instant::now();
        switches.push(Switch::new(Arc::clone(&program), config.clone()).expect("it is a v1model program"));
        fastest = fastest.min(begin.elapsed().as_secs_f64() * 1e3);
    }
    (fastest, (executable_kib() - before) / TURNS as u64)
}
