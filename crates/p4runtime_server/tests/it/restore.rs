//! Restoring stored contents with damaged rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use p4runtime_proto::v1::write_request::Atomicity;
use p4runtime_server::store::{MemoryStore, PipelineChanges, Store, StoreChanges, StoredRows};
use p4runtime_server::testing::{EVERY, TestServer, TestTarget};
use p4runtime_server::{Pipeline, Server, Settings};

use crate::v1model_target::V1ModelTarget;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// Returns the rows of a pipeline with contents of many kinds.
fn rows() -> (StoreChanges, Rows) {
    let mut world = TestServer::<V1ModelTarget>::new(3);
    for _ in 0..60 {
        let updates: Vec<_> = (0..4).map(|_| world.update()).collect();
        // Some updates fail.
        let _ = world.write(Atomicity::ContinueOnError, updates);
    }
    let everything = world.everything();
    let rows = everything.committed.values.iter().filter_map(|(key, row)| Some((key.clone(), row.clone()?)));
    let rows = rows.collect();
    (everything, rows)
}

/// Restores these rows. Returns how many were written and lost, and the messages about those.
fn restored(everything: &StoreChanges, rows: &Rows) -> (usize, usize, Vec<String>) {
    let mut store = MemoryStore::default();
    let values = rows.iter().map(|(key, row)| (key.clone(), Some(row.clone()))).collect();
    let committed = PipelineChanges { values, ..everything.committed.clone() };
    store.commit(&StoreChanges { committed, ..Default::default() }).expect("memory can be written");
    let mut visited = 0;
    store.visit(StoredRows::Committed, &mut |_, _| visited += 1).expect("memory can be read");
    assert_eq!(visited, rows.len());
    let (program, info) = V1ModelTarget::every();
    let mut switch = V1ModelTarget::build(Arc::clone(&program)).expect("the switch runs it");
    let settings = Settings::new(V1ModelTarget::architecture(), 0..4, None);
    let pipeline = Pipeline::new(program, info, EVERY.into());
    let (_, restored) = Server::new(settings).with_restored(pipeline, &store, &mut switch).expect("memory can be read");
    assert_eq!(restored.written + restored.lost, rows.len());
    (restored.written, restored.lost, restored.messages)
}

#[test]
fn a_damaged_row_is_named_and_the_others_are_restored() {
    let (everything, rows) = rows();
    assert!(rows.len() > 20, "{} rows", rows.len());
    assert_eq!(restored(&everything, &rows), (rows.len(), 0, Vec::new()));
    let names = ["member ", "group ", "multicast group ", "clone session ", "table `", "default entry of table `"];
    let names = names.into_iter().chain(["value set `", "digest `", "meter `"]);
    let names: BTreeMap<u8, &str> = (1..).zip(names).collect();
    let others: Vec<_> = rows.values().cloned().collect();
    for (number, key) in rows.keys().enumerate() {
        for (damage, row) in [
            ("cut", rows[key][..rows[key].len() - 1].to_vec()),
            ("empty", Vec::new()),
            ("of another entity", others[(number + 1) % others.len()].clone()),
        ] {
            let mut damaged = rows.clone();
            damaged.insert(key.clone(), row);
            let (_, lost, messages) = restored(&everything, &damaged);
            // Those that refer to it are lost too.
            assert!(lost >= 1, "{damage}: {key:?}");
            let expected = names[&key[0]];
            assert!(messages[0].starts_with(expected), "{damage}: `{}` does not begin with `{expected}`", messages[0]);
            assert!(messages[0].ends_with(": the stored row is damaged"), "{damage}: {}", messages[0]);
        }
    }
}

#[test]
fn many_damaged_rows_have_few_messages() {
    let (everything, rows) = rows();
    let damaged = rows.keys().map(|key| (key.clone(), vec![0xff])).collect();
    let (written, lost, messages) = restored(&everything, &damaged);
    assert_eq!((written, lost, messages.len()), (0, rows.len(), 8));
}
