//! Tests each pitfall that needs no random schedule.

use rdma::{
    FailureReason, FrameList, MemoryRange, Receipt, RequestOutcome, RequestRefusal, RequesterConfig, ResponderConfig,
};
use switch::Time;
use wire::roce::{Aeth, Extension, Mtu, NakCode, Opcode, Packet, Position, Psn, Repr, Reth, Syndrome};

use crate::pair::{BASE, Pair, datagram, raw_frame};

fn packet(frame: &[u8]) -> Packet<&[u8]> {
    Packet::new_checked(datagram(frame).unwrap()).unwrap()
}

fn opcodes(frames: &[Vec<u8>]) -> Vec<(Opcode, u32)> {
    let psn = |packet: &Packet<&[u8]>| packet.psn().number();
    frames.iter().map(|frame| packet(frame)).map(|packet| (packet.opcode(), psn(&packet))).collect()
}

/// Returns the results of requests, as text.
fn ends(pair: &mut Pair) -> Vec<(u64, String)> {
    let mut ends = Vec::new();
    while let Some(completion) = pair.requester.next_completion() {
        let text = match completion.outcome {
            RequestOutcome::Read(data) => format!("{} bytes", data.len()),
            other => format!("{other:?}"),
        };
        ends.push((completion.token, text));
    }
    ends
}

/// Returns a frame from the requester's address to the responder's queue pair.
fn forged(pair: &Pair, repr: Repr, payload: &[u8]) -> Vec<u8> {
    raw_frame(&pair.path, &repr.packet(payload))
}

fn forged_answer(pair: &Pair, opcode: Opcode, psn: Psn, syndrome: Syndrome) -> Vec<u8> {
    let extension = Extension::Aeth(Aeth { syndrome, message_number: 0 });
    raw_frame(&pair.path.reversed(), &Repr::new(opcode, pair.number.0, psn, extension).packet(b""))
}

#[test]
fn a_read_takes_a_number_for_each_packet_of_its_answer() {
    let mut pair = Pair::new(Mtu::Mtu256, 4096);
    pair.requester.read(pair.number, 1, pair.range(3, 1000)).unwrap();
    pair.requester.read(pair.number, 2, pair.range(0, 256)).unwrap();
    let requests = pair.requests(Time::ZERO);
    let first = packet(&requests[0]).psn();
    let (only, request) = (Position::Only, Opcode::ReadRequest);
    assert_eq!(opcodes(&requests), [(request, first.number()), (request, first.plus(4).number())]);
    let answers: Vec<_> = requests.iter().flat_map(|frame| pair.answers(frame)).collect();
    let expected = [(Position::First, 0), (Position::Middle, 1), (Position::Middle, 2), (Position::Last, 3), (only, 4)];
    let expected = expected.map(|(position, index)| (Opcode::ReadResponse(position), first.plus(index).number()));
    assert_eq!(opcodes(&answers), expected);
    assert_eq!(
        answers.iter().map(|frame| packet(frame).payload().len()).collect::<Vec<_>>(),
        [256, 256, 256, 232, 256]
    );
    for answer in answers {
        pair.requester.on_frame(Time::ZERO, &answer);
    }
    let expected: Vec<u8> = (3..1003).map(|at| (at % 251) as u8).collect();
    assert_eq!(pair.requester.next_completion().unwrap().outcome, RequestOutcome::Read(&expected));
    assert_eq!(ends(&mut pair), [(2, "256 bytes".to_owned())]);
}

#[test]
fn a_write_of_any_length_arrives_with_its_pad_left_out() {
    for len in [0usize, 1, 2, 3, 255, 256, 257, 511, 700] {
        let mut pair = Pair::new(Mtu::Mtu256, 1024);
        pair.requester.write(pair.number, 1, BASE + 9, pair.key, &vec![0xee; len]).unwrap();
        pair.exchange(Time::ZERO);
        assert_eq!(ends(&mut pair), [(1, "Written".to_owned())]);
        let memory = pair.responder.memory(pair.key).unwrap();
        for (at, byte) in memory.iter().enumerate() {
            let is_written = (9..9 + len).contains(&at);
            assert_eq!(*byte, if is_written { 0xee } else { (at % 251) as u8 }, "byte {at} of a WRITE of {len}");
        }
    }
}

