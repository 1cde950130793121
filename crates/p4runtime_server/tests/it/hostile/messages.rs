//! Messages that decode to much, arrive slowly or never.

use std::time::{Duration, Instant};

use p4runtime_proto::config::P4Info;
use p4runtime_proto::prost::Message;
use p4runtime_proto::v1;
use p4runtime_proto::v1::p4_runtime_client::P4RuntimeClient;
use sha2::{Digest, Sha256};
use tokio::task::JoinSet;
use tonic::Code;
use tonic::codegen::Bytes;
use tonic::codegen::tokio_stream::{StreamExt, iter, pending};
use tonic::transport::Channel;
use v1::stream_message_request::Update;

use crate::hostile::rig::{CLIENT_TIMEOUT, Rig, SOON, bytes, call_as, claim, framed, primary, status, write};

#[test]
fn a_message_that_becomes_too_much_is_refused() {
    let rig = Rig::new();
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

#[test]
fn requests_that_are_not_grpc_are_refused_by_http() {
    let rig = Rig::new();
    let message = bytes(&v1::CapabilitiesRequest::default());
    let status = |content_type: &'static str| {
        let call = call_as(content_type, rig.channel(), "Capabilities", vec![message.clone()], true);
        rig.runtime.block_on(call).status().as_u16()
    };
    for other in ["application/json", "text/plain", "application/grpc-web", "application/grpc-web+proto", "", "app"] {
        assert_eq!(status(other), 415, "{other}");
    }
    for grpc in ["application/grpc", "application/grpc+proto", "Application/gRPC", "application/grpc; charset=utf-8"] {
        assert_eq!(status(grpc), 200, "{grpc}");
    }
}

/// Returns a request to set the program that a file of `triplane build` holds. Its P4Info has `tables` empty tables.
fn config_of_tables(tables: usize) -> v1::SetForwardingPipelineConfigRequest {
    let mut parts = Vec::new();
    for part in [&b"0"[..], b"x.p4", &[0x12, 0].repeat(tables), b""] {
        parts.extend((part.len() as u32).to_le_bytes());
        parts.extend(part);
    }
    let head = [&b"\x89TPL\r\n\x1a\n"[..], &compiler::FORMAT.to_le_bytes()].concat();
    let p4_device_config = [&head, &Sha256::digest(&parts)[..], &parts].concat();
    v1::SetForwardingPipelineConfigRequest {
        device_id: 1,
        election_id: Some(v1::Uint128 { high: 0, low: 1 }),
        action: v1::set_forwarding_pipeline_config_request::Action::Verify.into(),
        config: Some(v1::ForwardingPipelineConfig {
            p4info: Some(P4Info::default()),
            p4_device_config,
            ..Default::default()
        }),
        ..Default::default()
    }
}

#[test]
fn a_program_file_that_becomes_too_much_is_refused() {
    let rig = Rig::new();
    let channel = rig.channel();
    rig.runtime.block_on(async {
        let (mut client, _stream) = primary(channel).await;
        let refused =
            client.set_forwarding_pipeline_config(config_of_tables(7 << 20)).await.expect_err("it is refused");
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().contains("more than 256 MiB of memory"), "{refused}");
    });
}

