//! Calls: per-update errors, timeouts, and reads of several messages.

use std::time::Duration;

use p4runtime_client::{BlockingClient, CallError, Code, MemoryLimits, Rejection, ServerTarget, UpdateError};
use p4runtime_proto::v1::entity::Entity as Kind;
use p4runtime_proto::v1::write_request::Atomicity;
use p4runtime_proto::v1::{CounterEntry, Update};

use crate::server::{FakeServer, StreamNoise, run};

/// The timeout of calls that are not answered. Calls that are answered may miss it on a busy machine, and are repeated.
const SOON: Duration = Duration::from_millis(100);

#[test]
fn a_write_reports_each_update_that_failed() {
    run(async {
        let rejected = vec![(0, Code::Aborted), (2, Code::ResourceExhausted), (3, Code::Aborted)];
        let client = FakeServer { rejected, ..FakeServer::default() }.connect().await;
        let written = client.write(1, vec![Update::default(); 4], Atomicity::RollbackOnError).await;
        let Err(CallError::Rejected(rejection)) = written else { panic!("three updates failed: {written:?}") };
        let update = |index, code| UpdateError { index, code, message: format!("update {index} is wrong") };
        let (aborted, full) = (Code::Aborted, Code::ResourceExhausted);
        let expected = Rejection {
            code: Code::Unknown,
            message: "some updates failed".to_owned(),
            updates: vec![update(0, aborted), update(2, full), update(3, aborted)],
        };
        assert_eq!(rejection, expected);
        assert_eq!(rejection.first_cause(), Some(&update(2, full)));
        let accepting = FakeServer::default().connect().await;
        accepting.write(1, vec![Update::default(); 4], Atomicity::RollbackOnError).await.expect("all are accepted");
    });
}

#[test]
fn a_server_that_does_not_answer_is_a_timeout() {
    run(async {
        let silent = FakeServer { is_silent: true, ..FakeServer::default() };
        let client = silent.connect().await.with_call_timeout(SOON);
        assert!(matches!(client.pipeline_config().await, Err(CallError::Timeout(SOON))));
        assert!(matches!(client.write(1, Vec::new(), Atomicity::default()).await, Err(CallError::Timeout(SOON))));
        let mut stream = loop {
            match client.open_stream(Some(1)).await {
                Err(CallError::Timeout(_)) => {}
                opened => break opened.expect("it sends headers"),
            }
        };
        assert!(matches!(stream.mastership().await, Err(CallError::Timeout(SOON))));
    });
}

#[test]
fn packets_do_not_keep_a_client_waiting_for_mastership() {
    run(async {
        let noise = Some(StreamNoise { first: None, packet_bytes: 60 });
        let client = FakeServer { noise, ..FakeServer::default() }.connect().await.with_call_timeout(SOON);
        let mut stream = client.open_stream(Some(1)).await.expect("it sends headers");
        assert!(matches!(stream.mastership().await, Err(CallError::Timeout(SOON))));
    });
}

#[test]
fn a_server_that_takes_no_request_for_mastership_is_a_timeout() {
    run(async {
        let noise = Some(StreamNoise { first: None, packet_bytes: 60 });
        let client = FakeServer { noise, ..FakeServer::default() }.connect().await.with_call_timeout(SOON);
        let mut stream = client.open_stream(Some(1)).await.expect("it sends headers");
        // Fills the queue, and what the transport takes from it until the server's window is used up.
        let mut refused = 0;
        while refused < 10 {
            if stream.arbitration.request(1) {
                refused = 0;
                tokio::task::yield_now().await;
            } else {
                refused += 1;
                tokio::time::sleep(SOON / 20).await;
            }
        }
        let outcome = stream.arbitrate(Some(1)).await;
        assert!(matches!(outcome, Err(CallError::Timeout(SOON))), "{outcome:?}");
    });
}

