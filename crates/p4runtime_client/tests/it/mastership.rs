//! Elections among several controllers.

use p4runtime_client::{Client, Code, ElectionError, EventReceiver, Mastership, StreamEvent};

use crate::server::{FakeServer, StreamNoise, run};

async fn next(events: &mut EventReceiver) -> Mastership {
    match events.next().await {
        Ok(Some(StreamEvent::Mastership(mastership))) => mastership,
        other => panic!("no mastership: {other:?}"),
    }
}

async fn lost(client: &Client, election_id: Option<u128>) -> ElectionError {
    match client.become_primary(election_id).await {
        Ok((_, id)) => panic!("it is primary with {id}"),
        Err(error) => error,
    }
}

#[test]
fn mastership_is_lost_to_a_higher_election_id_and_regained() {
    run(async {
        let client = FakeServer::default().connect().await;
        let (mut first, id) = client.become_primary(Some(5)).await.expect("nobody else is there");
        assert_eq!(id, 5);
        let (second, _) = client.become_primary(Some(7)).await.expect("its id is higher");
        assert_eq!(next(&mut first.events).await, Mastership::Backup { election_id: Some(7) });
        // The other controller leaves. Nobody is primary until a controller has at least its election id.
        drop(second);
        assert_eq!(next(&mut first.events).await, Mastership::NoPrimary { highest: Some(7) });
        assert!(first.arbitration.request(7), "the stream is open");
        assert_eq!(next(&mut first.events).await, Mastership::Primary { election_id: 7 });
    });
}

#[test]
fn an_election_id_that_is_too_low_is_reported_with_the_highest() {
    run(async {
        let client = FakeServer::default().connect().await;
        let (mut watcher, _) = client.become_primary(Some(9)).await.expect("nobody else is there");
        assert!(matches!(lost(&client, Some(3)).await, ElectionError::OtherPrimary { election_id: Some(9) }));
        // The primary takes a lower id, which leaves nobody as primary.
        while watcher.arbitrate(Some(2)).await.expect("an answer").is_primary() {}
        assert!(matches!(lost(&client, Some(3)).await, ElectionError::TooLow { wanted: 3, highest: 9 }));
    });
}

#[test]
fn a_client_without_an_election_id_gives_way_to_a_primary_that_stays() {
    run(async {
        let client = FakeServer::default().connect().await;
        let (_primary, _) = client.become_primary(Some(9)).await.expect("nobody else is there");
        let (_listener, id) = client.become_primary_or_listen(None).await.expect("listening is always possible");
        assert_eq!(id, None);
        assert!(matches!(lost(&client, None).await, ElectionError::OtherPrimary { election_id: Some(9) }));
    });
}

#[test]
fn clients_that_make_one_write_each_become_primary_one_after_the_other() {
    run(async {
        let client = FakeServer::default().connect().await;
        let turn = || async {
            let (stream, id) = client.become_primary(None).await.expect("each gets its turn");
            drop(stream);
            id
        };
        let ids = tokio::join!(turn(), turn(), turn(), turn());
        assert_eq!(ids, (1, 1, 1, 1), "nobody raises the election id");
    });
}

#[test]
fn packets_do_not_keep_a_client_waiting_for_a_primary_that_stays() {
    run(async {
        let noise = Some(StreamNoise { first: Some(Code::AlreadyExists), packet_bytes: 60 });
        let client = FakeServer { noise, ..FakeServer::default() }.connect().await;
        assert!(matches!(lost(&client, None).await, ElectionError::OtherPrimary { .. }));
    });
}
