//! Messages that decode to much, arrive slowly or never.

use std::time::Duration;

use p4runtime_proto::v1;
use p4runtime_proto::v1::p4_runtime_client::P4RuntimeClient;
use tokio::task::JoinSet;
use tonic::Code;
use tonic::codegen::tokio_stream::{StreamExt, iter, pending};
use tonic::transport::Channel;
use v1::stream_message_request::Update;

use crate::hostile::rig::{CLIENT_TIMEOUT, Rig, bytes, claim, framed, primary, status, write};

#[test]
fn a_message_that_becomes_too_much_is_refused() {
    let rig = Rig::new(0);
    // As many empty updates as fit, and the equivalent in a read.
    for (name, element) in [("Write", 0x22), ("Read", 0x12)] {
        let message = framed(&[element, 0].repeat(15 << 20));
        assert_eq!(rig.runtime.block_on(status(rig.channel(), name, vec![message], true)), Code::ResourceExhausted);
    }
    // The same with the tables of a config's P4Info.
    let info = framed(&prefixed(0x2a, &prefixed(0x0a, &[0x12, 0].repeat(15 << 20))));
    let answer = status(rig.channel(), "SetForwardingPipelineConfig", vec![info], true);
    assert_eq!(rig.runtime.block_on(answer), Code::ResourceExhausted);
    // Messages of a stream have a lower limit.
    let long = framed(&vec![0; 300 << 10]);
    assert_eq!(rig.runtime.block_on(status(rig.channel(), "StreamChannel", vec![long], true)), Code::ResourceExhausted);
}

fn prefixed(tag: u8, contents: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let mut length = contents.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend(contents);
    out
}

#[test]
fn what_is_no_message_is_refused() {
    let rig = Rig::new(0);
    let ends = |name: &str, pieces: Vec<&'static [u8]>| {
        let pieces = pieces.into_iter().map(Into::into).collect();
        rig.runtime.block_on(status(rig.channel(), name, pieces, true))
    };
    assert_eq!(ends("Write", vec![b"\0\x02\0\0\x01"]), Code::ResourceExhausted, "32 MiB and more");
    assert_eq!(ends("Write", vec![b"\0\0\0\0\x09abc"]), Code::InvalidArgument, "it is cut short");
    assert_eq!(ends("Write", vec![b"\0\0\0"]), Code::InvalidArgument, "its length is cut short");
    assert_eq!(ends("Write", vec![b"\x01\0\0\0\x01a"]), Code::Unimplemented, "it is compressed");
    assert_eq!(ends("Write", vec![b"\0\0\0\0\0\0\0\0\0\0"]), Code::Unimplemented, "there are two");
    assert_eq!(ends("Capabilities", vec![b"\0", b"", b"\0\0", b"\0\0"]), Code::Ok, "it comes in pieces");
}

#[test]
fn a_message_that_does_not_come_is_not_waited_for() {
    let rig = Rig::new(0);
    let stays = |name: &str, pieces| rig.runtime.block_on(status(rig.channel(), name, pieces, false));
    for pieces in [vec![], vec![b"\0\0"[..].into()], vec![b"\0\0\0\0\x09abc"[..].into()], vec![framed(b"")]] {
        assert_eq!(stays("Write", pieces.clone()), Code::DeadlineExceeded, "{pieces:?}");
        assert_eq!(stays("StreamChannel", pieces), Code::DeadlineExceeded);
    }
    // A stream may be silent after arbitration, but not in the middle of a message.
    let pieces = vec![bytes(&claim(1)), b"\0\0\0\0\x09abc"[..].into()];
    assert_eq!(stays("StreamChannel", pieces), Code::DeadlineExceeded);
}

#[test]
fn a_stream_that_said_who_it_is_may_be_silent() {
    let rig = Rig::new(0);
    let channel = rig.channel();
    rig.runtime.block_on(async {
        let (_client, mut answers) = primary(channel).await;
        assert!(tokio::time::timeout(3 * CLIENT_TIMEOUT, answers.message()).await.is_err(), "nothing happens");
    });
}

