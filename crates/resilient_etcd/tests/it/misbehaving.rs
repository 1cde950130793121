//! Tests servers that lose answers, refuse calls, and send invalid answers.

use resilient_etcd::proto::{KeyValue, RangeResponse, ResponseOp, TxnResponse, response_op};
use resilient_store::{KeeperError, LayoutKeeper, LayoutSwap};
use testing::port::reserved_address;

use crate::fake::{Behaviour, FakeEtcd};
use crate::{keeper, record};

/// The key of the test's keepers.
const KEY: &str = "/triplane/test/layout";

fn service_failure<T: std::fmt::Debug>(outcome: Result<T, KeeperError>) -> String {
    match outcome {
        Err(KeeperError::Service(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_outcome_that_is_not_known_is_no_failure() {
    let etcd = FakeEtcd::default();
    let mut keeper = keeper(&[etcd.start()]);
    etcd.behave(Behaviour::AnswersLost);
    let failure = service_failure(keeper.compare_and_swap(&record(1, 1)));
    assert!(failure.contains("does not answer within 3 s"), "{failure}");
    assert_eq!(etcd.transactions(), 1, "a transaction is sent once");
    etcd.behave(Behaviour::Right);
    assert_eq!(keeper.load().unwrap(), Some(record(1, 1)));
    assert_eq!(keeper.compare_and_swap(&record(2, 1)).unwrap(), LayoutSwap::Kept);
}

#[test]
fn a_transaction_that_is_executed_late_supersedes_the_next_one() {
    let etcd = FakeEtcd::default();
    let mut keeper = keeper(&[etcd.start()]);
    etcd.behave(Behaviour::Delayed);
    service_failure(keeper.compare_and_swap(&record(1, 1)));
    etcd.behave(Behaviour::Right);
    // The next change reads that there is no record. Before its transaction, the first one is executed.
    let swap = keeper.compare_and_swap(&record(1, 2)).unwrap();
    assert_eq!(swap, LayoutSwap::Superseded(Some(record(1, 1))));
}

#[test]
fn a_server_without_answers_costs_time_and_the_next_one_is_asked() {
    let (silent, right) = (FakeEtcd::default(), FakeEtcd::default());
    silent.behave(Behaviour::Silent);
    let nobody = format!("http://{}", reserved_address());
    let mut keeper = keeper(&[nobody.clone(), silent.start(), right.start()]);
    assert_eq!(keeper.compare_and_swap(&record(1, 1)).unwrap(), LayoutSwap::Kept);
    assert_eq!(right.transactions(), 1);
    let failure = service_failure(self::keeper(&[nobody]).load());
    assert!(failure.contains("cannot be reached") && failure.contains("refused"), "{failure}");
}

#[test]
fn refusals_are_one_line() {
    let etcd = FakeEtcd::default();
    let mut keeper = keeper(&[etcd.start()]);
    for code in [tonic::Code::Unavailable, tonic::Code::PermissionDenied, tonic::Code::ResourceExhausted] {
        etcd.behave(Behaviour::TransactionsRefused(code));
        let failure = service_failure(keeper.compare_and_swap(&record(1, 1)));
        assert!(failure.contains("refuses: etcdserver: not now") && !failure.contains('\n'), "{failure:?}");
    }
    etcd.behave(Behaviour::Right);
    assert_eq!(keeper.compare_and_swap(&record(1, 1)).unwrap(), LayoutSwap::Kept);
}

#[test]
fn answers_that_etcd_does_not_give_are_errors() {
    let etcd = FakeEtcd::default();
    let mut keeper = keeper(&[etcd.start()]);
    let entry = |key: &str, mod_revision, value: &[u8]| KeyValue {
        key: key.as_bytes().to_vec(),
        mod_revision,
        value: value.to_vec(),
    };
    let huge = vec![b' '; (1 << 20) + (8 << 10)];
    let nested = vec![b'['; 1 << 16];
    let answers = [
        (vec![entry("/triplane/other", 1, b"{}")], "other keys"),
        (vec![entry(KEY, 1, b"{}"), entry(KEY, 2, b"{}")], "other keys"),
        (vec![entry(KEY, 0, b"{}")], "other keys"),
        (vec![entry(KEY, -1, b"{}")], "other keys"),
        (vec![entry(KEY, 1, b"{}")], "is not a valid cluster layout"),
        (vec![entry(KEY, 1, b"\xff\x00")], "is not a valid cluster layout"),
        (vec![entry(KEY, 1, b"")], "is not a valid cluster layout"),
        (vec![entry(KEY, 1, &nested)], "is not a valid cluster layout"),
        (vec![entry(KEY, 1, &huge)], "refuses"),
        (vec![KeyValue::default(); 1 << 14], "other keys"),
    ];
    for (kvs, part) in answers {
        etcd.behave(Behaviour::Reads(RangeResponse { kvs }));
        for failure in [keeper.load().unwrap_err(), keeper.compare_and_swap(&record(1, 1)).unwrap_err()] {
            assert!(failure.to_string().contains(part), "{failure} lacks {part:?}");
        }
    }
    assert_eq!(etcd.transactions(), 0);
    let response = |response| TxnResponse { succeeded: false, responses: vec![ResponseOp { response }] };
    let strange = response_op::Response::ResponseRange(RangeResponse { kvs: vec![entry("x", 1, b"")] });
    for answer in [TxnResponse::default(), response(None), response(Some(strange))] {
        etcd.behave(Behaviour::Transactions(answer));
        let failure = service_failure(keeper.compare_and_swap(&record(1, 1)));
        assert!(failure.contains("is not a valid etcd response"), "{failure}");
    }
}
