//! Frames that end before their datagram does: their complete messages are delivered, and the others are a gap.

use itch_feed::{DatagramMessages, Feed, Receiver, Spec, Workload, messages};
use wire::itch::Message;
use wire::moldudp64;
use wire::pcap::Writer;

use crate::subscribe::{FORMAT, payload, run_rules};
use crate::support::feed::frame;
use crate::support::{Directory, run, triplane};

/// Number of bytes before the first message.
const HEAD: usize = 14 + 20 + 8 + moldudp64::HEADER_LEN;
/// Number of messages: more than the stack of the format has elements.
const MESSAGES: u16 = 14;
const RULES: &str = "stock == \"GOOGL\" : fwd(2)\nprice > 5000000 : fwd(3)\n";

#[test]
fn complete_messages_of_truncated_frames_are_delivered() {
    let spec = Spec { counts: DatagramMessages::Exactly(MESSAGES), ..Workload::WorstCase.spec(1) };
    let datagram = Feed::new(spec).datagram(0);
    let (whole, sent) = (frame(&datagram), messages(&datagram).unwrap());
    let mold = moldudp64::Packet::new_checked(&datagram[..]).unwrap();
    let ends: Vec<usize> = mold
        .messages()
        .scan(HEAD, |end, message| {
            *end += moldudp64::LENGTH_LEN + message.len();
            Some(*end)
        })
        .collect();
    let lengths: Vec<usize> = (1..whole.len()).step_by(3).chain(ends.clone()).collect();
    let frames: Vec<Vec<u8>> = lengths.iter().map(|length| whole[..*length].to_vec()).collect();
    // The number of complete messages of each frame that has all headers before the messages.
    let with_headers = lengths.iter().filter(|length| **length >= HEAD);
    let complete: Vec<usize> = with_headers.map(|length| ends.iter().filter(|end| *end <= length).count()).collect();
    let expected: Vec<Message> = complete.iter().flat_map(|count| sent[..*count].to_vec()).collect();
    let lost: usize = complete.iter().map(|count| sent.len() - count).sum();
    for shape in [&[][..], &["--messages-per-pass", "1"], &["--messages-per-pass", "5"], &["--groups"]] {
        let got = run_rules(FORMAT, RULES, shape, &frames, &[2, 3]);
        let mut receiver = Receiver::from_start();
        let arrived = got[0].iter().flat_map(|frame| receiver.receive(&payload(frame), 0).unwrap());
        let arrived: Vec<Message> = arrived.map(|arrival| arrival.message).collect();
        assert_eq!(arrived, expected, "{shape:?}");
        // The last frame is complete, so that its messages show the gaps before it.
        assert_eq!(receiver.totals().missing, lost as u64, "{shape:?}");
    }
    let directory = Directory::new();
    let mut capture = Writer::new(Vec::new()).unwrap();
    for (number, frame) in (0..).zip(&frames) {
        capture.write(number * 1_000, frame).unwrap();
    }
    let (capture, rules) = (directory.write("cut.pcap", capture.into_inner()), directory.write("rules.sub", RULES));
    let explained = run(&mut triplane(&["subscribe", "explain", FORMAT, &rules, "--packet", &capture])).ok().stdout;
    let read = explained.lines().filter(|line| line.starts_with("message ") && line.contains(" of ")).count();
    assert_eq!(read, expected.len(), "{explained}");
}
