use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use resilient::message::{IfMissing, Reply, ReplyBody, Request, RequestBody};
use resilient::store::GroupCommit;
use resilient::{
    ChainMember, NodeId, OwnerId, Peer, RowAccess, RowId, ShardChain, ShardId, StoreConfig, StoreEvent, StoreLayout,
    StoreMessage, StoreNode, SwitchId,
};
use rng::SplitMix64;
use switch::Time;

use super::*;

const ME: ChainMember = ChainMember { node: NodeId(1), life: 1 };

/// A directory that is removed when this is dropped.
struct TestDirectory(PathBuf);

impl TestDirectory {
    fn new(name: &str) -> TestDirectory {
        let path = std::env::temp_dir().join(format!("triplane-disk-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary directory can be made");
        TestDirectory(path)
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A file that fails: writes after `left` bytes find the disk full, and a crash loses or tears writes that were not
/// synced.
#[derive(Clone, Debug)]
struct FaultyBackend {
    file: Arc<Mutex<FaultyFile>>,
    left: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct FaultyFile {
    bytes: Vec<u8>,
    synced: Vec<u8>,
    unsynced: Vec<(usize, Vec<u8>)>,
}

impl FaultyBackend {
    fn new() -> FaultyBackend {
        FaultyBackend { file: Arc::default(), left: Arc::new(AtomicU64::new(u64::MAX)) }
    }

    fn set_room(&self, bytes: u64) {
        self.left.store(bytes, Ordering::Relaxed);
    }

    fn take(&self, bytes: u64) -> io::Result<()> {
        let take = |left: u64| left.checked_sub(bytes);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).map(drop).map_err(|_| {
            self.set_room(0);
            ErrorKind::StorageFull.into()
        })
    }

    fn file(&self) -> MutexGuard<'_, FaultyFile> {
        self.file.lock().expect("no test panics with it")
    }

    /// Returns a possible state of the file after a crash.
    fn crash(&self, random: &mut SplitMix64) -> FaultyBackend {
        let file = self.file();
        let mut bytes = file.synced.clone();
        for (offset, data) in &file.unsynced {
            let sectors = data.chunks(512).zip((*offset..).step_by(512));
            let is_whole = random.percent(30);
            for (sector, at) in sectors {
                if is_whole || random.percent(50) {
                    bytes.resize(bytes.len().max(at + sector.len()), 0);
                    bytes[at..at + sector.len()].copy_from_slice(sector);
                }
            }
        }
        let crashed = FaultyBackend::new();
        *crashed.file() = FaultyFile { synced: bytes.clone(), bytes, unsynced: Vec::new() };
        crashed
    }
}

impl StorageBackend for FaultyBackend {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file().bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let (file, at) = (self.file(), offset as usize);
        let bytes = file.bytes.get(at..at + out.len()).ok_or(ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut file = self.file();
        file.bytes.resize(len as usize, 0);
        file.synced.resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.take(0)?;
        let mut file = self.file();
        file.synced = file.bytes.clone();
        file.unsynced.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.take(data.len() as u64)?;
        let (mut file, at) = (self.file(), offset as usize);
        file.bytes.get_mut(at..at + data.len()).ok_or(ErrorKind::UnexpectedEof)?.copy_from_slice(data);
        file.unsynced.push((at, data.to_vec()));
        Ok(())
    }
}

fn owner(name: &str) -> DiskOwner {
    DiskOwner { name: name.to_owned(), node: 1, life: 1 }
}

/// A durable node, with the collector of its records.
struct TestNode {
    node: StoreNode,
    commit: GroupCommit,
    asks: u64,
    granted: u64,
}

impl TestNode {
    fn new() -> TestNode {
        let chain = ShardChain { members: vec![ME], learner: None };
        let layout = Arc::new(StoreLayout::new(1, vec![chain]));
        let config = StoreConfig { is_durable: true, ..StoreConfig::default() };
        let node = StoreNode::founding(config, ME, 1, Time::ZERO, &layout);
        let mut node = TestNode { node, commit: GroupCommit::default(), asks: 0, granted: 0 };
        node.request(RequestBody::Renew { shard: ShardId(0), nonce: 1 });
        node
    }

    fn request(&mut self, body: RequestBody) {
        let owner = OwnerId { switch: SwitchId(1), incarnation: 1 };
        let request = StoreMessage::Request(Request { layout: 1, owner, body });
        self.node.receive(Time::ZERO, Peer::Switch(SwitchId(1)), request);
        self.take();
    }

    /// Asks for rows that the node does not have yet.
    fn grow(&mut self, rows: u64) {
        for _ in 0..rows {
            self.asks += 1;
            let row = RowId::of_index(1, self.asks as u32);
            self.request(RequestBody::Acquire {
                row,
                ask: self.asks,
                if_missing: IfMissing::Grant,
                idle_ms: 0,
                access: RowAccess::Write,
            });
        }
    }

    fn take(&mut self) {
        for event in self.node.take_events() {
            match event {
                StoreEvent::Persist { number, record } => self.commit.push(number, record),
                StoreEvent::Send { message, .. } => {
                    let is_granted = |reply: &Reply| matches!(reply.body, ReplyBody::Granted { .. });
                    self.granted += u64::from(matches!(message, StoreMessage::Reply(reply) if is_granted(&reply)));
                }
            }
        }
    }

    fn commit_to(&mut self, disk: &StoreDisk) -> Result<(), DiskError> {
        let Some(batch) = self.commit.take() else { return Ok(()) };
        disk.commit(&batch)?;
        self.node.persisted(batch.up_to());
        self.take();
        Ok(())
    }
}

/// Returns the number of rows that a disk has.
fn recovered(disk: &StoreDisk) -> u64 {
    let config = StoreConfig { is_durable: true, ..StoreConfig::default() };
    let mut recovery = StoreRecovery::new(config, ME, 1, Time::ZERO);
    disk.recover(&mut recovery).expect("the file is whole");
    recovery.finish().expect("the entries belong together").0.rows(ShardId(0)) as u64
}

#[test]
fn rows_are_there_when_the_file_is_opened_again() {
    let directory = TestDirectory::new("again");
    let mut node = TestNode::new();
    let disk = StoreDisk::create(&directory.0, &owner("a")).expect("the directory can be used");
    for _ in 0..5 {
        node.grow(100);
        node.commit_to(&disk).expect("the disk has room");
    }
    disk.set_longest_lease_ns(7).expect("the disk has room");
    drop(disk);
    let (disk, life) = StoreDisk::open(&directory.0, &owner("a")).expect("it is whole");
    assert_eq!((recovered(&disk), life, disk.longest_lease_ns().ok()), (500, 1, Some(7)));
}

#[test]
fn nothing_is_acknowledged_that_a_full_disk_did_not_take() {
    let path = Path::new("rows.redb");
    let mut failed = 0;
    for room in (0..60).map(|step| 20_000 + step * 40_000) {
        let backend = FaultyBackend::new();
        let disk = StoreDisk::with_backend(path, Ok(backend.clone())).expect("it has room");
        let mut node = TestNode::new();
        backend.set_room(room);
        let error = (0..60).find_map(|_| {
            node.grow(50);
            node.commit_to(&disk).err()
        });
        let Some(error) = error else { continue };
        failed += 1;
        let text = error.to_string();
        assert!(text.starts_with("cannot write rows.redb: ") && text.contains("remove the cause"), "{text}");
        drop(disk);
        // There is space again when the store restarts.
        backend.set_room(u64::MAX);
        let disk = StoreDisk::with_backend(path, Ok(backend)).expect("the file is whole");
        let rows = recovered(&disk);
        assert!((node.granted..=node.asks).contains(&rows), "{rows} rows, {} granted", node.granted);
    }
    assert!(failed > 20, "{failed}");
}

#[test]
fn a_crash_that_tears_writes_loses_nothing_that_was_acknowledged() {
    let path = Path::new("rows.redb");
    let mut random = SplitMix64::new(11);
    let mut torn = 0;
    for _ in 0..60 {
        let backend = FaultyBackend::new();
        let disk = StoreDisk::with_backend(path, Ok(backend.clone())).expect("it has room");
        let mut node = TestNode::new();
        // The disk stops in the middle of a transaction.
        for commit in 0..8 {
            if commit == 7 {
                backend.set_room(random.below(60_000));
            }
            node.grow(1 + random.below(60));
            if node.commit_to(&disk).is_err() {
                torn += 1;
            }
        }
        let disk = StoreDisk::with_backend(path, Ok(backend.crash(&mut random))).expect("the file can be repaired");
        let rows = if node.granted > 0 { recovered(&disk) } else { 0 };
        assert!((node.granted..=node.asks).contains(&rows), "{rows} rows, {} granted", node.granted);
    }
    assert!(torn > 20, "{torn}");
}

#[test]
fn files_that_are_not_the_stores_are_refused_and_left() {
    let directory = TestDirectory::new("refused");
    let path = directory.0.join(FILE);
    let refused = |bytes: &[u8], part: &str| {
        fs::write(&path, bytes).expect("it can be written");
        let error = StoreDisk::open(&directory.0, &owner("a")).expect_err("it is no file of a store").to_string();
        assert!(error.contains(part), "{error:?} lacks {part:?}");
        assert_eq!(fs::read(&path).expect("it is there"), bytes);
    };
    refused(b"", "is damaged (it does not begin as such files do)");
    refused(b"rows", "is damaged");
    refused(&[&MAGIC[..], &[0; 5000]].concat(), "is damaged");
    let disk = StoreDisk::create(&directory.0, &owner("b")).expect("the directory can be used");
    let error = StoreDisk::open(&directory.0, &owner("b")).expect_err("it is open already").to_string();
    assert!(error.contains("another process uses it"), "{error}");
    let mut node = TestNode::new();
    node.grow(300);
    node.commit_to(&disk).expect("the disk has room");
    drop(disk);
    let error = StoreDisk::open(&directory.0, &owner("a")).expect_err("it has another owner").to_string();
    assert!(error.contains("has the rows of `b`"), "{error}");
    let whole = fs::read(&path).expect("it is there");
    let mut damaged = 0;
    for at in (0..whole.len()).step_by(whole.len() / 100) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        fs::write(&path, bytes).expect("it can be written");
        // A file that opens has all rows.
        match StoreDisk::open(&directory.0, &owner("b")) {
            Ok((disk, _)) => assert_eq!(recovered(&disk), 300),
            Err(_) => damaged += 1,
        }
    }
    assert!(damaged > 5, "{damaged}");
    fs::write(&path, &whole).expect("it can be written");
    let (disk, _) = StoreDisk::open(&directory.0, &owner("b")).expect("it is whole again");
    disk.write(|transaction| {
        transaction.open_table(ABOUT)?.insert("format", 1u64.to_be_bytes().as_slice())?;
        Ok(())
    })
    .expect("the disk has room");
    drop(disk);
    let error = StoreDisk::open(&directory.0, &owner("b")).expect_err("it has another format").to_string();
    assert!(error.contains("written by another version"), "{error}");
}

#[test]
fn a_file_has_what_a_map_has_whenever_it_is_opened() {
    let path = Path::new("rows.redb");
    let mut random = SplitMix64::new(13);
    let mut backend = FaultyBackend::new();
    let mut disk = StoreDisk::with_backend(path, Ok(backend.clone())).expect("it has room");
    let mut expected: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for _ in 0..600 {
        let mut changes = Vec::new();
        for _ in 0..1 + random.below(12) {
            let key = vec![random.below(3) as u8, random.below(40) as u8];
            if random.percent(25) {
                changes.push(EntryChange::Remove(key));
            } else {
                changes
                    .push(EntryChange::Put(key, random.next_u64().to_be_bytes()[..random.below(8) as usize].to_vec()));
            }
        }
        if random.below(50) == 0 {
            changes.insert(0, EntryChange::RemoveAll(vec![random.below(3) as u8]));
        }
        for change in changes.clone() {
            match change {
                EntryChange::Put(key, value) => drop(expected.insert(key, value)),
                EntryChange::Remove(key) => drop(expected.remove(&key)),
                EntryChange::RemoveAll(prefix) => expected.retain(|key, _| !key.starts_with(&prefix)),
            }
        }
        disk.change(changes).expect("it has room");
        if random.percent(10) {
            backend = backend.crash(&mut random);
            disk = StoreDisk::with_backend(path, Ok(backend.clone())).expect("it can be repaired");
            let mut entries = BTreeMap::new();
            disk.for_each_entry(|key, value| {
                entries.insert(key.to_vec(), value.to_vec());
                true
            })
            .expect("it is whole");
            assert_eq!(entries, expected);
        }
    }
}
