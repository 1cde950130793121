//! `triplane subscribe serve` with a switch that applies writes one by one and refuses one in the middle of a change.
//! During the rollback each message of a feed meets either the old rules or the rules of the change, and the feed never
//! stops.

use std::time::{Duration, Instant};

use crate::support::Directory;
use crate::support::deliveries::{bytes, delivered, spec, wanted};
use crate::support::feed::frame;
use crate::support::plain;
use crate::support::rig::Rig;
use crate::support::service::Service;
use itch_feed::{Feed, messages};
use switch::{Frame, PortId};
use testing::port::reserved_address;

const RULES: [&str; 3] = [
    "stock == \"GOOGL\" and price > 5000000 : fwd(2, 3)",
    "shares >= 500 : fwd(3); to_controller",
    "stock == \"S0002\" or price < 3000000 : fwd(5)",
];
const CHANGE: &str = "side == \"B\" and price > 2000000 : fwd(4, 5)";

#[test]
fn a_change_that_is_refused_anywhere_is_taken_back_while_messages_are_delivered() {
    /// Datagrams per second: several between two writes, but few enough not to fill the memory.
    const RATE: f64 = 4_000.0;
    let directory = Directory::new();
    let rules = directory.write("rules.sub", RULES.join("\n"));
    let address = reserved_address();
    let rig = Rig::new(8, address);
    let (through, refusals) = plain::refusing(address);
    let mut service = Service::start(&rules, through, &[]);
    service.running.wait_for("step-by-step changes");

    let mut feed = Feed::new(spec());
    let (mut number, begun) = (0, Instant::now());
    rig.feed(Box::new(move || {
        let is_due = (number as f64) < begun.elapsed().as_secs_f64() * RATE;
        is_due.then(|| {
            number += 1;
            Frame { port: PortId(1), data: frame(&feed.datagram(number)) }
        })
    }));
    // Messages that arrive during a change may follow the rules of the change.
    let mut windows = Vec::new();
    let mut refused = 0;
    for updates in 0.. {
        let asked = rig.sent();
        refusals.after(updates);
        let done = service.tell(&["add", CHANGE]);
        if done.code == Some(0) && refusals.are_pending() {
            windows.push((asked, rig.sent()));
            break;
        }
        if done.code == Some(0) {
            // The refusal met an update outside the change: some time after the rollback before it, the service
            // deletes the entries that no message reaches any more.
            service.tell(&["remove", done.stdout.trim()]).ok();
        } else {
            assert!(done.code == Some(1) && done.stderr.contains("there is no room"), "{done:?}");
            refused += 1;
        }
        windows.push((asked, rig.sent()));
        assert_eq!(service.list().lines().count(), RULES.len());
    }
    std::thread::sleep(Duration::from_millis(50));
    rig.drain();
    let (mut delivered, last) = (delivered(&rig.left()), rig.sent());
    let before = RULES.map(str::to_owned).to_vec();
    let behind = [&before[..], &[CHANGE.to_owned()]].concat();
    let made = windows.last().expect("the change was asked for").1;
    let mut feed = Feed::new(spec());
    let mut apart = 0;
    for number in 1..=last {
        let is_between = windows.iter().any(|(asked, done)| (*asked..=*done + 1).contains(&number));
        for message in messages(&feed.datagram(number)).unwrap() {
            let mut got = delivered.remove(&bytes(&message)).unwrap_or_default();
            got.retain(|port| *port != v1model::CPU_PORT);
            let [old, new] = [&before, &behind].map(|rules| wanted(rules, &message));
            let is_right = if is_between {
                got == old || got == new
            } else {
                got == if number > made { new.clone() } else { old.clone() }
            };
            apart += usize::from(is_between && old != new);
            assert!(is_right, "datagram {number}, {message:?}: got {got:?}, not {old:?} or {new:?}; {windows:?}");
        }
    }
    assert!(refused > 10 && apart > 100, "{refused} writes were refused, {apart} messages told old and new apart");
}
