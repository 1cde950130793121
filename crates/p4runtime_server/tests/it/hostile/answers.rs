//! Responses that their clients do not read.

use std::pin::Pin;

use p4runtime_proto::v1;
use p4runtime_proto::v1::p4_runtime_client::P4RuntimeClient;
use tonic::Code;
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::tokio_stream::{StreamExt, iter, pending};

use crate::hostile::rig::{CLIENT_TIMEOUT, Rig, SOON, bytes, call, claim, primary, write};

fn all(table_id: u32) -> v1::ReadRequest {
    let entry = v1::TableEntry { table_id, ..Default::default() };
    let entities = vec![v1::Entity { entity: Some(v1::entity::Entity::TableEntry(entry)) }];
    v1::ReadRequest { device_id: 1, entities, ..Default::default() }
}

/// Starts a server with a table of several megabytes.
fn full() -> Rig {
    let mut rig = Rig::with(CLIENT_TIMEOUT, 0);
    let request = write((0..5_000).map(|key| rig.insert(key, vec![7; 1_000])).collect());
    let channel = rig.channel();
    rig.until(async move {
        let (mut client, _stream) = primary(channel).await;
        client.write(request).await.expect("it is written");
    });
    rig
}

#[test]
fn reads_of_a_stalled_client_end() {
    let rig = full();
    let mut client = P4RuntimeClient::new(rig.channel());
    rig.runtime.block_on(async {
        let mut answer = client.read(all(0)).await.expect("it begins").into_inner();
        tokio::time::sleep(2 * CLIENT_TIMEOUT).await;
        let (mut entities, mut end) = (0, None);
        while end.is_none() {
            match answer.message().await {
                Ok(Some(part)) => entities += part.entities.len(),
                Ok(None) => end = Some(Code::Ok),
                Err(status) => end = Some(status.code()),
            }
        }
        assert_eq!(end, Some(Code::DeadlineExceeded));
        assert!(entities < 1_000, "{entities} entities waited for it");
        // A client that reads its responses gets all of them.
        let mut answer = client.read(all(0)).await.expect("it begins").into_inner();
        let mut entities = 0;
        while let Some(part) = answer.message().await.expect("it goes on") {
            entities += part.entities.len();
        }
        assert_eq!(entities, 5_000);
    });
}

#[test]
fn concurrent_reads_of_a_connection_are_limited() {
    let rig = full();
    let mut client = P4RuntimeClient::new(rig.channel());
    let mut other = P4RuntimeClient::new(rig.channel());
    rig.runtime.block_on(async {
        let mut held = Vec::new();
        let refused = loop {
            match client.read(all(0)).await {
                Ok(answer) => held.push(answer.into_inner()),
                Err(status) => break status,
            }
        };
        assert_eq!((held.len(), refused.code()), (8, Code::ResourceExhausted), "{refused}");
        other.read(all(0)).await.expect("another connection has its own");
        held.pop();
        client.read(all(0)).await.expect("there is room again");
    });
}

#[test]
fn concurrent_reads_of_an_address_and_of_all_are_limited() {
    let mut rig = Rig::with(CLIENT_TIMEOUT, 0);
    // The switch, which has the results, does not run.
    let register = v1::Entity { entity: Some(v1::entity::Entity::RegisterEntry(v1::RegisterEntry::default())) };
    let request = v1::ReadRequest { device_id: 1, entities: vec![register], ..Default::default() };
    // The reads of two addresses, by four connections each, and one more connection of each and of a third address.
    let of_host = |host: u8, connections: usize| (0..connections).map(|_| rig.channel_from(host)).collect::<Vec<_>>();
    let channels = [of_host(1, 5), of_host(2, 4), of_host(3, 1)];
    let mut held = rig.runtime.block_on(async {
        let mut held = Vec::new();
        for channel in channels[0][..4].iter().chain(&channels[1]) {
            for _ in 0..8 {
                let answer = P4RuntimeClient::new(channel.clone()).read(request.clone()).await;
                held.push(answer.expect("its connection has room").into_inner());
            }
        }
        let refused = P4RuntimeClient::new(channels[0][4].clone()).read(request.clone()).await;
        let refused = refused.map(drop).expect_err("32 of this address are under way");
        assert_eq!(refused.code(), Code::ResourceExhausted);
        assert!(refused.message().contains("32 reads are in progress from 127.0.0.1"), "{refused}");
        let mut more = P4RuntimeClient::new(channels[2][0].clone());
        let mut answer = more.read(request.clone()).await.expect("its address has room").into_inner();
        let refused = tokio::time::timeout(SOON, answer.message()).await.expect("it does not wait for ever");
        assert_eq!(refused.expect_err("64 are under way").code(), Code::ResourceExhausted);
        held
    });
    rig.until(async move {
        for answer in &mut held {
            let part = answer.message().await.expect("it goes on").expect("there are registers");
            assert_eq!(part.entities.len(), 4);
        }
    });
}

