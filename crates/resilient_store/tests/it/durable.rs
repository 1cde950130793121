//! Tests durable stores in processes that are killed while a switch writes rows. No output that has left the switch is
//! lost.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use resilient_store::{Cluster, LifeError, OpenError, StoreDirectory, StoreServer};
use rng::SplitMix64;

use crate::live::{LiveSwitch, PATIENCE, answer, request};

/// Variable with the cluster file, the directory and the name of a store that this program is to run.
const STORE: &str = "TRIPLANE_TEST_STORE";
/// Number of rows that are written.
const ROWS: u8 = 16;

/// Runs a store, in a process of [`StoreProcess`].
#[test]
#[ignore = "it is the store of other tests"]
fn store_process() {
    let Ok(setting) = std::env::var(STORE) else { return };
    let parts: Vec<&str> = setting.split('\n').collect();
    let text = std::fs::read_to_string(parts[0]).expect("the file can be read");
    let cluster = Cluster::read(&text, std::path::Path::new(".")).expect("the file is right");
    let member = cluster.store(parts[2]).expect("it is in the file");
    let mut directory = StoreDirectory::open(Path::new(parts[1])).expect("no other process has it");
    let server = StoreServer::open_durable(&cluster, member, &mut directory, false);
    let mut server = server.unwrap_or_else(|error| panic!("{error}"));
    server.run(&AtomicBool::new(false)).unwrap_or_else(|error| panic!("{error}"));
}

/// A store in another process, which is killed when this is dropped.
struct StoreProcess(Child);

impl StoreProcess {
    fn start(cluster: &Path, directory: &Path, name: &str) -> StoreProcess {
        let setting = format!("{}\n{}\n{name}", cluster.display(), directory.display());
        let mut command = Command::new(std::env::current_exe().expect("a program has a path"));
        command.args(["durable::store_process", "--exact", "--ignored", "--nocapture"]).env(STORE, setting);
        StoreProcess(command.stdout(Stdio::null()).stdin(Stdio::null()).spawn().expect("it starts"))
    }
}

impl Drop for StoreProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A directory with a cluster file, and the directories of stores. It is removed when this is dropped.
struct TestCluster {
    path: PathBuf,
    cluster: Cluster,
    stores: Vec<String>,
    switches: Vec<UdpSocket>,
}

impl TestCluster {
    fn new(name: &str, stores: usize) -> TestCluster {
        TestCluster::with_shards(name, stores, 1)
    }