#[test]
fn p4info_of_program_files_is_charged_like_messages() {
    let rig = Rig::with(CLIENT_TIMEOUT, 0);
    // The switch does not run, so the write keeps its turn, and all others wait and hold their memory.
    let first = write(vec![rig.insert(1, Vec::new())]);
    let channels: Vec<_> = (2..6).map(|host| rig.channel_from(host)).collect();
    // As many tables as are within the limit, and a power of two: more than half of the limit.
    let file = |tables| config_of_tables(tables).config.expect("it has one").p4_device_config;
    let sizes = (10..23).map(|power| 1 << power);
    let tables = sizes.take_while(|tables| compiler::ProgramFile::p4info_memory(&file(*tables)) > 0).last();
    let request = framed(&config_of_tables(tables.expect("small files are within it")).encode_to_vec());
    let own = rig.channel();
    rig.runtime.block_on(async {
        let (mut client, _stream) = primary(own).await;
        tokio::spawn(async move { client.write(first).await });
        rig.has_submitted().await;
        let mut calls: JoinSet<_> = channels
            .into_iter()
            .map(|channel| status(channel, "SetForwardingPipelineConfig", vec![request.clone()], true))
            .collect();
        few_wait(&mut calls).await;
    });
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
fn malformed_messages_are_refused() {
    let rig = Rig::new();
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
    let rig = Rig::with(CLIENT_TIMEOUT, 0);
    let mut calls = Vec::new();
    let mut stays = |name: &'static str, pieces: Vec<Bytes>| {
        let call = status(rig.channel(), name, pieces.clone(), false);
        calls.push((rig.runtime.spawn(call), name, pieces));
    };
    for pieces in [vec![], vec![b"\0\0"[..].into()], vec![b"\0\0\0\0\x09abc"[..].into()], vec![framed(b"")]] {
        stays("Write", pieces.clone());
        stays("StreamChannel", pieces);
    }
    // A stream may be silent after arbitration, but not in the middle of a message.
    stays("StreamChannel", vec![bytes(&claim(1)), b"\0\0\0\0\x09abc"[..].into()]);
    for (call, name, pieces) in calls {
        let code = rig.runtime.block_on(call).expect("it does not panic");
        assert_eq!(code, Code::DeadlineExceeded, "{name}: {pieces:?}");
    }
}

#[test]
fn a_stream_that_said_who_it_is_may_be_silent() {
    let rig = Rig::with(CLIENT_TIMEOUT, 0);
    let channel = rig.channel();
    rig.runtime.block_on(async {
        let (_client, mut answers) = primary(channel).await;
        assert!(tokio::time::timeout(2 * CLIENT_TIMEOUT, answers.message()).await.is_err(), "nothing happens");
    });
}

#[test]
fn a_long_role_config_ends_the_stream() {
    let rig = Rig::new();
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
    let mut rig = Rig::new();
    let request = write((0..100_000).map(|key| rig.insert(key, Vec::new())).collect());
    let channel = rig.channel();
    rig.until(async move {
        let (mut client, _stream) = primary(channel).await;
        client.write(request).await.expect("it is written");
    });
}

/// Returns the code of a write of `updates` empty updates.
async fn empty_updates(channel: Channel, updates: usize) -> Code {
    status(channel, "Write", vec![framed(&[0x22, 0].repeat(updates))], true).await
}

/// Checks that one to three calls wait, and that all others are refused since there is no memory for them.
async fn few_wait(calls: &mut JoinSet<Code>) {
    let mut codes = Vec::new();
    while calls.len() > 3 {
        codes.push(calls.join_next().await.expect("there are more").expect("it does not panic"));
    }
    // The others have longer than any call waits for memory.
    while let Ok(Some(code)) = tokio::time::timeout(2 * CLIENT_TIMEOUT, calls.join_next()).await {
        codes.push(code.expect("it does not panic"));
    }
    assert!(codes.iter().all(|code| *code == Code::ResourceExhausted), "{codes:?}");
    assert!(!calls.is_empty(), "none of them got memory");
}

#[test]
fn one_address_leaves_memory_to_others() {
    let rig = Rig::with(CLIENT_TIMEOUT, 0);
    // The switch does not run, so the first write keeps its turn, and all others wait and hold their memory.
    let first = write(vec![rig.insert(1, Vec::new())]);
    let greedy: Vec<_> = (0..10).map(|_| rig.channel_from(2)).collect();
    let (own, modest) = (rig.channel(), rig.channel_from(3));
    rig.runtime.block_on(async {
        let (mut client, _stream) = primary(own).await;
        tokio::spawn(async move { client.write(first).await });
        rig.has_submitted().await;
        let mut calls: JoinSet<_> = greedy.into_iter().map(|channel| empty_updates(channel, 80_000)).collect();
        few_wait(&mut calls).await;
        let modest = tokio::time::timeout(2 * CLIENT_TIMEOUT, empty_updates(modest, 80_000)).await;
        assert!(modest.is_err(), "it got no memory, or did not wait for its turn: {modest:?}");
        assert!(calls.try_join_next().is_none(), "the calls that got memory did not wait for their turn");
    });
}