#[test]
fn a_long_role_config_ends_the_stream() {
    let rig = Rig::new(0);
    let channel = rig.channel();
    rig.runtime.block_on(async {
        for (bytes, code) in [(16 << 10, Code::InvalidArgument), ((16 << 10) + 1, Code::ResourceExhausted)] {
            let config = prost_types::Any {
                type_url: "type.googleapis.com/stratum.P4RoleConfig".to_owned(),
                value: vec![0; bytes],
            };
            let role = v1::Role { name: "r".to_owned(), config: Some(config), ..Default::default() };
            let update = v1::MasterArbitrationUpdate { device_id: 1, role: Some(role), ..Default::default() };
            let claim = v1::StreamMessageRequest { update: Some(Update::Arbitration(update)) };
            let requests = iter([claim]).chain(pending());
            let mut client = P4RuntimeClient::new(channel.clone());
            let mut answers = client.stream_channel(requests).await.expect("it opens").into_inner();
            let ended = answers.message().await.expect_err("it ends");
            assert_eq!(ended.code(), code, "{bytes} bytes: {ended}");
        }
    });
}

#[test]
fn a_hundred_thousand_entries_are_one_write() {
    let mut rig = Rig::new(0);
    let request = write((0..100_000).map(|key| rig.insert(key, Vec::new())).collect());
    let channel = rig.channel();
    rig.until(async move {
        let (mut client, _stream) = primary(channel).await;
        client.write(request).await.expect("it is written");
    });
}

/// Returns the code of a write of `updates` empty updates, unless it waits.
async fn waits(channel: Channel, updates: usize) -> Option<Code> {
    let message = framed(&[0x22, 0].repeat(updates));
    tokio::time::timeout(20 * CLIENT_TIMEOUT, status(channel, "Write", vec![message], true)).await.ok()
}

#[test]
fn one_address_leaves_memory_to_others() {
    let rig = Rig::new(0);
    // The switch does not run, so the first write keeps its turn, and all others wait and hold their memory.
    let first = write(vec![rig.insert(1, Vec::new())]);
    let greedy: Vec<_> = (0..10).map(|_| rig.channel_from(2)).collect();
    let (own, modest) = (rig.channel(), rig.channel_from(3));
    rig.runtime.block_on(async {
        let (mut client, _stream) = primary(own).await;
        tokio::spawn(async move { client.write(first).await });
        tokio::time::sleep(Duration::from_millis(50)).await;
        let calls: JoinSet<_> = greedy.into_iter().map(|channel| waits(channel, 80_000)).collect();
        tokio::time::sleep(4 * CLIENT_TIMEOUT).await;
        let modest = waits(modest, 80_000).await;
        assert_eq!(modest, None, "it got its memory, and waits for its turn");
        let codes = calls.join_all().await;
        let refused = codes.iter().filter(|code| **code == Some(Code::ResourceExhausted)).count();
        let waiting = codes.iter().filter(|code| code.is_none()).count();
        assert!((1..=3).contains(&waiting) && refused + waiting == codes.len(), "{codes:?}");
    });
}