#[test]
fn a_gap_is_reported_once_and_again_after_the_next_one() {
    let mut pair = Pair::new(Mtu::Mtu256, 4096);
    for token in 0..8 {
        pair.requester.write(pair.number, token, BASE, pair.key, &[1; 8]).unwrap();
    }
    let requests = pair.requests(Time::ZERO);
    let first = packet(&requests[0]).psn();
    let naks = |frames: &[Vec<u8>]| -> Vec<(u32, Extension)> {
        frames.iter().map(|frame| (packet(frame).psn().since(first), packet(frame).extension())).collect()
    };
    assert!(pair.answers(&requests[0]).len() == 1);
    let nak =
        |message_number| Extension::Aeth(Aeth { syndrome: Syndrome::Nak(NakCode::SequenceError), message_number });
    assert_eq!(naks(&pair.answers(&requests[2])), [(1, nak(1))]);
    assert!(pair.answers(&requests[3]).is_empty() && pair.answers(&requests[2]).is_empty());
    assert!(pair.answers(&requests[1]).len() == 1);
    assert_eq!(naks(&pair.answers(&requests[4])), [(2, nak(2))]);
    // A duplicate of the report does not send everything twice.
    let report = forged_answer(&pair, Opcode::Acknowledge, first.plus(2), Syndrome::Nak(NakCode::SequenceError));
    pair.requester.on_frame(Time::ZERO, &report);
    assert_eq!(pair.requests(Time::ZERO).len(), 6);
    pair.requester.on_frame(Time::ZERO, &report);
    assert!(pair.requests(Time::ZERO).is_empty());
    assert_eq!(pair.requester.counts().naks, 2);
}

#[test]
fn a_lost_answer_is_inferred_from_a_later_one_and_only_the_rest_is_read_again() {
    let mut pair = Pair::new(Mtu::Mtu256, 4096);
    pair.requester.read(pair.number, 1, pair.range(0, 1024)).unwrap();
    pair.requester.write(pair.number, 2, BASE, pair.key, &[1; 8]).unwrap();
    let requests = pair.requests(Time::ZERO);
    let answers: Vec<_> = requests.iter().flat_map(|frame| pair.answers(frame)).collect();
    let first = packet(&requests[0]).psn();
    pair.requester.on_frame(Time::ZERO, &answers[0]);
    // The second part is lost; the third, the fourth and the acknowledgement of the WRITE all show it.
    for answer in &answers[2..] {
        pair.requester.on_frame(Time::ZERO, answer);
    }
    assert!(ends(&mut pair).is_empty());
    let again = pair.requests(Time::ZERO);
    assert_eq!(again.len(), 2, "both are sent again, once");
    let Extension::Reth(reth) = packet(&again[0]).extension() else { panic!("a READ names memory") };
    let rest = Reth { address: BASE + 256, key: pair.key.0, len: 768 };
    assert_eq!((packet(&again[0]).psn(), reth), (first.plus(1), rest));
    for frame in again.iter().flat_map(|frame| pair.answers(frame)).collect::<Vec<_>>() {
        pair.requester.on_frame(Time::ZERO, &frame);
    }
    assert_eq!(ends(&mut pair), [(1, "1024 bytes".to_owned()), (2, "Written".to_owned())]);
    assert_eq!((pair.responder.counts().writes, pair.responder.counts().duplicates), (1, 2));
}

#[test]
fn many_reports_of_gaps_do_not_count_as_timeouts_but_are_bounded() {
    let config = RequesterConfig { max_retries: 3, max_naks: 20, ..RequesterConfig::default() };
    let mut pair = Pair::with_configs(Mtu::Mtu256, 4096, config, ResponderConfig::default());
    for token in 0..16 {
        pair.requester.read(pair.number, token, pair.range(0, 8)).unwrap();
    }
    let first = packet(&pair.requests(Time::ZERO)[0]).psn();
    // The answer to the first READ is late, and requests overtake each other.
    for gap in 1..16 {
        let nak = Syndrome::Nak(NakCode::SequenceError);
        let report = forged_answer(&pair, Opcode::Acknowledge, first.plus(gap), nak);
        pair.requester.on_frame(Time::ZERO, &report);
        assert_eq!(pair.requests(Time::ZERO).len(), 16, "gap {gap}");
    }
    for _ in 0..5 {
        let busy = forged_answer(&pair, Opcode::Acknowledge, first, Syndrome::RnrNak(1));
        pair.requester.on_frame(Time::ZERO, &busy);
        assert!(ends(&mut pair).is_empty());
    }
    let busy = forged_answer(&pair, Opcode::Acknowledge, first, Syndrome::RnrNak(1));
    pair.requester.on_frame(Time::ZERO, &busy);
    assert_eq!(ends(&mut pair)[0], (0, "Failed(NoAnswer)".to_owned()));
}