    fn with_shards(name: &str, stores: usize, shards: u16) -> TestCluster {
        let path = std::env::temp_dir().join(format!("triplane-durable-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary directory can be made");
        let bind = || UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
        let sockets: Vec<UdpSocket> = (0..stores + 2).map(|_| bind()).collect();
        let mut text = format!("lease = \"100ms\"\nshards = {shards}\n");
        for (number, socket) in sockets.iter().enumerate() {
            let address = socket.local_addr().expect("it is bound");
            let section = if number < stores { "stores.a" } else { "switches.s" };
            text.push_str(&format!("[{section}{number}]\naddress = \"{address}\"\n"));
        }
        std::fs::write(path.join("cluster.toml"), &text).expect("it can be written");
        let cluster = Cluster::read(&text, std::path::Path::new(".")).expect("the file is right");
        let names = (0..stores).map(|number| format!("a{number}")).collect();
        TestCluster { path, cluster, stores: names, switches: sockets.into_iter().skip(stores).collect() }
    }

    fn directory(&self, store: usize) -> PathBuf {
        self.path.join(&self.stores[store])
    }

    fn start(&self, store: usize) -> StoreProcess {
        StoreProcess::start(&self.path.join("cluster.toml"), &self.directory(store), &self.stores[store])
    }

    fn switch(&self, number: usize) -> LiveSwitch {
        let socket = self.switches[number].try_clone().expect("a socket can be shared");
        LiveSwitch::new(&self.cluster, number, socket)
    }

    fn open(&self, store: usize, is_durable: bool, forgets: bool) -> Result<StoreServer, OpenError> {
        let member = self.cluster.store(&self.stores[store]).expect("it is there");
        // A child of another test may hold the lock between its fork and its exec.
        let until = Instant::now() + PATIENCE;
        let mut directory = loop {
            match StoreDirectory::open(&self.directory(store)) {
                Err(LifeError::InUse(_)) if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
                opened => break opened.expect("no other process has it"),
            }
        };
        let open = if is_durable { StoreServer::open_durable } else { StoreServer::open };
        open(&self.cluster, member, &mut directory, forgets)
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// The writes of rows. Each adds 1.
#[derive(Default)]
struct RowCounts {
    asked: [u32; ROWS as usize],
    answered: [u32; ROWS as usize],
}

impl RowCounts {
    /// Adds 1 to rows until `is_done`, and checks the answers.
    fn write(&mut self, switch: &mut LiveSwitch, answers: &AtomicU64, is_done: &AtomicBool) {
        let mut random = SplitMix64::new(5);
        let (mut asked, mut answered, mut waiting) = (Instant::now(), Instant::now(), 0);
        while !is_done.load(Ordering::Relaxed) {
            let mut frames = Vec::new();
            // While there are no answers, few packets wait or are dropped.
            if random.percent(20) && (waiting < 500 || asked.elapsed() > Duration::from_millis(10)) {
                (asked, waiting) = (Instant::now(), waiting + 1);
                let row = random.below(u64::from(ROWS)) as u8;
                self.asked[usize::from(row)] += 1;
                frames.push(request(2, row, 1));
            }
            for frame in switch.step(frames) {
                let (row, (value, _)) = (usize::from(frame.data[1]), answer(&frame));
                // Each answer shows one more addition at least; additions that were dropped are not answered.
                assert!(value > self.answered[row] && value <= self.asked[row], "row {row}: {value} after {self:?}");
                self.answered[row] = value;
                (answered, waiting) = (Instant::now(), 0);
                answers.fetch_add(1, Ordering::Relaxed);
            }
            assert!(answered.elapsed() < PATIENCE, "no answer after {self:?}");
        }
    }

    /// Reads all rows at another switch.
    fn check(&self, switch: &mut LiveSwitch) {
        for row in 0..ROWS {
            let [(value, _)] = switch.run(vec![request(0, row, 0)], 1)[..] else { panic!("one answer was wanted") };
            let at = usize::from(row);
            assert!((self.answered[at]..=self.asked[at]).contains(&value), "row {row} has {value}, but {self:?}");
        }
    }
}

impl std::fmt::Debug for RowCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} were answered of {:?}", self.answered, self.asked)
    }
}

/// Kills stores in turn while a switch writes, and restarts each. Then another switch reads all rows.
fn kill_in_turn(test: &TestCluster, kills: usize, pause_ms: u64) {
    let (answers, is_done) = (AtomicU64::new(0), AtomicBool::new(false));
    let counts = Mutex::new(RowCounts::default());
    let mut stores: Vec<StoreProcess> = (0..test.stores.len()).map(|store| test.start(store)).collect();
    std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            counts.lock().expect("this is the one user").write(&mut test.switch(0), &answers, &is_done);
        });
        let mut random = SplitMix64::new(kills as u64);
        for kill in 0..kills {
            // The chain works again, and is then killed at a random moment.
            let before = answers.load(Ordering::Relaxed);
            while answers.load(Ordering::Relaxed) < before + 20 && !load.is_finished() {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_micros(random.below(1000 * pause_ms)));
            let store = kill % stores.len();
            drop(stores.remove(store));
            stores.insert(store, test.start(store));
        }
        is_done.store(true, Ordering::Relaxed);
    });
    // All stores lose their memory at once, and the switch is dead.
    stores.clear();
    let stores: Vec<StoreProcess> = (0..test.stores.len()).map(|store| test.start(store)).collect();
    counts.into_inner().expect("no thread has panicked").check(&mut test.switch(1));
    drop(stores);
}

#[test]
fn a_store_that_is_killed_again_and_again_loses_nothing() {
    kill_in_turn(&TestCluster::new("alone", 1), 30, 20);
}

