//! Rules about earlier messages from the user's point of view: declared in a format, compiled, and run over a capture
//! of a market data feed. The output is compared with averages and sums that are computed here from the feed itself.

use crate::support::feed::frame;
use crate::support::{self, Directory, run, triplane};
use itch_feed::{Feed, Mix, Receiver, Spec, Workload, messages};
use wire::itch::{Body, Message, Side, Symbol};
use wire::pcap::{Reader, Writer};
use wire::{ethernet, ipv4, udp};

/// Price above which a stock counts as expensive, in ten-thousandths of a dollar as in the feed.
const DEAR: u64 = 1_000_000;
/// Number of shares in a window above which a rule matches.
const MANY: u64 = 2_000;
/// Length of the window of averages and of the counter's window, in microseconds.
const WINDOWS: (u64, u64) = (300, 450);

/// Returns a format with declarations, and rules over them.
fn declared() -> (String, String) {
    let format = std::fs::read_to_string(support::root().join("examples/market-data/orders.p4")).unwrap();
    let declarations = format!(
        "@query_aggregate(\"avg(price) by stock over {}us\", 16)\n@query_counter(sold, {})\nstruct headers_t {{",
        WINDOWS.0, WINDOWS.1
    );
    let rules = format!(
        "stock == \"GOOGL\" and avg(price) by stock > {DEAR} : fwd(2)\n\
         stock in {{\"S0001\", \"S0002\"}} and not (avg(price) by stock > {DEAR}) : fwd(3)\n\
         side == \"S\" : sold += shares\n\
         sold > {MANY} and side == \"B\" : fwd(2)\n"
    );
    (format.replacen("struct headers_t {", &declarations, 1), rules)
}

/// Count and sum of the values since a window began.
#[derive(Default)]
struct Window {
    end: u64,
    count: u64,
    sum: u64,
}

impl Window {
    /// Returns the window at a time; a window that has expired starts anew.
    fn at(&mut self, micros: u64, length: u64) -> &mut Window {
        if micros >= self.end {
            *self = Window { end: micros + length, ..Window::default() };
        }
        self
    }
}

/// Returns the messages for ports 2 and 3, from datagrams 100 microseconds apart.
fn wanted(datagrams: &[Vec<u8>]) -> [Vec<Message>; 2] {
    let stocks = ["GOOGL", "S0001", "S0002"].map(|name| name.parse::<Symbol>().unwrap());
    let mut averages: [Window; 3] = Default::default();
    let mut sold = Window::default();
    let mut out = [Vec::new(), Vec::new()];
    for (micros, payload) in (0..).step_by(100).zip(datagrams) {
        for message in messages(payload).unwrap() {
            let (stock, price, shares, side) = match &message.body {
                Body::AddOrder(add) => (add.stock, add.price, add.shares, add.side),
                Body::Trade(trade) => (trade.stock, trade.price, trade.shares, trade.side),
                _ => continue,
            };
            let is_sale = side == wire::itch::Side::Sell;
            let mut ports = [false, false];
            if let Some(which) = stocks.iter().position(|other| *other == stock) {
                let window = averages[which].at(micros, WINDOWS.0);
                let is_dear = window.sum.checked_div(window.count).unwrap_or(0) > DEAR;
                ports = [which == 0 && is_dear, which > 0 && !is_dear];
                (window.count, window.sum) = (window.count + 1, window.sum + u64::from(price.0));
            }
            // A query between two windows gives 0; a window begins with a value that counts.
            let is_open = micros < sold.end;
            ports[0] |= !is_sale && is_open && sold.sum > MANY;
            if is_sale {
                sold.at(micros, WINDOWS.1).sum += u64::from(shares);
            }
            for (port, out) in ports.into_iter().zip(&mut out) {
                out.extend(port.then(|| message.clone()));
            }
        }
    }
    out
}

/// Reads the messages that left at a port from a capture.
fn delivered(path: &str) -> Vec<Message> {
    let bytes = std::fs::read(path).unwrap();
    let mut receiver = Receiver::default();
    let mut out = Vec::new();
    for captured in Reader::new(bytes.as_slice()).unwrap() {
        let frame = captured.unwrap().data;
        let ip = ipv4::Packet::new_checked(&frame[ethernet::HEADER_LEN..]).unwrap();
        let udp = udp::Packet::new_checked(ip.payload()).unwrap();
        out.extend(receiver.receive(udp.payload(), 0).unwrap().into_iter().map(|arrival| arrival.message));
    }
    assert_eq!((receiver.totals().missing, receiver.totals().repeated), (0, 0));
    out
}