#[test]
fn ghost_acknowledgements_complete_nothing() {
    let mut pair = Pair::new(Mtu::Mtu256, 4096);
    pair.requester.write(pair.number, 1, BASE, pair.key, &[1; 8]).unwrap();
    let requests = pair.requests(Time::ZERO);
    let first = packet(&requests[0]).psn();
    for psn in [first.minus(1), first.plus(1), first.plus(1 << 23), first.minus(100)] {
        let ack = forged_answer(&pair, Opcode::Acknowledge, psn, Syndrome::ACK);
        assert_eq!(pair.requester.on_frame(Time::ZERO, &ack), Receipt::Ours);
    }
    assert!(ends(&mut pair).is_empty() && pair.requester.counts().ghosts == 4);
    let ack = forged_answer(&pair, Opcode::Acknowledge, first, Syndrome::ACK);
    pair.requester.on_frame(Time::ZERO, &ack);
    assert_eq!(ends(&mut pair), [(1, "Written".to_owned())]);
    pair.requester.on_frame(Time::ZERO, &ack);
    assert_eq!((pair.requester.counts().ghosts, pair.requester.next_event()), (5, None));
}

#[test]
fn a_long_write_is_acknowledged_on_its_way() {
    let config = RequesterConfig { timeout_ns: 1000, max_retries: 1, ..RequesterConfig::default() };
    let mut pair = Pair::with_configs(Mtu::Mtu256, 64, config, ResponderConfig::default());
    pair.requester.write(pair.number, 1, BASE, pair.key, &[1; 200 * 256]).unwrap();
    let requests = pair.requests(Time::ZERO);
    let acknowledged = requests.iter().enumerate().filter(|(_, frame)| packet(frame).is_ack_requested());
    assert_eq!(acknowledged.map(|(index, _)| index).collect::<Vec<_>>(), [63, 127, 191, 199]);
    let first = packet(&requests[0]).psn();
    // The acknowledgements arrive just before the timeouts, which the write as a whole would exceed.
    for (index, time) in [(63, 900), (127, 1800), (191, 2700)] {
        let ack = forged_answer(&pair, Opcode::Acknowledge, first.plus(index), Syndrome::ACK);
        pair.requester.on_frame(Time::from_ns(time), &ack);
        pair.requester.tick(Time::from_ns(time + 100));
    }
    assert_eq!((pair.requester.counts().timeouts, pair.requester.counts().repeated), (0, 0));
    // After a timeout, only what was not acknowledged is sent again.
    pair.requester.tick(Time::from_ns(3800));
    assert_eq!(pair.requests(Time::from_ns(3800)).len(), 8);
}

#[test]
fn retries_are_bounded_and_all_requests_end() {
    let config = RequesterConfig { timeout_ns: 1000, max_retries: 3, ..RequesterConfig::default() };
    let mut pair = Pair::with_configs(Mtu::Mtu256, 64, config, ResponderConfig::default());
    pair.requester.read(pair.number, 1, pair.range(0, 8)).unwrap();
    pair.requester.read(pair.number, 2, pair.range(0, 8)).unwrap();
    let mut sent = 0;
    while let Some(time) = pair.requester.next_event().or((sent == 0).then_some(Time::ZERO)) {
        pair.requester.tick(time);
        sent += pair.requests(time).len();
    }
    assert_eq!(sent, 8, "one attempt and three more");
    let flushed = "Failed(Flushed)".to_owned();
    assert_eq!(ends(&mut pair), [(1, "Failed(NoAnswer)".to_owned()), (2, flushed)]);
    assert_eq!(pair.requester.read(pair.number, 3, pair.range(0, 8)), Err(RequestRefusal::NotConnected));
    assert!(pair.requester.close(pair.number) && !pair.requester.close(pair.number));
    assert_eq!(pair.requester.read(pair.number, 3, pair.range(0, 8)), Err(RequestRefusal::NoQueuePair));
}

#[test]
fn a_responder_that_is_not_ready_is_given_its_time() {
    let mut pair = Pair::new(Mtu::Mtu256, 64);
    pair.requester.write(pair.number, 1, BASE, pair.key, &[1; 8]).unwrap();
    let requests = pair.requests(Time::ZERO);
    let not_ready = forged_answer(&pair, Opcode::Acknowledge, packet(&requests[0]).psn(), Syndrome::RnrNak(14));
    pair.requester.on_frame(Time::ZERO, &not_ready);
    let ready = Time::from_ns(1_280_000);
    assert_eq!(pair.requester.next_event(), Some(ready));
    assert!(pair.requests(Time::from_ns(1_279_999)).is_empty());
    assert_eq!(pair.requests(ready), requests);
}

