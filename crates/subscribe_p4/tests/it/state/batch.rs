//! Several messages per packet: each is counted before the following ones, in its packet and in later packets.

use std::collections::BTreeMap;

use rng::SplitMix64;
use subscribe::{Message, Subject};
use subscribe_p4::ProgramOptions;
use subscribe_p4::entries::Installer;

use crate::state::switch::{Made, TestSwitch};
use crate::state::{BOTH, PORTS, one, rules};

const BATCH: &str = include_str!("../../../testdata/batch.p4");
/// Number of messages in the header stack.
const STACK: usize = 3;
/// Number of bytes before the messages.
const HEAD: usize = 3;

fn rule(rng: &mut SplitMix64) -> String {
    let compare = one(rng, &["<", ">=", "==", "!="]);
    let test = match rng.below(7) {
        0 => format!("key == {}", rng.below(4)),
        1 => format!("value {compare} {}", rng.below(8)),
        2 => format!("sum(value) by key {compare} {}", rng.below(20)),
        3 => format!("count() {compare} {}", rng.below(7)),
        6 => format!("max(key) by value {compare} {}", rng.below(4)),
        4 => format!("total {compare} {}", rng.below(30)),
        _ => format!("few {compare} {}", rng.below(10)),
    };
    let also = match rng.below(3) {
        0 => format!("key == {} and ", rng.below(4)),
        _ => String::new(),
    };
    let action = match rng.below(5) {
        0 => "total += value; fwd(0)".to_owned(),
        1 => "few += 2".to_owned(),
        _ => format!("fwd({})", rng.below(PORTS.into())),
    };
    format!("{also}{test} : {action}")
}

/// Returns the messages that each port received: key and value.
type Got = BTreeMap<u32, Vec<[u8; 2]>>;

fn add(got: &mut Got, port: u32, packet: &[u8]) {
    let (length, count) = (usize::from(packet[0]) << 8 | usize::from(packet[1]), usize::from(packet[2]));
    assert_eq!((packet.len(), length), (HEAD + 2 * count, packet.len()), "a well-formed packet: {packet:?}");
    let messages = packet[HEAD..].chunks(2).map(|message| [message[0], message[1]]);
    got.entry(port).or_default().extend(messages);
}

#[test]
fn messages_of_a_packet_count_one_after_the_other() {
    let mut delivered = 0;
    let one = ProgramOptions { messages_per_pass: Some(1), ..ProgramOptions::default() };
    let all = ProgramOptions::default();
    for options in [all, one, all.with_bitmaps(PORTS), one.with_bitmaps(PORTS), all.with_bitmaps(500)] {
        let made = Made::with(BATCH, PORTS, options, |program| program);
        let format = &made.rules.format;
        let field = |name: &str| match format.subject(name) {
            Ok(Subject::Field(id)) => id,
            other => panic!("{name} is {other:?}"),
        };
        let (key, value) = (field("key"), field("value"));
        for seed in 0..20 {
            let mut rng = SplitMix64::new(seed);
            let (text, all, memory) = rules(&mut rng, &made, rule);
            for executor in BOTH {
                let mut switch = TestSwitch::new(&made, executor);
                let mut installer = Installer::new(&made.format, &made.rules, all.layout(), &made.options, 510);
                installer.install(&all.tables()).expect("few groups").iter().for_each(|update| switch.apply(update));
                let (mut rng, mut memory, mut micros) = (SplitMix64::new(1000 + seed), memory.clone(), 0);
                for _ in 0..60 {
                    micros += rng.pick(&[(5, 5), (3, 10), (1, 80), (1, 200)]);
                    let messages: Vec<[u8; 2]> =
                        (0..1 + rng.below(7)).map(|_| [rng.below(4) as u8, rng.below(8) as u8]).collect();
                    let mut expected = Got::new();
                    for one in &messages {
                        let mut message = Message::empty(format);
                        message.set(format, key, one[0].into());
                        message.set(format, value, one[1].into());
                        memory.fill(format, &mut message, micros);
                        let delivery = all.evaluate(&message);
                        delivery.ports.iter().for_each(|port| expected.entry(*port).or_default().push(*one));
                        memory.update(format, &message, &delivery, micros);
                    }
                    let length = HEAD + 2 * messages.len();
                    let packet = [&[0, length as u8, messages.len() as u8], messages.as_flattened()].concat();
                    let mut got = Got::new();
                    let left = switch.packet(micros, packet);
                    left.iter().for_each(|(port, packet)| add(&mut got, *port, packet));
                    if made.options.bitmap.is_some() && made.options.messages_per_pass.is_none() {
                        let passes = messages.len().div_ceil(STACK);
                        let packets = |port: &u32| left.iter().filter(|(to, _)| to == port).count();
                        assert!(got.keys().all(|port| packets(port) <= passes), "a packet a pass: {left:?}");
                    }
                    assert_eq!(got, expected, "seed {seed}, {executor:?}, {messages:?}\n{}", text.join("\n"));
                    delivered += expected.values().map(Vec::len).sum::<usize>();
                }
            }
        }
    }
    assert!(delivered > 5000, "{delivered} messages were delivered");
}
