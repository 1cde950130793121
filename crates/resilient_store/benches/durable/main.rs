//! Measures the acknowledged writes per second of one node with a million rows: on disk, in memory, and compared with
//! other stores.
//!
//! ```text
//! cargo bench -p resilient_store --bench durable -- [--redis ADDRESS] [--only-chains]
//! ```
//!
//! A client in the same thread keeps a number of writes of random rows under way; each acknowledgement makes room for
//! the next one. Values have 8 bytes. Messages are values, without sockets. The disk is that of the target directory.
//! The loop with `redb` commits puts of the same lengths, sorted, as many in a transaction as the node did, without
//! rows, owners or acknowledgements. `--redis` names a redis server, to which the same number of SET commands are under
//! way over one connection; it should have `appendonly yes` and `appendfsync always`.
//!
//! Then chains of two stores with their sockets, each store in a thread, alternate with a redis server and its replica,
//! which the benchmark starts (`SET` and `WAIT 1`): all in memory, and all on disk.

mod chains;
mod redis;
#[path = "../wire_client/mod.rs"]
mod wire_client;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use redb::{Database, TableDefinition};
use resilient::message::{IfMissing, ReplyBody, Request, RequestBody};
use resilient::store::GroupCommit;
use resilient::{
    ChainMember, NodeId, OwnerId, Peer, RowAccess, RowId, RowValues, ShardChain, ShardId, StoreConfig, StoreEvent,
    StoreLayout, StoreMessage, StoreNode, SwitchId,
};
use resilient_store::DiskStatistics;
use resilient_store::bench::{DiskOwner, DiskWriter, ServerDisk, StoreDisk};
use rng::SplitMix64;
use switch::Time;

use redis::RedisLoop;

const ROWS: u64 = 1_000_000;
/// Number of requests that arrive together.
const BATCH: u64 = 64;
const OWNER: OwnerId = OwnerId { switch: SwitchId(1), incarnation: 1 };
const NOW: Time = Time::from_ms(1);
/// Time of a measurement.
const TURN: Duration = Duration::from_secs(4);
const ENTRIES: TableDefinition<&[u8], &[u8]> = TableDefinition::new("entries");

/// A node with a million rows, and its disk if it has one.
struct BenchNode {
    node: StoreNode,
    disk: Option<(DiskWriter, ServerDisk)>,
    random: SplitMix64,
    sent: u64,
    under_way: u64,
    acknowledged: u64,
}

impl BenchNode {
    fn new(directory: Option<&Path>) -> BenchNode {
        let me = ChainMember { node: NodeId(1), life: 1 };
        let layout = Arc::new(StoreLayout::new(1, vec![ShardChain { members: vec![me], learner: None }]));
        let config = StoreConfig { is_durable: directory.is_some(), ..StoreConfig::default() };
        let disk = directory.map(|directory| {
            let owner = DiskOwner { name: "a".to_owned(), node: 1, life: 1 };
            let disk = Arc::new(StoreDisk::create(directory, &owner).expect("the directory can be used"));
            let writer = DiskWriter::start(Arc::clone(&disk)).expect("a thread can be started");
            let (commit, statistics) = (GroupCommit::default(), DiskStatistics::default());
            (writer, ServerDisk { disk, commit, statistics, latency: resilient::LatencyHistogram::default() })
        });
        let node = StoreNode::founding(config, me, 1, NOW, &layout);
        let random = SplitMix64::new(7);
        let mut node = BenchNode { node, disk, random, sent: 0, under_way: 0, acknowledged: 0 };
        node.receive(vec![RequestBody::Renew { shard: ShardId(0), nonce: 1 }]);
        let mut asks = (0..ROWS).map(|row| RequestBody::Acquire {
            row: row_of(row),
            ask: row + 1,
            if_missing: IfMissing::Grant,
            idle_ms: 0,
            access: RowAccess::Write,
        });
        while node.sent <= ROWS {
            if node.has_room() {
                node.receive(asks.by_ref().take(BATCH as usize).collect());
            }
            node.act();
        }
        while node.under_way > 0 {
            node.act();
        }
        node
    }

    fn has_room(&self) -> bool {
        self.disk.as_ref().is_none_or(|(_, disk)| disk.has_room())
    }

    fn receive(&mut self, bodies: Vec<RequestBody>) {
        self.sent += bodies.len() as u64;
        self.under_way += bodies.len() as u64;
        let message = |body| StoreMessage::Request(Request { layout: 1, owner: OWNER, body });
        let mut messages = bodies.into_iter().map(|body| (Peer::Switch(OWNER.switch), message(body))).collect();
        self.node.receive_all(NOW, &mut messages);
    }

    /// Performs a server's work between two batches. Sleeps briefly if there is none.
    fn act(&mut self) {
        if let Some((writer, disk)) = &mut self.disk
            && let Some(up_to) = writer.finished(disk).expect("the disk has room")
        {
            self.node.persisted(up_to);
        }
        let mut replies = 0;
        for event in self.node.take_events() {
            match (event, &mut self.disk) {
                (StoreEvent::Send { message: StoreMessage::Reply(reply), .. }, _) => {
                    replies += 1;
                    self.acknowledged += u64::from(matches!(reply.body, ReplyBody::Acked { .. }));
                }
                (StoreEvent::Persist { number, record }, Some((_, disk))) => disk.persist(number, record),
                (event, _) => panic!("{event:?} was not expected"),
            }
        }
        self.under_way -= replies;
        if let Some((writer, disk)) = &mut self.disk {
            writer.start_commit(disk, ROWS).expect("the disk has room");
        }
    }