#[test]
fn each_store_of_a_chain_may_be_killed() {
    kill_in_turn(&TestCluster::new("chain", 3), 24, 20);
}

#[test]
fn each_store_of_several_chains_may_be_killed() {
    kill_in_turn(&TestCluster::with_shards("shards", 3, 2), 12, 20);
}

#[test]
fn rows_on_disk_keep_their_number_of_shards() {
    let mut test = TestCluster::with_shards("other-shards", 1, 2);
    let store = test.start(0);
    assert_eq!(test.switch(0).run(vec![request(2, 0, 1)], 1), [(1, 1)]);
    drop(store);
    let text = std::fs::read_to_string(test.path.join("cluster.toml")).expect("it was written");
    let more = text.replace("shards = 2", "shards = 3");
    test.cluster = Cluster::read(&more, std::path::Path::new(".")).expect("the file is right");
    let error = test.open(0, true, false).err().expect("it is refused").to_string();
    assert_eq!(error, "the rows of `a0` are in 2 shards, and the cluster file has shards = 3: use 2");
}

#[test]
fn directories_are_of_one_kind_and_of_one_store() {
    let test = TestCluster::new("kinds", 2);
    let refused = |opened: Result<StoreServer, OpenError>, part: &str| match opened {
        Ok(_) => panic!("it was opened, not refused with {part:?}"),
        Err(error) => assert!(error.to_string().contains(part), "{error} lacks {part:?}"),
    };
    test.open(0, true, false).expect("the directory is new");
    // It continues in the same life.
    let server = test.open(0, true, false).expect("it is its own");
    assert_eq!(server.statistics().disk.map(|disk| disk.rows), Some(0));
    drop(server);
    refused(test.open(0, false, false), "`a0` keeps its rows in");
    refused(test.open(0, true, true), "all of them have to forget together");
    test.open(1, false, false).expect("the directory is new");
    refused(test.open(1, true, false), "its rows are not in");
    std::fs::remove_dir_all(test.directory(1)).expect("it can be removed");
    std::fs::rename(test.directory(0), test.directory(1)).expect("it can be renamed");
    refused(test.open(1, true, false), "has the rows of `a0`");
}

#[test]
fn a_store_that_is_alone_may_forget_its_disk() {
    let test = TestCluster::new("forget", 1);
    let mut store = test.start(0);
    let mut switch = test.switch(0);
    assert_eq!(switch.run(vec![request(2, 3, 1)], 1), [(1, 1)]);
    drop(store);
    drop(switch);
    drop(test.open(0, true, true).expect("it may forget"));
    let rows = |opened: Result<StoreServer, OpenError>| opened.map(|server| server.statistics().rows).ok();
    assert_eq!(rows(test.open(0, true, false)), Some(0));
    store = test.start(0);
    assert_eq!(test.switch(1).run(vec![request(2, 3, 5)], 1), [(5, 1)]);
    drop(store);
    // It may also continue in memory, and then its disk is empty.
    assert_eq!(rows(test.open(0, false, true)), Some(0));
    assert!(matches!(test.open(0, true, false), Err(OpenError::Lost { .. })));
}

#[test]
fn a_durable_store_beside_an_operator_does_not_start_without_its_rows() {
    let path = std::env::temp_dir().join(format!("triplane-operated-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    let address = || UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("loopback has ports");
    let (store, operator) = (address(), address());
    let text = format!("chain = 1\n[stores.a]\naddress = \"{store}\"\n[operator]\naddress = \"{operator}\"\n");
    let cluster = Cluster::read(&text, Path::new(".")).expect("the file is right");
    let member = cluster.store("a").expect("it is there");
    let open = |is_durable: bool| {
        let mut directory = StoreDirectory::open(&path).expect("no other process has it");
        match is_durable {
            true => StoreServer::open_durable(&cluster, member, &mut directory, false).map(drop),
            false => StoreServer::open_joining(&cluster, member, &mut directory).map(drop),
        }
    };
    assert!(open(true).is_ok());
    assert!(matches!(open(false), Err(OpenError::Durable { .. })));
    assert!(open(true).is_ok(), "it goes on with its rows");
    let _ = std::fs::remove_dir_all(&path);
}
