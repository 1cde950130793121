//! Tests of the store in a directory: its content after a restart, and damaged files.

use p4runtime_proto::prost::Message;
use p4runtime_proto::v1;
use rng::SplitMix64;

use super::*;
use crate::store::MemoryStore;

/// A directory that is removed on drop.
struct TempDirectory(PathBuf);

impl Drop for TempDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn directory(name: &str) -> TempDirectory {
    TempDirectory(std::env::temp_dir().join(format!("triplane-{name}-{}", std::process::id())))
}

fn changes(pipeline: Option<u64>, values: &[(u8, Option<i32>)]) -> PipelineChanges {
    let config = |cookie| {
        let cookie = Some(v1::forwarding_pipeline_config::Cookie { cookie });
        v1::ForwardingPipelineConfig { cookie, ..Default::default() }.encode_to_vec()
    };
    let update = |kind| v1::Update { r#type: kind, entity: None }.encode_to_vec();
    let values = values.iter().map(|(key, value)| (vec![*key], value.map(update)));
    PipelineChanges {
        pipeline: pipeline.map(|cookie| Some(config(cookie))),
        values: values.collect(),
        arrays: BTreeMap::new(),
    }
}

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// Returns everything that a store holds.
fn content(store: &dyn Store) -> Result<(Option<StoredState>, [Rows; 3]), StoreError> {
    let mut all = [Vec::new(), Vec::new(), Vec::new()];
    for (kind, rows) in [StoredRows::Committed, StoredRows::Saved, StoredRows::Arrays].into_iter().zip(&mut all) {
        store.visit(kind, &mut |key, value| rows.push((key.to_vec(), value.to_vec())))?;
    }
    Ok((store.load()?, all))
}

#[test]
fn a_reopened_store_has_the_content_of_the_model() {
    let directory = directory("store");
    let mut memory = MemoryStore::default();
    let none = PipelineChanges::default;
    let steps = [
        (none(), changes(Some(6), &[(1, Some(2))])),
        (changes(Some(7), &[(1, Some(1)), (3, Some(2))]), PipelineChanges::gone()),
        (changes(None, &[(2, Some(1)), (1, None), (9, None)]), none()),
        (changes(None, &[(2, Some(2))]), changes(Some(8), &[(5, Some(1))])),
        (none(), changes(None, &[(4, Some(1)), (5, None)])),
        (changes(Some(8), &[(4, Some(1))]), PipelineChanges::gone()),
        (changes(None, &[(5, Some(1))]), none()),
    ];
    assert_eq!(DiskStore::open(&directory.0).unwrap().load().unwrap(), None);
    for (number, (committed, saved)) in steps.into_iter().enumerate() {
        let step = StoreChanges { committed, saved };
        memory.commit(&step).unwrap();
        DiskStore::open(&directory.0).unwrap().commit(&step).unwrap();
        let kept = content(&DiskStore::open(&directory.0).unwrap()).unwrap();
        assert_eq!(kept, content(&memory).unwrap());
        let kept = kept.0.unwrap();
        assert_eq!(kept.committed.is_some(), number > 0);
        assert_eq!(kept.saved.is_some(), [0, 3, 4].contains(&number));
    }
    assert_eq!(memory.load().unwrap().unwrap().generation, 2);
}

#[test]
fn stores_without_a_saved_pipeline_are_read() {
    let directory = directory("before");
    let mut first = DiskStore::open(&directory.0).unwrap();
    let step = StoreChanges { committed: changes(Some(7), &[(1, Some(1))]), saved: PipelineChanges::default() };
    first.commit(&step).unwrap();
    first.set_metadata("format", WITHOUT_SAVED).unwrap();
    drop(first);
    let again = DiskStore::open(&directory.0).unwrap();
    let (state, [committed, ..]) = content(&again).unwrap();
    assert!(state.unwrap().committed.is_some() && committed.len() == 1);
    assert_eq!(again.metadata("format").unwrap().as_deref(), Some(FORMAT));
}

#[test]
fn one_process_has_it_and_another_format_is_not_touched() {
    let directory = directory("one");
    let first = DiskStore::open(&directory.0).unwrap();
    assert!(matches!(DiskStore::open(&directory.0), Err(DiskError::InUse(_))));
    first.set_metadata("format", b"4").unwrap();
    drop(first);
    assert!(matches!(DiskStore::open(&directory.0), Err(DiskError::Format(_))));
}

#[test]
fn a_file_of_another_kind_is_refused_and_not_changed() {
    let directory = directory("kind");
    std::fs::create_dir_all(&directory.0).unwrap();
    let path = directory.0.join(FILE);
    let mut magic = MAGIC.to_vec();
    magic.resize(100, 0);
    for (bytes, expected) in [
        (&b""[..], "its file p4runtime.redb is empty, so its state is lost; remove the file to start without state"),
        (b"x", "its file p4runtime.redb is not a state file, and is left unchanged"),
        (b"SQLite format 3\0 and more of it", "its file p4runtime.redb is not a state file, and is left unchanged"),
        (&magic, "its file is damaged ("),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let error = DiskStore::open(&directory.0).err().expect("it is refused").to_string();
        assert!(error.starts_with("cannot use the state directory ") && error.contains(expected), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(matches!(DiskStore::open(&directory.0), Err(DiskError::Open(..))));
}

#[test]
fn an_interrupted_first_start_leaves_nothing_that_the_next_one_refuses() {
    let directory = directory("first");
    std::fs::create_dir_all(&directory.0).unwrap();
    for left in [&b""[..], b"half of a file", &MAGIC] {
        std::fs::write(directory.0.join(NEW_FILE), left).unwrap();
        assert_eq!(DiskStore::open(&directory.0).unwrap().load().unwrap(), None);
        assert!(!directory.0.join(NEW_FILE).exists());
        std::fs::remove_file(directory.0.join(FILE)).unwrap();
    }
    // Interrupted between the two names: the state has both, and later only its own.
    let mut store = DiskStore::open(&directory.0).unwrap();
    let step = StoreChanges { committed: changes(Some(7), &[]), saved: PipelineChanges::default() };
    store.commit(&step).unwrap();
    drop(store);
    std::fs::hard_link(directory.0.join(FILE), directory.0.join(NEW_FILE)).unwrap();
    assert!(DiskStore::open(&directory.0).unwrap().load().unwrap().is_some());
    assert!(!directory.0.join(NEW_FILE).exists());
}

/// Changes bytes of a file of several megabytes at random places, and cuts it at random lengths.
#[test]
fn a_damaged_file_is_refused_or_has_the_whole_content() {
    const ROUNDS: usize = 120;
    let directory = directory("damage");
    let mut store = DiskStore::open(&directory.0).unwrap();
    let mut random = SplitMix64::new(5);
    for round in 0..4u64 {
        let mut committed = changes((round == 0).then_some(7), &[]);
        for at in 0..2_000u64 {
            let value = vec![at as u8; 40 + (random.next_u64() % 100) as usize];
            committed.values.insert((at * (round + 1)).to_be_bytes().to_vec(), Some(value));
        }
        committed.arrays.insert(vec![b'r', round as u8], Some(vec![round as u8; 30_000]));
        store.commit(&StoreChanges { committed, saved: PipelineChanges::default() }).unwrap();
    }
    let expected = content(&store).unwrap();
    drop(store);
    let path = directory.0.join(FILE);
    let whole = std::fs::read(&path).unwrap();
    let (mut refused, mut read) = (0, 0);
    for round in 0..ROUNDS {
        let mut damaged = whole.clone();
        let at = match round % 4 {
            // The header with the roots, and the first pages.
            0 => random.next_u64() % 512,
            1 => random.next_u64() % 16_384,
            _ => random.next_u64() % whole.len() as u64,
        } as usize;
        match round % 8 {
            7 => damaged.truncate(at),
            6 => damaged[at..].iter_mut().take(4096).for_each(|byte| *byte = 0),
            _ => damaged[at] ^= 1 << (random.next_u64() % 8),
        }
        std::fs::write(&path, &damaged).unwrap();
        match DiskStore::open(&directory.0) {
            Ok(store) => {
                assert_eq!(content(&store).unwrap(), expected, "round {round}, byte {at}");
                read += 1;
            }
            Err(error) => {
                let error = error.to_string();
                assert!(!error.contains('\n') && error.len() < 400, "round {round}, byte {at}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > ROUNDS / 4 && read > 0, "{refused} refused, {read} read");
}

#[test]
fn only_the_owner_may_read_the_file() {
    let directory = directory("private");
    let file = directory.0.join(FILE);
    let mode = || std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    let set = |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    // The directory is that of a user who created it before.
    std::fs::create_dir(&directory.0).unwrap();
    set(&directory.0, 0o755);
    drop(DiskStore::open(&directory.0).unwrap());
    assert_eq!(mode(), 0o600);
    set(&file, 0o644);
    drop(DiskStore::open(&directory.0).unwrap());
    assert_eq!(mode(), 0o600);
    set(&directory.0, 0o777);
    let refused = DiskStore::open(&directory.0).err().map(|error| error.to_string());
    assert!(refused.is_some_and(|text| text.contains("can be written by every user")));
}