#[test]
fn messages_of_all_calls_share_the_memory() {
    let mut rig = Rig::new(0);
    // The switch does not run, so the first write keeps its turn, and all others wait and hold their memory.
    let first = write(vec![rig.insert(1, Vec::new())]);
    let channels: Vec<_> = (0..10).map(|at| rig.channel_from(2 + at % 5)).collect();
    let own = rig.channel();
    let (codes, answers) = rig.runtime.block_on(async {
        let (mut client, answers) = primary(own).await;
        tokio::spawn(async move { client.write(first).await });
        tokio::time::sleep(Duration::from_millis(50)).await;
        let calls: JoinSet<_> = channels.into_iter().map(|channel| waits(channel, 150_000)).collect();
        (calls.join_all().await, answers)
    });
    let refused = codes.iter().filter(|code| **code == Some(Code::ResourceExhausted)).count();
    let waiting = codes.iter().filter(|code| code.is_none()).count();
    assert!((1..=3).contains(&waiting), "{codes:?}");
    assert_eq!(refused + waiting, codes.len(), "{codes:?}");
    // When the switch runs again, their memory is free for others.
    let channel = rig.channel();
    let after = rig.until(async move {
        let empty = framed(&[0x22, 0].repeat(150_000));
        let mut code = Code::ResourceExhausted;
        while code == Code::ResourceExhausted {
            code = status(channel.clone(), "Write", vec![empty.clone()], true).await;
        }
        code
    });
    assert_ne!(after, Code::ResourceExhausted);
    drop(answers);
}

#[test]
fn who_sends_long_messages_keeps_nobody_from_short_ones() {
    let mut rig = Rig::new(0);
    // Two addresses announce long messages and send nothing of them. Long messages may take 224 MiB, and each of
    // these needs twice its length.
    let announce = |mebibytes: u32| [&[0][..], &(mebibytes << 20).to_be_bytes()].concat().into();
    let hostile: Vec<_> = [2, 2, 3, 3].map(|host| rig.channel_from(host)).into();
    let calls = hostile.into_iter().zip([32, 32, 32, 16]).map(|(channel, mebibytes)| {
        let pieces = vec![announce(mebibytes)];
        async move { tokio::time::timeout(20 * CLIENT_TIMEOUT, status(channel, "Write", pieces, false)).await.ok() }
    });
    let calls: JoinSet<_> = rig.runtime.block_on(async { calls.collect() });
    let long = rig.channel_from(4);
    rig.runtime.block_on(async {
        tokio::time::sleep(3 * CLIENT_TIMEOUT).await;
        let refused = status(long, "Write", vec![announce(16)], false).await;
        assert_eq!(refused, Code::ResourceExhausted, "they have all");
    });
    let request = write((0..1_000).map(|key| rig.insert(key, vec![7; 40])).collect());
    assert!(bytes(&request).len() > 50_000, "it is no message that needs no room");
    let channel = rig.channel_from(4);
    rig.until(async move {
        let (mut client, _stream) = primary(channel).await;
        client.write(request).await.expect("it is written");
    });
    let codes = rig.runtime.block_on(calls.join_all());
    assert!(codes.iter().all(Option::is_none), "they were there meanwhile: {codes:?}");
}

#[test]
fn what_a_client_sent_is_given_back_in_part_only() {
    let rig = Rig::new(0);
    let channel = rig.channel();
    rig.runtime.block_on(async {
        let long = v1::PacketOut { payload: vec![7; 200_000], metadata: Vec::new() };
        let field = v1::PacketMetadata { metadata_id: 1, value: vec![7; 200_000] };
        let longer = v1::PacketOut { payload: vec![7; 10], metadata: vec![field] };
        let of = |packet| v1::StreamMessageRequest { update: Some(Update::Packet(packet)) };
        let requests = iter([claim(1), of(long), of(longer)]).chain(pending());
        let mut answers = P4RuntimeClient::new(channel).stream_channel(requests).await.expect("it opens").into_inner();
        answers.message().await.expect("the stream is open").expect("a message arrives");
        for is_there in [true, false] {
            let message = answers.message().await.expect("the stream is open").expect("a message arrives");
            let Some(v1::stream_message_response::Update::Error(error)) = message.update else { panic!("{message:?}") };
            let Some(v1::stream_error::Details::PacketOut(about)) = error.details else { panic!("{error:?}") };
            assert_eq!(
                about.packet_out.as_ref().map(|packet| (1_000..2_048).contains(&packet.payload.len())),
                is_there.then_some(true)
            );
        }
    });
}
