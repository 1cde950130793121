//! Tests real etcd servers.

use std::time::{Duration, Instant};

use resilient_etcd::{EtcdConfig, EtcdKeeper, EtcdLogin};
use resilient_store::{KeeperError, LayoutKeeper, LayoutSwap};
use testing::etcd::{EtcdServer, MISSING};

use crate::{cluster, config, keeper, record};

/// Loads until etcd answers: it needs a moment to elect a leader.
fn loaded(keeper: &mut EtcdKeeper) -> Option<resilient::LayoutRecord> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match keeper.load() {
            Ok(kept) => return kept,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
    }
}

#[test]
fn one_of_two_operators_is_first_and_the_record_survives() {
    let Some(mut etcd) = EtcdServer::start() else { return testing::skip(MISSING) };
    let (mut first, mut second) = (keeper(&[etcd.url()]), keeper(&[etcd.url()]));
    assert_eq!(loaded(&mut first), None);
    assert_eq!(first.compare_and_swap(&record(2, 1)).unwrap(), LayoutSwap::Superseded(None));
    assert_eq!(first.compare_and_swap(&record(1, 1)).unwrap(), LayoutSwap::Kept);
    assert_eq!(second.compare_and_swap(&record(1, 2)).unwrap(), LayoutSwap::Superseded(Some(record(1, 1))));
    assert_eq!(second.compare_and_swap(&record(2, 2)).unwrap(), LayoutSwap::Kept);
    etcd.kill();
    assert!(matches!(first.load(), Err(KeeperError::Service(_))));
    etcd.restart();
    assert_eq!(loaded(&mut first), Some(record(2, 2)));
    // Another prefix belongs to another cluster.
    let other = EtcdConfig { prefix: "/triplane/other/".to_owned(), ..config(&[etcd.url()]) };
    assert_eq!(EtcdKeeper::new(other, &cluster()).unwrap().load().unwrap(), None);
}

#[test]
fn races_have_one_winner_for_each_epoch() {
    let Some(etcd) = EtcdServer::start() else { return testing::skip(MISSING) };
    loaded(&mut keeper(&[etcd.url()]));
    const EPOCHS: u64 = 20;
    let race = |author: u32| {
        let mut keeper = keeper(&[etcd.url()]);
        let mut won = Vec::new();
        for epoch in 1..=EPOCHS {
            match keeper.compare_and_swap(&record(epoch, author)).expect("etcd answers") {
                LayoutSwap::Kept => won.push(epoch),
                LayoutSwap::Superseded(kept) => assert!(kept.expect("there is one").layout.epoch() >= epoch),
            }
        }
        won
    };
    let mut all: Vec<u64> = std::thread::scope(|scope| {
        let race = &race;
        let threads: Vec<_> = (1..=3).map(|author| scope.spawn(move || race(author))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no thread panics")).collect()
    });
    all.sort_unstable();
    assert_eq!(all, (1..=EPOCHS).collect::<Vec<_>>());
}

#[test]
fn a_suspended_server_delays_a_change_that_counts_later() {
    let Some(etcd) = EtcdServer::start() else { return testing::skip(MISSING) };
    let mut keeper = keeper(&[etcd.url()]);
    loaded(&mut keeper);
    assert_eq!(keeper.compare_and_swap(&record(1, 1)).unwrap(), LayoutSwap::Kept);
    etcd.signal("STOP");
    assert!(keeper.compare_and_swap(&record(2, 1)).unwrap_err().to_string().contains("does not answer within 3 s"));
    etcd.signal("CONT");
    // Only reads were under way.
    assert_eq!(loaded(&mut keeper), Some(record(1, 1)));
    assert_eq!(keeper.compare_and_swap(&record(2, 1)).unwrap(), LayoutSwap::Kept);
}

#[test]
fn users_have_rights_and_lose_their_tokens() {
    let Some(mut etcd) = EtcdServer::start() else { return testing::skip(MISSING) };
    let login = |user: &str, password: &str| {
        let login = Some(EtcdLogin { user: user.to_owned(), password: password.to_owned() });
        EtcdKeeper::new(EtcdConfig { login, ..config(&[etcd.url()]) }, &cluster()).unwrap()
    };
    let mut operator = login("operator", "secret");
    let mut stranger = login("stranger", "secret");
    let (mut wrong, mut nobody) = (login("operator", "wrong"), keeper(&[etcd.url()]));
    loaded(&mut nobody);
    let failure = operator.load().unwrap_err().to_string();
    assert!(failure.contains("authentication is not enabled; connect without a user"), "{failure}");
    for user in ["root", "operator", "stranger"] {
        etcd.call("auth/user/add", &format!("{{\"name\":\"{user}\",\"password\":\"secret\"}}"));
    }
    etcd.call("auth/role/add", "{\"name\":\"root\"}");
    etcd.call("auth/role/add", "{\"name\":\"layouts\"}");
    // From /triplane/test/ to /triplane/test0, in base64: all keys that begin with the first.
    let keys = "\"key\":\"L3RyaXBsYW5lL3Rlc3Qv\",\"range_end\":\"L3RyaXBsYW5lL3Rlc3Qw\"";
    let grant = format!("{{\"name\":\"layouts\",\"perm\":{{\"permType\":\"READWRITE\",{keys}}}}}");
    etcd.call("auth/role/grant", &grant);
    etcd.call("auth/user/grant", "{\"user\":\"root\",\"role\":\"root\"}");
    etcd.call("auth/user/grant", "{\"user\":\"operator\",\"role\":\"layouts\"}");
    etcd.call("auth/enable", "{}");
    let refused = |keeper: &mut EtcdKeeper, part: &str| {
        let failure = keeper.load().unwrap_err().to_string();
        assert!(failure.contains(part), "{failure} lacks {part:?}");
    };
    refused(&mut nobody, "it requires a user and a password");
    refused(&mut wrong, "authentication failed");
    refused(&mut stranger, "permission denied; let the user read and write this key");
    assert_eq!(operator.load().unwrap(), None);
    assert_eq!(operator.compare_and_swap(&record(1, 1)).unwrap(), LayoutSwap::Kept);
    // A restarted server does not know earlier tokens.
    etcd.kill();
    etcd.restart();
    assert_eq!(loaded(&mut operator), Some(record(1, 1)));
    assert_eq!(operator.compare_and_swap(&record(2, 1)).unwrap(), LayoutSwap::Kept);
}

#[test]
fn a_client_without_tls_does_not_reach_a_server_with_it() {
    let Some(etcd) = EtcdServer::with("https", &["--auto-tls".to_owned()]) else { return testing::skip(MISSING) };
    let failure = keeper(&[etcd.url()]).load().unwrap_err().to_string();
    assert!(failure.contains("cannot be reached") && failure.ends_with("it may require TLS"), "{failure}");
}
