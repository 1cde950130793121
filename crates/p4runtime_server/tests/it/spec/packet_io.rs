//! Section 16.1 and 16.6: packets to and from the controller, errors on the stream.

use crate::spec::rig::*;
use p4runtime_proto::v1;
use p4runtime_proto::v1::stream_error::Details;
use p4runtime_proto::v1::stream_message_request::Update as Request;
use p4runtime_proto::v1::stream_message_response::Update as Response;

fn field(metadata_id: u32, value: &[u8]) -> v1::PacketMetadata {
    v1::PacketMetadata { metadata_id, value: value.to_vec() }
}

fn out(payload: &[u8], metadata: Vec<v1::PacketMetadata>) -> Request {
    Request::Packet(v1::PacketOut { payload: payload.to_vec(), metadata })
}

#[track_caller]
fn packet_in(session: &mut Session) -> v1::PacketIn {
    match session.recv().expect("the stream goes on").update {
        Some(Response::Packet(packet)) => packet,
        other => panic!("no packet: {other:?}"),
    }
}

fn punt(rig: &Rig) {
    let entry = entry(&rig.info, "exact_t").exact(1, 1).does(call(&rig.info, "to_cpu", &[5]));
    rig.insert(entry).unwrap();
}

/// 16.1 A packet to the controller has the header's fields as metadata, each once, and the rest as payload.
/// 8.3 Metadata has as few bytes as possible.
#[test]
fn packets_reach_the_controller() {
    let mut rig = Rig::new();
    punt(&rig);
    let frame = data(1, 2, 3, 4, 5);
    rig.send(3, &frame);
    let packet = packet_in(rig.primary());
    assert_eq!(packet.payload, frame);
    assert_eq!(packet.metadata, [field(1, &[3]), field(2, &[5])]);
}

/// 16.1 A packet from the controller has its metadata in the header that the program parses.
#[test]
fn packets_leave_for_the_controller() {
    let mut rig = Rig::new();
    let frame = data(1, 2, 3, 4, 5);
    rig.primary().send(out(&frame, vec![field(1, &[4]), field(2, &[0])]));
    assert_eq!(rig.sent(), (4, frame.clone()));
    // Zeros in front, any order.
    rig.primary().send(out(&frame, vec![field(2, &[0]), field(1, &[0, 0, 2])]));
    assert_eq!(rig.sent(), (2, frame));
}

/// 16.1 Metadata that is missing, unknown, repeated or too wide drops the packet.
/// 16.6 Such a packet is answered with INVALID_ARGUMENT (OUT_OF_RANGE for a value) and the packet it is about.
#[test]
fn packets_with_wrong_metadata_are_refused() {
    let mut rig = Rig::new();
    let frame = data(1, 2, 3, 4, 5);
    for metadata in [
        vec![],
        vec![field(1, &[4])],
        vec![field(1, &[4]), field(2, &[0]), field(3, &[0])],
        vec![field(1, &[4]), field(1, &[4])],
        vec![field(1, &[4]), field(1, &[4]), field(2, &[0])],
        vec![field(1, &[0x02, 0]), field(2, &[0])],
        vec![field(1, &[]), field(2, &[0])],
    ] {
        rig.primary().send(out(&frame, metadata.clone()));
        let error = rig.primary().refused();
        let code = code(error.canonical_code);
        assert!([Code::InvalidArgument, Code::OutOfRange].contains(&code), "{metadata:?}: {code:?}");
        assert!(!error.message.is_empty());
        assert!(matches!(error.details, Some(Details::PacketOut(_))), "{:?}", error.details);
    }
    // The stream goes on, and none of them was sent.
    rig.primary().send(out(&frame, vec![field(1, &[4]), field(2, &[0])]));
    assert_eq!(rig.sent(), (4, frame));
}

/// 16.1 A backup sends no packets: PERMISSION_DENIED on its stream.
/// 16.1 A backup receives none.
#[test]
fn packets_are_for_the_primary() {
    let mut rig = Rig::new();
    punt(&rig);
    let mut backup = rig.session(Some(0));
    backup.send(out(&data(1, 0, 0, 0, 0), vec![field(1, &[4]), field(2, &[0])]));
    let error = backup.refused();
    assert_eq!(code(error.canonical_code), Code::PermissionDenied);
    assert!(matches!(error.details, Some(Details::PacketOut(_))));
    rig.send(1, &data(1, 0, 0, 0, 0));
    packet_in(rig.primary());
    backup.is_quiet();
}

/// 16.6 An acknowledgement of an unknown digest is answered with INVALID_ARGUMENT.
#[test]
fn an_acknowledgement_of_an_unknown_digest_is_answered() {
    let mut rig = Rig::new();
    rig.primary().send(Request::DigestAck(v1::DigestListAck { digest_id: 77, list_id: 1 }));
    let error = rig.primary().refused();
    assert_eq!(code(error.canonical_code), Code::InvalidArgument);
    assert!(matches!(error.details, Some(Details::DigestListAck(_))));
}

/// 16.5 Messages of an architecture's own are not known: answered with UNIMPLEMENTED.
#[test]
fn other_messages_are_answered() {
    let mut rig = Rig::new();
    rig.primary().send(Request::Other(prost_types::Any::default()));
    let error = rig.primary().refused();
    let code = code(error.canonical_code);
    assert!([Code::Unimplemented, Code::InvalidArgument].contains(&code), "{code:?}");
    assert!(matches!(error.details, Some(Details::Other(_))));
}

/// 16.2 Before a stream has claimed a role it can do nothing else.
#[test]
fn a_stream_claims_a_role_first() {
    let rig = Rig::new();
    let mut session = rig.open();
    session.send(out(&data(1, 0, 0, 0, 0), vec![field(1, &[4]), field(2, &[0])]));
    match session.recv() {
        Ok(message) => match message.update {
            Some(Response::Error(error)) => assert_ne!(error.canonical_code, 0),
            other => panic!("{other:?}"),
        },
        Err(failed) => assert_ne!(failed.code, Code::Ok),
    }
    rig.sends_nothing();
}
