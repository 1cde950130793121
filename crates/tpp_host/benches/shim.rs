//! Measures a TCP stream between two hosts with shims, in namespaces that a veth pair connects. Run
//! `cargo bench -p tpp_host` as root.
//!
//! The rounds alternate between the rows, and each ratio is the median of those of its rounds. All rows have segments
//! of one size: the MTU of a host is smaller by the program of 260 bytes, whether packets carry it or not.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use ports::namespace::{Namespace, NamespaceError, veth};
use ports::{InterposedPorts, PortError};
use tpp::TinyProgram;
use tpp::shim::{PacketFilter, Shim};
use tpp_host::{RelayCounts, ShimRelay};
use wire::tpp::{Addressing, Instruction, Operation, Packet, Repr, WordSize};

const ROUNDS: usize = 15;
const TIME: Duration = Duration::from_millis(700);
const TIMEOUT: Duration = Duration::from_secs(20);
const MTU: usize = 1500;
const PROGRAM_LEN: usize = 260;
/// Port of the receiver.
const PORT: u16 = 9000;

/// Filters of a shim, for ports from the first number on.
#[derive(Clone, Copy)]
enum Subject {
    Shims { first: u16, filters: u16, one_in: u32 },
    NoShim { has_offloads: bool },
}

const SUBJECTS: [(&str, Subject); 6] = [
    ("1 filter, program in each segment", Subject::Shims { first: PORT, filters: 1, one_in: 1 }),
    ("1 filter, program in none", Subject::Shims { first: PORT, filters: 1, one_in: u32::MAX }),
    ("first of 1,000 filters, each segment", Subject::Shims { first: PORT, filters: 1000, one_in: 1 }),
    ("last of 1,000 filters, each segment", Subject::Shims { first: PORT - 999, filters: 1000, one_in: 1 }),
    ("no shim, no offloads", Subject::NoShim { has_offloads: false }),
    ("no shim", Subject::NoShim { has_offloads: true }),
];

/// Rows whose ratios are printed.
const RATIOS: [(usize, usize); 5] = [(0, 1), (2, 0), (3, 0), (1, 4), (1, 5)];

fn program() -> TinyProgram {
    let push = |address| Instruction::new(Operation::Push, address, 0, 0);
    let repr = Repr::new(WordSize::Bits32, Addressing::Stack { pointer: 0 }, 7);
    let bytes = repr.packet(&[push(0), push(0x4002), push(0xb000)], &[0; PROGRAM_LEN - 24], &[]);
    TinyProgram::decode(&Packet::new_checked(&bytes[..]).expect("it is a program"))
}

fn shim(first: u16, filters: u16, one_in: u32) -> Shim {
    let (mut shim, program) = (Shim::new(MTU), program());
    for port in first..first + filters {
        let filter = PacketFilter { destination_port: Some(port), ..PacketFilter::default() };
        shim.add_tpp(filter, &program, one_in, 0).expect("they are few");
    }
    shim.expect_tpp(PacketFilter::default(), &program).expect("it is one");
    shim
}

/// The shim of a host, in a thread.
struct RunningShim {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<(Shim, RelayCounts), PortError>>,
}

impl RunningShim {
    fn start(host: &Namespace, shim: Shim) -> Result<RunningShim, PortError> {
        let opened = host.enter(|| InterposedPorts::open("eth0", "tpp0", PROGRAM_LEN)).expect("a namespace");
        let InterposedPorts { host, wire, frames, hidden, .. } = opened?;
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut relay = ShimRelay::new(Box::new(host), Box::new(wire), frames, shim, 1);
            let ended = relay.run(&flag, drop);
            drop(hidden);
            ended.map(|()| relay.close())
        });
        Ok(RunningShim { stop, thread })
    }

    fn stop(self) -> (Shim, RelayCounts) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("no panic").expect("the ports work")
    }
}

/// Returns the rate of a stream in Mbit/s.
fn stream(hosts: &[Namespace; 2]) -> f64 {
    let address = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), PORT);
    let transfer = hosts[0].transfer_stream(&hosts[1], address, TIME, TIMEOUT).expect("a stream");
    assert!(transfer.is_intact, "the bytes that were sent arrive");
    transfer.bytes as f64 * 8e-6 / transfer.seconds
}

fn measure(hosts: &[Namespace; 2], subject: Subject) -> Result<f64, PortError> {
    match subject {
        Subject::Shims { first, filters, one_in } => {
            let [sender, receiver] =
                [0, 1].map(|host: usize| RunningShim::start(&hosts[host], shim(first, filters, one_in)));
            let (sender, receiver) = (sender?, receiver?);
            let rate = stream(hosts);
            let ((sender, _), (receiver, _)) = (sender.stop(), receiver.stop());
            let number = usize::from(PORT - first);
            let counts = sender.filter_counts(number).expect("it was added");
            assert!(counts.matched > 0 && counts.too_long == 0, "{counts:?}");
            let expected = if one_in == 1 { counts.matched } else { 0 };
            assert_eq!(counts.inserted, expected);
            assert_eq!(receiver.receipt_counts().collected > 0, one_in == 1);
            Ok(rate)
        }
        Subject::NoShim { has_offloads } => {
            let off = hosts.each_ref().map(|host| (!has_offloads).then(|| host.turn_off_offloads("eth0")));
            hosts.iter().for_each(|host| host.set_mtu("eth0", (MTU - PROGRAM_LEN) as u32).expect("an MTU"));
            let rate = stream(hosts);
            hosts.iter().for_each(|host| host.set_mtu("eth0", MTU as u32).expect("an MTU"));
            drop(off);
            Ok(rate)
        }
    }
}

fn hosts() -> Result<[Namespace; 2], NamespaceError> {
    let hosts = [Namespace::new("h1")?, Namespace::new("h2")?];
    veth(&hosts[0], "eth0", &hosts[1], "eth0")?;
    for (host, last) in hosts.iter().zip(1..) {
        host.disable_ipv6()?;
        host.add_address("eth0", [10, 0, 0, last].into(), 24)?;
        host.set_up("eth0")?;
    }
    hosts.iter().try_for_each(|host| host.wait_for_link("eth0", Duration::from_secs(1)).map(drop))?;
    Ok(hosts)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let hosts = match hosts() {
        Ok(hosts) => hosts,
        Err(error) => return println!("skipped: {error}"),
    };
    let mut rates = vec![Vec::new(); SUBJECTS.len()];
    for round in 0..=ROUNDS {
        for ((_, subject), rates) in SUBJECTS.iter().zip(&mut rates) {
            match measure(&hosts, *subject) {
                // The first round warms up.
                Ok(_) if round == 0 => {}
                Ok(rate) => rates.push(rate),
                Err(error) => return println!("skipped: {error}"),
            }
        }
    }
    // Segments of TCP with timestamps.
    let segment = (MTU - PROGRAM_LEN - 52) as f64;
    println!("{:<38} {:>8} {:>12}", "stream", "Mbit/s", "segments/s");
    for ((name, _), rates) in SUBJECTS.iter().zip(&rates) {
        let rate = median(rates.clone());
        println!("{name:<38} {rate:>8.0} {:>12.0}", rate * 1e6 / 8.0 / segment);
    }
    for (of, to) in RATIOS {
        let ratio = median(rates[of].iter().zip(&rates[to]).map(|(of, to)| of / to).collect());
        println!("{} / {}: {ratio:.3}", SUBJECTS[of].0, SUBJECTS[to].0);
    }
}