#[test]
fn averages_and_counters_decide_over_a_capture_of_a_feed() {
    let mut feed = Feed::new(Spec { share: 0.3, others: 3, ..Workload::Synthetic.spec(11) });
    let datagrams: Vec<Vec<u8>> = (0..400).map(|number| feed.datagram(number)).collect();
    let expected = wanted(&datagrams);
    assert!(expected.iter().all(|of| of.len() > 20), "{:?} messages are wanted", expected.each_ref().map(Vec::len));
    let directory = Directory::new();
    let (format, rules) = declared();
    let (format, rules) = (directory.write("feed.p4", format), directory.write("rules.sub", rules));
    let mut capture = Writer::new(Vec::new()).unwrap();
    for (number, datagram) in (0u64..).zip(&datagrams) {
        capture.write(number * 100_000, &frame(datagram)).unwrap();
    }
    let input = directory.write("in.pcap", capture.into_inner());
    let (program, entries) = (directory.path("program.p4"), directory.path("entries.json"));
    let outputs = [directory.path("2.pcap"), directory.path("3.pcap")];
    for shape in [&[][..], &["--messages-per-pass", "1"]] {
        let compile = ["subscribe", "compile", &format, &rules, "-o", &entries, "--program", &program];
        run(&mut triplane(&[&compile[..], shape].concat())).ok();
        run(&mut triplane(&["check", &program, "--entries", &entries])).ok();
        for executor in [&[][..], &["--interpret"]] {
            let ports = [format!("1={input}:"), format!("2=:{}", outputs[0]), format!("3=:{}", outputs[1])];
            let of_ports = ports.iter().flat_map(|port| ["--port", port]);
            let arguments: Vec<&str> = ["run", &program, "--entries", &entries].into_iter().chain(of_ports).collect();
            run(&mut triplane(&[&arguments[..], executor].concat())).ok();
            for (path, expected) in outputs.iter().zip(&expected) {
                let got = delivered(path);
                assert_eq!(got.len(), expected.len(), "{path}, {shape:?} {executor:?}");
                assert!(got == *expected, "{path}, {shape:?} {executor:?}: other messages");
            }
        }
    }
}

/// Microseconds between datagrams in the example; `SECOND` is the length of its windows.
const EXAMPLE_STEP: u64 = 3_000;
const SECOND: u64 = 1_000_000;

/// The rules of `examples/market-data/momentum.sub`, expressed in Rust: the messages for ports 2 to 5.
fn momentum(datagrams: &[Vec<u8>]) -> [Vec<Message>; 4] {
    let mut google = Window::default();
    let mut stocks = std::collections::BTreeMap::<Symbol, Window>::new();
    let mut traded = Window::default();
    // The moving average in 32nds, so that it can move by a 16th of any difference.
    let mut moving: Option<u64> = None;
    let mut out = [const { Vec::new() }; 4];
    for (number, payload) in (0u64..).zip(datagrams) {
        let micros = number * EXAMPLE_STEP;
        for message in messages(payload).unwrap() {
            let (stock, price, shares, side) = match &message.body {
                Body::AddOrder(add) => (add.stock, add.price, add.shares, add.side),
                Body::AddOrderAttributed(add) => (add.stock, add.price, add.shares, add.side),
                Body::Trade(trade) => (trade.stock, trade.price, trade.shares, trade.side),
                _ => continue,
            };
            let above = |window: &mut Window, least: u64| {
                let window = window.at(micros, SECOND);
                let is_above = window.sum.checked_div(window.count).unwrap_or(0) > least;
                (window.count, window.sum) = (window.count + 1, window.sum + u64::from(price.0));
                is_above
            };
            let dear = stock == Symbol(*b"GOOGL   ") && above(&mut google, 5_000_000);
            let mut trend = false;
            if stock == Symbol(*b"GOOGL   ") {
                let given = u64::from(price.0) << 5;
                trend = moving.is_some_and(|moving| (moving + 16) >> 5 > 5_500_000);
                moving = Some(match moving {
                    None => given,
                    Some(moving) if given >= moving => moving + ((given - moving) >> 4),
                    Some(moving) => moving - ((moving - given) >> 4),
                });
            }
            let rising = message.body.letter() == b'A' && above(stocks.entry(stock).or_default(), 9_000_000);
            let pressure = micros < traded.end && traded.sum > 8_000 && side == Side::Sell && shares == 1_000;
            if message.body.letter() == b'P' {
                traded.at(micros, SECOND).sum += u64::from(shares);
            }
            for (wanted, out) in [dear, rising, pressure, trend].into_iter().zip(&mut out) {
                out.extend(wanted.then(|| message.clone()));
            }
        }
    }
    out
}

