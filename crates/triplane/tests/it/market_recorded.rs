//! Recorded days: a generated sample, played into captures and over UDP.

use crate::support::{Directory, run, triplane};
use itch_feed::Receiver;
use wire::itch::Message;

/// Returns the capture times of the datagrams of a capture, and the messages of each.
fn datagrams(path: &str) -> Vec<(u64, Vec<Message>)> {
    let bytes = std::fs::read(path).expect("a capture");
    let frames = wire::pcap::Reader::new(bytes.as_slice()).expect("a capture").map(Result::unwrap);
    frames.map(|frame| (frame.time_ns, itch_feed::messages(&frame.data[14 + 20 + 8..]).expect("a feed"))).collect()
}

/// Writes a sample of 1,000 messages of the market hours, and returns its path.
fn sample(directory: &Directory) -> String {
    let path = directory.path("sample.itch");
    run(&mut triplane(&["market", "sample", "-o", &path, "--count", "1000", "--mix", "book"])).ok();
    path
}

#[test]
fn a_sample_is_played_whole_and_in_order_with_any_number_of_messages_a_datagram() {
    let directory = Directory::new();
    let (day, capture) = (sample(&directory), directory.path("day.pcap"));
    let play = ["market", "publish", "--binary-file", &day, "--pcap", &capture, "--json"];
    let all: Vec<Message> = {
        run(&mut triplane(&[&play[..], &["--keep-timestamps"]].concat())).ok();
        datagrams(&capture).into_iter().flat_map(|(_, messages)| messages).collect()
    };
    assert_eq!(all.len(), 1_000 + 1 + 400 + 1 + 8 + 2 + 4);
    for (options, most) in [
        (&["--rate", "1k"][..], 1),
        (&["--rate", "1k", "--messages", "12"], 12),
        // As many as fit: the messages of a feed have from 21 to 46 bytes with their lengths.
        (&["--rate", "1k", "--messages", "500"], 1_472 / 21),
        (&["--rate", "1k", "--messages", "500", "--mtu", "9000"], 8_972 / 21),
    ] {
        let published = [&play[..], options, &["--keep-timestamps"]].concat();
        let published = run(&mut triplane(&published)).ok().json();
        let played = datagrams(&capture);
        let longest = played.iter().map(|(_, messages)| messages.len()).max().expect("a datagram");
        assert!(longest <= most && longest * 2 > most, "{options:?}: {longest}");
        assert_eq!(published["messages"].as_u64(), Some(all.len() as u64));
        assert!(played.into_iter().flat_map(|(_, messages)| messages).eq(all.iter().cloned()), "{options:?}");
    }
}

#[test]
fn a_day_has_its_own_pace_times_the_speed() {
    let directory = Directory::new();
    let (day, capture) = (sample(&directory), directory.path("day.pcap"));
    let times = |options: &[&str]| {
        let play = ["market", "publish", "--binary-file", &day, "--pcap", &capture, "--from", "9:30"];
        run(&mut triplane(&[&play[..], options].concat())).ok();
        datagrams(&capture)
    };
    let own = times(&["--keep-timestamps"]);
    let begin = 34_200_000_000_000;
    assert_eq!(own[0].0, begin, "the messages before 9:30 are skipped");
    for (time, messages) in own.iter().filter(|(_, messages)| !messages.is_empty()) {
        assert_eq!(messages.last().map(|message| message.header.timestamp_ns), Some(*time));
    }
    for (fast, slow) in times(&["--speed", "4x"]).iter().zip(&own) {
        assert_eq!(fast.0, begin + (slow.0 - begin) / 4);
        // The messages get the time of sending.
        assert!(fast.1.iter().all(|message| message.header.timestamp_ns == fast.0));
    }
    let gathered = times(&["--messages", "12", "--keep-timestamps"]);
    assert!(gathered.len() < own.len());
    for (time, messages) in gathered.iter().filter(|(_, messages)| !messages.is_empty()) {
        assert!(messages.iter().all(|message| time - message.header.timestamp_ns <= itch_feed::GATHER_NS));
    }
}

#[test]
fn a_malformed_day_is_an_error_with_its_place_behind_what_is_readable() {
    let directory = Directory::new();
    let (day, capture) = (sample(&directory), directory.path("day.pcap"));
    let mut bytes = std::fs::read(&day).unwrap();
    // The first record is a system event of 12 bytes, the second a directory entry of 39.
    bytes[14 + 1] = 38;
    let wrong = directory.write("wrong.itch", &bytes);
    let done = run(&mut triplane(&["market", "publish", "--binary-file", &wrong, "--pcap", &capture, "--json"]));
    assert_eq!(done.code, Some(1), "{done:?}");
    let said = "wrong.itch: byte 14: a message of type `R` with 38 bytes, but ITCH 5.0 has 39";
    assert!(done.stderr.contains(said), "{done:?}");
    let mut receiver = Receiver::from_start();
    let bytes = std::fs::read(&capture).unwrap();
    for frame in wire::pcap::Reader::new(bytes.as_slice()).unwrap() {
        receiver.receive(&frame.unwrap().data[42..], 0).unwrap();
    }
    assert!(receiver.is_over() && receiver.totals().messages == 1, "{:?}", receiver.totals());
}
