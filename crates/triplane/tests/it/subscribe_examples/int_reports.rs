//! `examples/int-reports`.

use super::{Example, Host, frames};

const EXAMPLE: Example = Example { name: "int-reports", format: "report.p4", rules: "reports.sub" };

const COLLECTOR: Host = Host { mac: [2, 0, 0, 0, 0, 99], ip: [10, 0, 0, 99], port: 32766 };

/// A report of one switch.
#[derive(Clone, Copy)]
struct Report {
    switch: u8,
    dropped: bool,
    latency: Option<u32>,
    /// The queue's id and its occupancy, as one word.
    queue: Option<u32>,
}

const PLAIN: Report = Report { switch: 22, dropped: false, latency: None, queue: None };

impl Report {
    /// The individual report: two interfaces, the optional metadata, an egress timestamp, and a packet's first 20
    /// bytes.
    fn individual(self) -> Vec<u8> {
        let mut metadata = vec![0, 1, 0, 2];
        metadata.extend(self.latency.iter().flat_map(|latency| latency.to_be_bytes()));
        metadata.extend(self.queue.iter().flat_map(|queue| queue.to_be_bytes()));
        metadata.extend(1_700_000_000_000_000_000u64.to_be_bytes());
        let bits: u16 =
            1 << 14 | u16::from(self.latency.is_some()) << 13 | u16::from(self.queue.is_some()) << 12 | 1 << 10;
        let inner = [0x45; 20];
        let words = (8 + metadata.len() + inner.len()) / 4;
        // INT, IPv4; the flags: dropped or not, no congestion, a tracked flow.
        let first = [0x14, words as u8, (metadata.len() / 4) as u8, u8::from(self.dropped) << 7 | 0x20];
        [&first[..], &bits.to_be_bytes(), &[0; 6], &metadata, &inner].concat()
    }

    fn frame(self) -> Vec<u8> {
        group(self.switch, &[self])
    }
}

/// A datagram with several reports.
fn group(switch: u8, reports: &[Report]) -> Vec<u8> {
    let from = Host { mac: [2, 0, 0, 0, 0, switch], ip: [10, 0, 0, switch], port: 40_000 };
    let group = [0x20, 0x40, 0, 1, 0, 0, 0, switch];
    let reports: Vec<u8> = reports.iter().flat_map(|report| report.individual()).collect();
    from.datagram(COLLECTOR, &[&group[..], &reports].concat())
}

#[test]
fn each_gets_the_reports_that_its_rule_asks_for() {
    let at = |switch, latency| Report { switch, latency: Some(latency), ..PLAIN };
    let full = Report { queue: Some(7 << 24 | 1_500), ..at(41, 900) };
    let all = [
        at(22, 12_000).frame(),
        at(22, 8_000).frame(),
        at(22, 8_001).frame(),
        at(41, 50_000).frame(),
        full.frame(),
        Report { queue: Some(7 << 24 | 999), ..full }.frame(),
        Report { switch: 42, dropped: true, ..PLAIN }.frame(),
        at(21, 300).frame(),
        group(43, &[at(43, 100), at(43, 200)]),
    ];
    EXAMPLE.has_capture("reports.pcap", 0, &all);
    let picked = |numbers: &[usize]| numbers.iter().map(|number| all[*number].clone()).collect::<Vec<_>>();
    let (directory, _) = EXAMPLE.run_readme();
    assert_eq!(frames(&directory.path("slow.pcap")), picked(&[0, 2]));
    assert_eq!(frames(&directory.path("alarm.pcap")), picked(&[4, 6]));
    assert_eq!(frames(&directory.path("archive.pcap")), picked(&[0, 1, 2, 7, 8]));
}

#[test]
fn absent_fields_match_no_rule() {
    // The same word is a latency, the queue, or the next field, depending on the bits of the report.
    let without_latency = Report { queue: Some(0x00ff_ffff), ..PLAIN };
    let without_queue = Report { switch: 41, latency: Some(u32::MAX - 1), ..PLAIN };
    // All ones: the node does not know the value.
    let unknown = Report { latency: Some(u32::MAX), queue: Some(u32::MAX), ..PLAIN };
    let unknown_latency = Report { queue: Some(2_000), ..unknown };
    let mut version_1 = Report { switch: 22, latency: Some(9_000), ..PLAIN }.frame();
    version_1[42] = 0x10;
    let mut cut = Report { switch: 22, latency: Some(9_000), ..PLAIN }.frame();
    cut.truncate(14 + 20 + 8 + 8 + 12);
    let all = [without_latency, without_queue, unknown, unknown_latency].map(Report::frame);
    let sent = [&all[..], &[version_1, cut]].concat();
    let [none, slow, alarm, _archive] = &EXAMPLE.send(&[(1, &sent)], 4)[..] else { panic!("there are four ports") };
    assert_eq!((none.len(), slow.len()), (0, 0), "{slow:02x?}");
    assert_eq!(*alarm, [all[0].clone(), all[3].clone()]);
}