    /// Keeps this number of writes under way, and returns the acknowledged ones per second.
    fn measure(&mut self, window: u64) -> f64 {
        let (start, before) = (Instant::now(), self.acknowledged);
        while start.elapsed() < TURN {
            if self.under_way + BATCH <= window && self.has_room() {
                let (random, seq) = (&mut self.random, self.sent);
                let write = |number: u64| RequestBody::Write {
                    row: row_of(random.below(ROWS)),
                    epoch: 1,
                    seq: seq + number,
                    values: RowValues::new(&number.to_be_bytes()),
                    outputs: None,
                };
                let writes = (0..BATCH).map(write).collect();
                self.receive(writes);
            } else if self.disk.is_some() {
                std::thread::sleep(Duration::from_micros(20));
            }
            self.act();
        }
        (self.acknowledged - before) as f64 / start.elapsed().as_secs_f64()
    }

    fn commits(&self) -> DiskStatistics {
        self.disk.as_ref().map(|(_, disk)| disk.statistics).unwrap_or_default()
    }
}

fn row_of(index: u64) -> RowId {
    RowId::of_index(1, index as u32)
}

/// Returns the median time of making 4 KiB at the end of a file durable.
fn sync_time(directory: &Path) -> Duration {
    let mut file = std::fs::File::create(directory.join("sync")).expect("it can be created");
    let mut times: Vec<Duration> = (0..200)
        .map(|_| {
            file.write_all(&[1; 4096]).expect("the disk has room");
            let start = Instant::now();
            file.sync_data().expect("the disk works");
            start.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

/// A table of `redb` with as many entries as the node has rows, of the same lengths.
struct RedbLoop {
    database: Database,
    random: SplitMix64,
}

impl RedbLoop {
    fn new(directory: &Path) -> RedbLoop {
        let mut builder = Database::builder();
        let database = builder.set_cache_size(256 << 20).create(directory.join("loop.redb")).expect("it is created");
        let mut bench = RedbLoop { database, random: SplitMix64::new(7) };
        bench.commit(0..ROWS);
        bench
    }

    fn commit(&mut self, rows: impl Iterator<Item = u64>) {
        let rows: BTreeMap<[u8; 16], [u8; 56]> = rows.map(|row| (key_of(row), [7; 56])).collect();
        let transaction = self.database.begin_write().expect("one writes");
        {
            let mut table = transaction.open_table(ENTRIES).expect("it has a table");
            for (key, value) in &rows {
                table.insert(key.as_slice(), value.as_slice()).expect("the disk has room");
            }
        }
        transaction.commit().expect("the disk has room");
    }

    fn measure(&mut self, batch: u64) -> f64 {
        let (start, mut done) = (Instant::now(), 0);
        while start.elapsed() < TURN {
            let mut random = SplitMix64::new(self.random.next_u64());
            self.commit((0..batch).map(|_| random.below(ROWS)));
            done += batch;
        }
        done as f64 / start.elapsed().as_secs_f64()
    }
}

fn key_of(row: u64) -> [u8; 16] {
    let mut key = [3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0, 0];
    key[12..].copy_from_slice(&(row as u32).to_be_bytes());
    key
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let redis = arguments.iter().position(|argument| argument == "--redis").and_then(|at| arguments.get(at + 1));
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("durable-bench");
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("the target directory can be used");
    if !arguments.iter().any(|argument| argument == "--only-chains") {
        one_node(&directory, redis.map(String::as_str));
    }
    if let Err(error) = chains::compare(&directory) {
        println!("chains of two: not measured, {error}");
    }
    let _ = std::fs::remove_dir_all(&directory);
}

/// Measures one node on disk and in memory, the loop with `redb`, and a redis server.
fn one_node(directory: &Path, redis: Option<&str>) {
    println!("sync of 4 KiB at the end of a file: {} us (median)", sync_time(directory).as_micros());
    let mut durable = BenchNode::new(Some(directory));
    let mut memory = BenchNode::new(None);
    let mut redb = RedbLoop::new(directory);
    let mut redis = redis.map(RedisLoop::new);
    if let Some(redis) = &mut redis {
        let (only, sync) = (redis.setting("appendonly"), redis.setting("appendfsync"));
        println!("redis: appendonly {only}, appendfsync {sync}");
    }
    println!(
        "{:>9}  {:>12}  {:>14}  {:>9}  {:>10}  {:>10}",
        "under way", "durable, K/s", "rows a commit", "commit, ms", "in memory", "redb loop"
    );
    for window in [64, 1024, 4096, 16_384, 65_536] {
        let before = durable.commits();
        let rate = durable.measure(window);
        let after = durable.commits();
        let commits = (after.commits - before.commits).max(1);
        let batch = (after.records - before.records) / commits;
        let commit_ms = TURN.as_secs_f64() * 1e3 / commits as f64;
        let (in_memory, with_redb) = (memory.measure(window), redb.measure(batch.max(1)));
        let beside = |other: f64| format!("{:.0} ({:.2})", other / 1e3, rate / other);
        let redis = redis.as_mut().map_or(String::new(), |redis| format!("  redis {}", beside(redis.measure(window))));
        println!(
            "{window:>9}  {:>12.1}  {batch:>14}  {commit_ms:>10.2}  {:>10}  {:>10}{redis}",
            rate / 1e3,
            beside(in_memory),
            beside(with_redb)
        );
    }
    let file = std::fs::metadata(directory.join("rows.redb")).map_or(0, |file| file.len());
    println!("file of {ROWS} rows: {} MiB; in parentheses: durable / the other", file >> 20);
}