#[test]
fn a_stream_that_takes_no_arbitration_messages_ends() {
    /// More messages than a client's queue holds; each takes at least 512 bytes.
    const CHANGES: u64 = 20_000;
    let rig = Rig::new();
    let (slow, busy) = (rig.channel(), rig.channel());
    rig.runtime.block_on(async {
        let requests = iter([claim(1)]).chain(pending());
        let mut slow = P4RuntimeClient::new(slow).stream_channel(requests).await.expect("it opens").into_inner();
        // Each is a new primary's id and is sent to all controllers.
        let (claims, requests) = tokio::sync::mpsc::channel(1);
        let requests = ReceiverStream::new(requests);
        claims.send(claim(2)).await.expect("the stream takes it");
        let mut busy = P4RuntimeClient::new(busy).stream_channel(requests).await.expect("it opens").into_inner();
        busy.message().await.expect("the stream is open").expect("a message arrives");
        // Few at a time: the queue of a client that reads must not overflow while the client is not scheduled.
        let ids: Vec<_> = (3..CHANGES).collect();
        for ids in ids.chunks(500) {
            for id in ids {
                claims.send(claim(*id)).await.expect("the stream takes it");
            }
            for _ in ids {
                busy.message().await.expect("a client that reads stays connected").expect("a message arrives");
            }
        }
        let mut received = 0;
        let ended = loop {
            match tokio::time::timeout(SOON, slow.message()).await.expect("it ends") {
                Ok(Some(_)) => received += 1,
                Ok(None) => panic!("it ends without a word"),
                Err(status) => break status,
            }
        };
        assert_eq!(ended.code(), Code::ResourceExhausted, "{ended}");
        assert!(received < CHANGES - 2, "all {received} messages waited for it");
    });
}

#[test]
fn a_stalled_read_of_a_config_closes_the_connection() {
    let rig = Rig::with(CLIENT_TIMEOUT, 1 << 20);
    let request = v1::GetForwardingPipelineConfigRequest { device_id: 1, ..Default::default() };
    let channel = rig.channel();
    let body = rig.runtime.block_on(async {
        let mut client = P4RuntimeClient::new(channel.clone());
        let whole = client.get_forwarding_pipeline_config(request).await.expect("who takes it gets it").into_inner();
        assert!(whole.config.is_some_and(|config| config.p4_device_config.len() > 1 << 20));
        let answer = call(channel, "GetForwardingPipelineConfig", vec![bytes(&request)], true).await;
        assert!(!answer.headers().contains_key("grpc-status"), "{answer:?}");
        tokio::time::sleep(2 * CLIENT_TIMEOUT + std::time::Duration::from_millis(2_500)).await;
        answer.into_body()
    });
    let (bytes, has_trailers) = rig.runtime.block_on(async move {
        let (mut body, mut bytes, mut has_trailers) = (body, 0, false);
        while let Some(Ok(frame)) =
            std::future::poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut body), cx)).await
        {
            has_trailers |= frame.is_trailers();
            bytes += frame.into_data().map_or(0, |data| data.len());
        }
        (bytes, has_trailers)
    });
    assert!(!has_trailers && bytes < 1 << 20, "{bytes} bytes, and the connection is there");
}
