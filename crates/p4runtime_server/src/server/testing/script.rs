//! Calls as bytes, for fuzzers. A step is its kind, the length of its message in two bytes, and the message.

use p4runtime_proto::prost::Message;
use p4runtime_proto::v1;

use super::{EVERY, TestServer, TestTarget};
use v1::set_forwarding_pipeline_config_request::Action;
use v1::stream_message_request::Update as Request;
use v1::write_request::Atomicity;

const WRITE: u8 = 0;
const READ: u8 = 1;
const STREAM: u8 = 2;
const CONFIG: u8 = 3;
const OPEN: u8 = 4;
const CLOSE: u8 = 5;
const PACKET: u8 = 6;
const SAME_CONFIG: u8 = 7;
const GET_CONFIG: u8 = 8;
const KINDS: u8 = 9;
/// Maximum number of steps that are run.
const MAX_STEPS: usize = 64;
/// Maximum number of steps that compile a program.
const MAX_PROGRAMS: usize = 2;

/// Runs a script and panics if an invariant is violated. Returns the outcomes it reached, in words.
pub fn run<T: TestTarget>(script: &[u8]) -> Vec<String> {
    let mut world = TestServer::<T>::new(1);
    let mut reached = Vec::new();
    let (mut rest, mut programs) = (script, 0);
    for _ in 0..MAX_STEPS {
        let [kind, low, high, ..] = rest else { break };
        let (kind, length) = (kind % KINDS, usize::from(u16::from_le_bytes([*low, *high])));
        let message = &rest[3..rest.len().min(3 + length)];
        rest = &rest[3 + message.len()..];
        if matches!(kind, CONFIG | SAME_CONFIG) {
            programs += 1;
            if programs > MAX_PROGRAMS {
                continue;
            }
        }
        step(&mut world, kind, message, &mut reached);
    }
    reached
}

fn step<T: TestTarget>(world: &mut TestServer<T>, kind: u8, message: &[u8], reached: &mut Vec<String>) {
    let mut note = |what: &str, status: &crate::Status| {
        let codes = status.details.iter().map(|detail| detail.canonical_code);
        let words = |text: &str| {
            text.split(' ')
                .filter(|word| word.bytes().all(|byte| byte.is_ascii_lowercase()))
                .collect::<Vec<_>>()
                .join(" ")
        };
        reached.push(format!("{what} {:?} {}", status.code, words(&status.message)));
        reached.extend(codes.map(|code| format!("{what} {code}")));
        reached.extend(status.details.iter().map(|detail| words(&detail.message)));
    };
    let (number, after) = message.split_first().map_or((0, message), |(first, rest)| (usize::from(*first), rest));
    match kind {
        WRITE => {
            if let Ok(request) = v1::WriteRequest::decode(message)
                && let Err(status) = world.write_as(request)
            {
                note("write", &status);
            }
        }
        READ => {
            if let Ok(request) = v1::ReadRequest::decode(message)
                && let Err(status) = world.read(request).1
            {
                note("read", &status);
            }
        }
        STREAM => {
            if let Ok(message) = v1::StreamMessageRequest::decode(after) {
                world.stream_message(number, message);
            }
        }
        CONFIG => {
            if let Ok(request) = v1::SetForwardingPipelineConfigRequest::decode(message)
                && let Err(status) = world.set_config(request)
            {
                note("config", &status);
            }
        }
        SAME_CONFIG => {
            let p4info = Some(T::every().1);
            let config =
                v1::ForwardingPipelineConfig { p4info, p4_device_config: EVERY.as_bytes().to_vec(), cookie: None };
            let action = (number % 6) as i32;
            let request = v1::SetForwardingPipelineConfigRequest {
                device_id: 1,
                election_id: Some(v1::Uint128 { high: 0, low: 1 }),
                action,
                config: (action != Action::Commit as i32).then_some(config),
                ..Default::default()
            };
            let before = world.reference.clone();
            match world.set_config(request) {
                Ok(()) if action == Action::ReconcileAndCommit as i32 => {
                    assert_eq!(before.difference(&world.reference), None, "the same program keeps everything");
                }
                Ok(()) => reached.push(format!("same config {action}")),
                Err(status) => note("same config", &status),
            }
        }
        GET_CONFIG => {
            if let Ok(request) = v1::GetForwardingPipelineConfigRequest::decode(message)
                && let Err(status) = world.server.pipeline_config(&request, &crate::Caller::Anyone)
            {
                note("get config", &status);
            }
        }
        OPEN => world.open_stream(),
        CLOSE => world.close_stream(number),
        _ => world.packet(number as u32 % 5, after.to_vec()),
    }
}

fn push(script: &mut Vec<u8>, kind: u8, message: &[u8]) {
    let length = message.len().min(usize::from(u16::MAX));
    script.push(kind);
    script.extend((length as u16).to_le_bytes());
    script.extend(&message[..length]);
}

/// Generates a script of calls, many of them valid.
pub fn generate<T: TestTarget>(seed: u64) -> Vec<u8> {
    let mut world = TestServer::<T>::new(seed);
    let mut script = Vec::new();
    for _ in 0..4 + world.random.below(12) {
        match world.random.below(24) {
            0 => push(&mut script, SAME_CONFIG, &[world.random.below(6) as u8]),
            1 => push(&mut script, OPEN, &[]),
            2 => push(&mut script, CLOSE, &[world.random.below(3) as u8]),
            3 | 4 => {
                let mut packet: Vec<u8> = (0..64).map(|_| world.random.below(4) as u8).collect();
                packet[0] = world.random.below(5) as u8;
                push(&mut script, PACKET, &packet);
            }
            5 | 6 => {
                let update = match world.random.below(3) {
                    0 => Request::Arbitration(v1::MasterArbitrationUpdate {
                        device_id: 1,
                        election_id: Some(v1::Uint128 { high: 0, low: world.random.below(4) }),
                        ..Default::default()
                    }),
                    1 => Request::Packet(v1::PacketOut {
                        payload: vec![0; 20],
                        metadata: (1..=2)
                            .map(|metadata_id| v1::PacketMetadata { metadata_id, value: world.random.bytes() })
                            .collect(),
                    }),
                    _ => Request::DigestAck(v1::DigestListAck {
                        digest_id: world.schema().digests.keys().next().copied().unwrap_or(0),
                        list_id: world.random.below(3),
                    }),
                };
                let mut message = vec![world.random.below(3) as u8];
                message.extend(v1::StreamMessageRequest { update: Some(update) }.encode_to_vec());
                push(&mut script, STREAM, &message);
            }
            7..10 => {
                let entities = (0..=world.random.below(3)).map(|_| v1::Entity { entity: Some(world.entity()) });
                let request = v1::ReadRequest { device_id: 1, entities: entities.collect(), ..Default::default() };
                push(&mut script, READ, &request.encode_to_vec());
            }
            _ => {
                let updates = (0..=world.random.below(6)).map(|_| world.update()).collect();
                let request = v1::WriteRequest {
                    device_id: 1,
                    election_id: Some(v1::Uint128 { high: 0, low: 1 }),
                    atomicity: Atomicity::try_from(world.random.below(3) as i32).unwrap_or_default().into(),
                    updates,
                    ..Default::default()
                };
                push(&mut script, WRITE, &request.encode_to_vec());
            }
        }
    }
    script
}