#[test]
fn at_most_the_negotiated_number_of_reads_is_outstanding() {
    let responder = ResponderConfig { max_reads: 3, ..ResponderConfig::default() };
    let mut pair = Pair::with_configs(Mtu::Mtu256, 64, RequesterConfig::default(), responder);
    for token in 0..5 {
        pair.requester.read(pair.number, token, pair.range(0, 8)).unwrap();
    }
    pair.requester.write(pair.number, 5, BASE, pair.key, &[1; 8]).unwrap();
    let requests = pair.requests(Time::ZERO);
    assert_eq!(requests.len(), 3);
    for answer in requests.iter().flat_map(|frame| pair.answers(frame)).take(1).collect::<Vec<_>>() {
        pair.requester.on_frame(Time::ZERO, &answer);
    }
    assert_eq!((pair.requests(Time::ZERO).len(), pair.requester.outstanding(pair.number)), (1, 5));
}

#[test]
fn queues_and_messages_are_bounded() {
    let config = RequesterConfig { queue_len: 2, max_message: 64, ..RequesterConfig::default() };
    let mut pair = Pair::with_configs(Mtu::Mtu256, 64, config, ResponderConfig::default());
    assert_eq!(pair.requester.read(pair.number, 0, pair.range(0, 65)), Err(RequestRefusal::TooLong));
    assert_eq!(pair.requester.write(pair.number, 0, BASE, pair.key, &[0; 65]), Err(RequestRefusal::TooLong));
    for token in 0..2 {
        pair.requester.read(pair.number, token, pair.range(0, 64)).unwrap();
    }
    assert_eq!(pair.requester.read(pair.number, 2, pair.range(0, 8)), Err(RequestRefusal::Full));
}

#[test]
fn a_refused_request_fails_the_queue_pair_at_both_ends() {
    let mut pair = Pair::new(Mtu::Mtu256, 64);
    pair.requester.read(pair.number, 1, pair.range(0, 8)).unwrap();
    pair.requester.read(pair.number, 2, pair.range(60, 8)).unwrap();
    pair.requester.read(pair.number, 3, pair.range(0, 8)).unwrap();
    pair.exchange(Time::ZERO);
    let expected = ["8 bytes", "Failed(Refused(RemoteAccessError))", "Failed(Flushed)"];
    assert_eq!(ends(&mut pair).into_iter().map(|(_, text)| text).collect::<Vec<_>>(), expected);
    let failure = pair.responder.next_failure().unwrap();
    assert_eq!((failure.number, failure.reason), (pair.remote.number, NakCode::RemoteAccessError));
    assert!(pair.responder.next_failure().is_none() && pair.responder.queue_pairs() == 1);
    assert!(pair.responder.close(pair.remote.number) && !pair.responder.close(pair.remote.number));
    assert_eq!(pair.responder.queue_pairs(), 0);
}

/// The opcode, the headers and the payload length of a packet.
type RequestParts = (Opcode, Extension, usize);