#[test]
fn the_examples_rules_about_messages_before_deliver_what_they_say() {
    let mut feed = Feed::new(Spec { share: 0.3, others: 60, mix: Mix::BOOK, ..Workload::Synthetic.spec(11) });
    let datagrams: Vec<Vec<u8>> = (0..2_000).map(|number| feed.datagram(number)).collect();
    let expected = momentum(&datagrams);
    assert!(expected.iter().all(|of| of.len() > 20), "{:?} messages are wanted", expected.each_ref().map(Vec::len));
    let directory = Directory::new();
    let mut capture = Writer::new(Vec::new()).unwrap();
    for (number, datagram) in (0u64..).zip(&datagrams) {
        capture.write(number * EXAMPLE_STEP * 1_000, &frame(datagram)).unwrap();
    }
    let input = directory.write("in.pcap", capture.into_inner());
    let (program, entries) = (directory.path("program.p4"), directory.path("entries.json"));
    let [format, rules] = ["p4", "sub"].map(|kind| format!("examples/market-data/momentum.{kind}"));
    let read = |path: &str| std::fs::read_to_string(support::root().join(path)).unwrap();
    // The same with linked aggregates.
    let declared: Vec<String> =
        read(&format).lines().filter(|line| !line.starts_with("@query_aggregate")).map(str::to_owned).collect();
    let any = "@query_aggregate(\"any\", 4096, 4)\n@query_counter(traded";
    let linked_format = directory.write("any.p4", declared.join("\n").replace("@query_counter(traded", any));
    let linked_rules = read(&rules).replace("avg(price) >", "avg(price) over 1s >");
    let linked_rules = linked_rules.replace("avg(price) by stock >", "avg(price) by stock over 1s >");
    let linked_rules = directory.write("any.sub", linked_rules);
    for (format, rules) in [(format, rules), (linked_format, linked_rules)] {
        run(&mut triplane(&["subscribe", "compile", &format, &rules, "-o", &entries, "--program", &program])).ok();
        let outputs = [2, 3, 4, 5].map(|port| (port, directory.path(&format!("{port}.pcap"))));
        let ports: Vec<String> = outputs.iter().map(|(port, path)| format!("{port}=:{path}")).collect();
        let input = format!("1={input}:");
        let of_ports = std::iter::once(&input).chain(&ports).flat_map(|port| ["--port", port]);
        let arguments: Vec<&str> = ["run", &program, "--entries", &entries].into_iter().chain(of_ports).collect();
        run(&mut triplane(&arguments)).ok();
        for ((port, path), expected) in outputs.iter().zip(&expected) {
            let got = delivered(path);
            assert_eq!(got.len(), expected.len(), "{rules}, port {port}");
            assert!(got == *expected, "{rules}, port {port}: other messages");
        }
    }
}

#[test]
fn rules_without_their_aggregate_are_refused_with_a_remedy() {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", "stock == \"GOOGL\" and avg(price) by stock over 2 s > 50 : fwd(2)\n");
    let done = run(&mut triplane(&["subscribe", "check", "examples/market-data/feed.p4", &rules]));
    assert_ne!(done.code, Some(0));
    for part in [
        "the program does not compute `avg(price) by stock over 2s`",
        "@query_aggregate(\"avg(price) by stock over 2s\")",
    ] {
        assert!(done.stderr.contains(part), "{part} is missing: {done:?}");
    }
}