#[test]
fn messages_of_all_calls_share_the_memory() {
    let mut rig = Rig::with(CLIENT_TIMEOUT, 0);
    // The switch does not run, so the first write keeps its turn, and all others wait and hold their memory.
    let first = write(vec![rig.insert(1, Vec::new())]);
    let channels: Vec<_> = (0..10).map(|at| rig.channel_from(2 + at % 5)).collect();
    let own = rig.channel();
    let answers = rig.runtime.block_on(async {
        let (mut client, answers) = primary(own).await;
        tokio::spawn(async move { client.write(first).await });
        rig.has_submitted().await;
        let mut calls: JoinSet<_> = channels.into_iter().map(|channel| empty_updates(channel, 150_000)).collect();
        few_wait(&mut calls).await;
        answers
    });
    // When the switch runs again, their memory is free for others.
    let channel = rig.channel();
    let after = rig.until(async move {
        let mut code = Code::ResourceExhausted;
        while code == Code::ResourceExhausted {
            code = empty_updates(channel.clone(), 150_000).await;
        }
        code
    });
    assert_ne!(after, Code::ResourceExhausted);
    drop(answers);
}

#[test]
fn long_messages_do_not_block_short_ones() {
    let mut rig = Rig::with(CLIENT_TIMEOUT, 0);
    // Two addresses announce long messages and send nothing of them. Long messages may take 224 MiB, and each of
    // these needs twice its length.
    let announce = |mebibytes: u32| [&[0][..], &(mebibytes << 20).to_be_bytes()].concat().into();
    let hostile: Vec<_> = [2, 2, 3, 3].map(|host| rig.channel_from(host)).into();
    let calls = hostile.into_iter().zip([32, 32, 32, 16]).map(|(channel, mebibytes)| {
        let pieces: Vec<Bytes> = vec![announce(mebibytes)];
        async move {
            let begin = Instant::now();
            let mut code = Code::ResourceExhausted;
            // Refused only if the probe below came first.
            while code == Code::ResourceExhausted {
                code = status(channel.clone(), "Write", pieces.clone(), false).await;
            }
            (code, mebibytes, begin.elapsed())
        }
    });
    let mut calls: JoinSet<_> = rig.runtime.block_on(async { calls.collect() });
    let long = rig.channel_from(4);
    rig.runtime.block_on(async {
        tokio::time::sleep(CLIENT_TIMEOUT / 3).await;
        let begin = Instant::now();
        loop {
            let probe = status(long.clone(), "Write", vec![announce(16)], false);
            match tokio::time::timeout(2 * CLIENT_TIMEOUT, probe).await {
                Ok(refused) => break assert_eq!(refused, Code::ResourceExhausted, "they have all"),
                Err(_) => assert!(begin.elapsed() < SOON, "they have all"),
            }
        }
    });
    let request = write((0..1_000).map(|key| rig.insert(key, vec![7; 40])).collect());
    assert!(bytes(&request).len() > 50_000, "it is not a message that needs no room");
    let channel = rig.channel_from(4);
    rig.until(async move {
        let (mut client, _stream) = primary(channel).await;
        client.write(request).await.expect("it is written");
    });
    // They were there meanwhile, unless the machine took longer than such messages may take (1 MiB a second).
    while let Some(ended) = calls.try_join_next() {
        let (code, mebibytes, after) = ended.expect("it does not panic");
        assert_eq!(code, Code::DeadlineExceeded);
        assert!(after >= CLIENT_TIMEOUT + Duration::from_secs(mebibytes.into()), "{mebibytes} MiB: {after:?}");
    }
}

#[test]
fn error_messages_quote_requests_in_part_only() {
    let rig = Rig::new();
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