/// Each request is well formed, with a single error.
#[test]
fn requests_that_break_the_rules_are_refused() {
    let reth = |offset: u64, len| Reth { address: BASE + offset, key: Pair::new(Mtu::Mtu256, 1024).key.0, len };
    let write = |position, len, payload: usize| {
        let extension = match position {
            Position::First | Position::Only => Extension::Reth(reth(0, len)),
            _ => Extension::None,
        };
        vec![(Opcode::Write(position), extension, payload)]
    };
    let atomic = wire::roce::AtomicEth { address: BASE + 4, key: reth(0, 0).key, swap_or_add: 1, compare: 0 };
    let cases: Vec<(&str, Vec<RequestParts>, NakCode)> = vec![
        ("a middle without a first", write(Position::Middle, 0, 256), NakCode::InvalidRequest),
        ("a last without a first", write(Position::Last, 0, 8), NakCode::InvalidRequest),
        ("a first that is too short", write(Position::First, 600, 255), NakCode::InvalidRequest),
        ("a first of one packet", write(Position::First, 256, 256), NakCode::InvalidRequest),
        ("an only of two packets", write(Position::Only, 257, 256), NakCode::InvalidRequest),
        ("an only of another length", write(Position::Only, 8, 12), NakCode::InvalidRequest),
        ("a WRITE past the end", write(Position::First, 1025, 256), NakCode::RemoteAccessError),
        (
            "a last too early",
            [write(Position::First, 600, 256), write(Position::Last, 0, 256)].concat(),
            NakCode::InvalidRequest,
        ),
        (
            "a READ within a WRITE",
            [write(Position::First, 600, 256), vec![(Opcode::ReadRequest, Extension::Reth(reth(0, 8)), 0)]].concat(),
            NakCode::InvalidRequest,
        ),
        ("a SEND", vec![(Opcode::Send(Position::Only), Extension::None, 8)], NakCode::InvalidRequest),
        (
            "a WRITE with immediate data",
            vec![(Opcode::WriteImmediate(true), Extension::RethImmediate(reth(0, 8), [0; 4]), 8)],
            NakCode::InvalidRequest,
        ),
        ("a long READ", vec![(Opcode::ReadRequest, Extension::Reth(reth(0, u32::MAX)), 0)], NakCode::InvalidRequest),
        ("an odd address", vec![(Opcode::FetchAdd, Extension::AtomicEth(atomic), 0)], NakCode::InvalidRequest),
    ];
    for (name, packets, reason) in cases {
        let mut pair = Pair::new(Mtu::Mtu256, 1024);
        // The first packet of the requester shows its number.
        pair.requester.read(pair.number, 1, pair.range(0, 0)).unwrap();
        let first = packet(&pair.requests(Time::ZERO)[0]).psn();
        let count = packets.len();
        for (index, (opcode, extension, payload)) in (0..).zip(packets) {
            let repr = Repr::new(opcode, pair.remote.number.0, first.plus(index), extension);
            let frame = forged(&pair, repr, &vec![0xee; payload]);
            let answers = pair.answers(&frame);
            if index as usize + 1 == count {
                let aeth = Aeth { syndrome: Syndrome::Nak(reason), message_number: 0 };
                assert_eq!(packet(&answers[0]).extension(), Extension::Aeth(aeth), "{name}");
            }
        }
        assert!(pair.responder.next_failure().is_some_and(|failure| failure.reason == reason), "{name}");
        // After the failure, nothing is answered.
        let read = Repr::new(Opcode::ReadRequest, pair.remote.number.0, first, Extension::Reth(reth(0, 8)));
        let frame = forged(&pair, read, b"");
        assert!(pair.answers(&frame).is_empty(), "{name}");
    }
}

#[test]
fn frames_for_others_are_left_alone() {
    let mut pair = Pair::new(Mtu::Mtu256, 64);
    pair.requester.read(pair.number, 1, pair.range(0, 8)).unwrap();
    let request = pair.requests(Time::ZERO).remove(0);
    let answer = pair.answers(&request).remove(0);
    let mut sink = FrameList::default();
    let changes: [(usize, u8); 5] = [(12, 9), (14, 0x46), (23, 6), (36, 1), (48, 1)];
    for (at, value) in changes {
        let (mut request, mut answer) = (request.clone(), answer.clone());
        (request[at], answer[at]) = (value, value);
        assert_eq!(pair.responder.on_frame(&request, &mut sink), Receipt::NotOurs, "byte {at}");
        assert_eq!(pair.requester.on_frame(Time::ZERO, &answer), Receipt::NotOurs, "byte {at}");
    }
    for len in 0..request.len() {
        assert_eq!(pair.responder.on_frame(&request[..len], &mut sink), Receipt::NotOurs);
    }
    assert!(sink.is_empty());
    assert_eq!(pair.requester.on_frame(Time::ZERO, &answer), Receipt::Ours);
    assert_eq!(ends(&mut pair), [(1, "8 bytes".to_owned())]);
}

#[test]
fn an_unconnected_queue_pair_takes_nothing() {
    let mut pair = Pair::new(Mtu::Mtu256, 64);
    let local = pair.requester.open(&mut pair.rng, pair.path).unwrap();
    let range = MemoryRange { address: BASE, key: pair.key, len: 8 };
    assert_eq!(pair.requester.read(local.number, 1, range), Err(RequestRefusal::NotConnected));
    assert!(pair.requests(Time::ZERO).is_empty());
    pair.requester.connect(local.number, pair.remote).unwrap();
    assert_eq!(pair.requester.connect(local.number, pair.remote), Err(RequestRefusal::NotConnected));
    pair.requester.read(local.number, 1, range).unwrap();
    pair.requester.close(local.number);
    let end = pair.requester.next_completion().unwrap();
    assert_eq!((end.token, end.outcome), (1, RequestOutcome::Failed(FailureReason::Flushed)));
}