#[test]
fn answers_that_are_too_long_are_refused() {
    run(async {
        let noise = Some(StreamNoise { first: None, packet_bytes: p4runtime_client::MAX_ANSWER_BYTES });
        let description_bytes = p4runtime_client::MAX_CONFIG_BYTES;
        let client = FakeServer { noise, description_bytes, ..FakeServer::default() }.connect().await;
        let config = client.pipeline_config().await;
        assert!(matches!(&config, Err(CallError::Rejected(it)) if it.code == Code::OutOfRange), "{config:?}");
        let mut stream = client.open_stream(Some(1)).await.expect("it sends headers");
        let packet = stream.events.next().await;
        assert!(matches!(&packet, Err(CallError::Rejected(it)) if it.code == Code::OutOfRange), "{packet:?}");
    });
}

#[test]
fn answers_that_would_take_too_much_memory_are_refused_before_they_are_decoded() {
    run(async {
        // 2 kB on the wire each, and more than 100 kB of memory.
        let client = FakeServer { empty_elements: 1_000, ..FakeServer::default() }.connect().await;
        let few = MemoryLimits { answer: 100_000, read_message: 100_000, read: 1 << 30 };
        let all = MemoryLimits { read_message: 1 << 30, read: 100_000, ..few };
        let refused = |error: CallError| match error {
            CallError::Rejected(it) => it.code == Code::OutOfRange && it.message.contains("MiB of memory"),
            _ => false,
        };
        for limits in [few, all] {
            let client = client.clone().with_memory_limits(limits);
            assert!(client.pipeline_config().await.is_err_and(refused), "{limits:?}");
            let read = client.read(vec![Kind::CounterEntry(CounterEntry::default())]).await;
            assert!(read.expect("it sends headers").next().await.is_err_and(refused), "{limits:?}");
        }
        assert!(client.pipeline_config().await.expect("it is small enough").is_some());
        let mut read = client.read(vec![Kind::CounterEntry(CounterEntry::default())]).await.expect("it sends headers");
        assert_eq!(read.next().await.expect("it is small enough").map(|entities| entities.len()), Some(1_000));
    });
}

#[test]
fn each_message_of_a_read_has_the_timeout() {
    run(async {
        let slow = FakeServer { stops_reading: true, ..FakeServer::default() };
        let client = slow.connect().await.with_call_timeout(SOON);
        let begin = async || {
            let mut answers = client.read(vec![Kind::CounterEntry(CounterEntry::default())]).await?;
            let first = answers.next().await?;
            Ok::<_, CallError>((answers, first))
        };
        let (mut answers, first) = loop {
            match begin().await {
                Err(CallError::Timeout(_)) => {}
                begun => break begun.expect("the first message"),
            }
        };
        assert_eq!(first.map(|entities| entities.len()), Some(2));
        assert!(matches!(answers.next().await, Err(CallError::Timeout(SOON))));
    });
}

#[test]
fn a_blocking_client_reads_every_message_and_stops_at_an_error() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = std::thread::spawn(move || {
        run(async {
            sender.send(FakeServer::default().start().await).expect("the test waits");
            let _ = stopped.await;
        });
    });
    let address = receiver.recv().expect("the server starts").to_string();
    let target = ServerTarget::new(&address, None).expect("an address");
    let client = BlockingClient::connect(&target, 1).expect("it answers");
    let wanted = || vec![Kind::CounterEntry(CounterEntry::default())];
    let mut count = 0;
    let read: Result<(), CallError> = client.read(wanted(), |_| {
        count += 1;
        Ok(())
    });
    assert!(read.is_ok() && count == 4, "{read:?} after {count}");
    let read: Result<(), CallError> = client.read(wanted(), |_| Err(CallError::StreamEnded));
    assert!(matches!(read, Err(CallError::StreamEnded)));
    assert!(client.pipeline_config().expect("it answers").is_none());
    drop(stop);
    server.join().expect("the server ends");
}

#[test]
fn p4info_is_fetched_within_a_time_or_not_at_all() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = listener.local_addr().expect("it listens").to_string();
    let target = ServerTarget::new(&address, None).expect("an address");
    let begun = std::time::Instant::now();
    assert_eq!(p4runtime_client::fetch_p4info(target, 1, SOON), None, "nobody answers");
    assert!(begun.elapsed() >= SOON);
}
