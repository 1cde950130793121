//! Limits that hold over all connections of a client, and denials that cost no memory.

use std::pin::Pin;
use std::sync::Arc;

use authorization::Policy;
use p4runtime_proto::v1;
use p4runtime_server::Settings;
use tokio::runtime::Runtime;
use tonic::Code;
use tonic::codegen::tokio_stream::{StreamExt, iter, pending};
use tonic::codegen::{Bytes, http};

use crate::hostile::rig::{SOON, bare, bytes, call, channel, claim};
use p4runtime_proto::v1::p4_runtime_client::P4RuntimeClient;

/// Returns a packet that the server refuses, at length.
fn packet() -> v1::StreamMessageRequest {
    let packet = v1::PacketOut { payload: vec![7; 2_000], metadata: Vec::new() };
    v1::StreamMessageRequest { update: Some(v1::stream_message_request::Update::Packet(packet)) }
}

/// A stream ends while its client has taken none of its messages. Without a limit, its next streams would leave as much
/// behind.
#[test]
fn a_stream_keeps_its_place_until_its_messages_are_taken() {
    let (listening, _end) = bare(|settings| Settings { max_streams_a_peer: 2, ..settings }, None);
    let runtime = Runtime::new().expect("a runtime starts");
    let (reading, silent) = (channel(&runtime, listening.address()), channel(&runtime, listening.address()));
    runtime.block_on(async {
        let mut client = P4RuntimeClient::new(reading.clone());
        let requests = iter([claim(1)]).chain(pending());
        let mut backup = client.stream_channel(requests).await.expect("there is room").into_inner();
        let pieces = [bytes(&claim(9))].into_iter().chain((0..300).map(|_| bytes(&packet()))).collect();
        let unread = call(silent, "StreamChannel", pieces, true).await;
        assert_eq!(unread.status(), http::StatusCode::OK);
        // The first message makes it primary, and the next ones its successor and then nobody.
        let has_ended = async {
            loop {
                let message = backup.message().await.expect("the stream is open").expect("a message arrives");
                let Some(v1::stream_message_response::Update::Arbitration(update)) = message.update else { continue };
                if update.status.is_some_and(|status| status.code == Code::NotFound as i32) {
                    return;
                }
            }
        };
        tokio::time::timeout(SOON, has_ended).await.expect("the primary ends");
        let refused = client.stream_channel(pending()).await.map(drop).expect_err("there is no room");
        assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
        let mut body = unread.into_body();
        while let Some(frame) = std::future::poll_fn(|cx| http_body::Body::poll_frame(Pin::new(&mut body), cx)).await {
            frame.expect("the connection lives");
        }
        let has_room = async {
            while client.stream_channel(pending()).await.is_err() {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(SOON, has_room).await.expect("there is room again");
    });
}

/// The messages are announced and never sent: a server that waited for them would have reserved their memory.
#[test]
fn clients_without_rights_are_denied_before_their_message_is_read() {
    let policy = Some(Arc::new(Policy::default()));
    let (listening, _end) = bare(|settings| Settings { policy, ..settings }, None);
    let runtime = Runtime::new().expect("a runtime starts");
    let channel = channel(&runtime, listening.address());
    let announced = Bytes::from_static(&[0, 1, 0, 0, 0]);
    for name in ["Write", "Read", "SetForwardingPipelineConfig", "StreamChannel", "Capabilities"] {
        let answer = call(channel.clone(), name, vec![announced.clone()], false);
        let answer = runtime.block_on(async { tokio::time::timeout(SOON, answer).await });
        let answer = answer.unwrap_or_else(|_| panic!("{name} waits for the message"));
        assert_eq!(answer.headers()["grpc-status"], "7", "{name}: {answer:?}");
    }
}
