//! Frames per second that a bare forwarder carries between two veths, through AF_PACKET and through AF_XDP.
//!
//! ```text
//! cargo run --release -p ports --example xdp_forward -- [SECONDS A RUN] [RUNS] [FRAME BYTES]
//!
//! flood eth0 ──veth── r1 [receive ─ send] r2 ──veth── eth0 sink
//! ```
//!
//! The kernel floods one end without a pause, from a core of its own, the forwarder polls on another, and a counting
//! program sits at the other end. Nothing looks into the frames, so this is the most that a switch on these ports can
//! do. The kinds take turns, so that a busy machine is busy for all of them; what is printed is each one's median.
//! Needs root.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ports::load::{Flood, Sink, Vary};
use ports::namespace::{Namespace, Offload, veth};
use ports::{AfPacketPort, Frame, Port, PortError, Received, XdpPort, XdpSettings, wait};

/// The driver of a forwarder, and its handling of frames.
#[derive(Clone, Copy)]
enum DriverKind {
    AfPacket,
    XdpCopied,
    XdpInPlace,
    XdpGeneric,
}

const KINDS: [(DriverKind, &str); 4] = [
    (DriverKind::AfPacket, "AF_PACKET"),
    (DriverKind::XdpGeneric, "AF_XDP, generic mode, in place"),
    (DriverKind::XdpCopied, "AF_XDP, frames copied to vectors"),
    (DriverKind::XdpInPlace, "AF_XDP, frames in place"),
];

type Ports = [Box<dyn Port>; 2];

impl DriverKind {
    fn open(self) -> Result<Ports, PortError> {
        if let DriverKind::AfPacket = self {
            return Ok([Box::new(AfPacketPort::open("r1")?), Box::new(AfPacketPort::open("r2")?)]);
        }
        let settings = XdpSettings { generic: matches!(self, DriverKind::XdpGeneric), ..XdpSettings::default() };
        let mut ports = XdpPort::open_together(&["r1", "r2"], settings)?.into_iter();
        let mut next = || Box::new(ports.next().expect("two")) as Box<dyn Port>;
        Ok([next(), next()])
    }

    /// Forwards incoming frames until `stop` is set.
    fn forward(self, [one, two]: &mut Ports, stop: &AtomicBool) -> Result<(), PortError> {
        let mut copies: Vec<Received> = Vec::new();
        let mut frames: Vec<Frame> = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let count = match self {
                DriverKind::XdpInPlace | DriverKind::XdpGeneric => {
                    let count = one.receive_frames(&mut frames, 64)?;
                    for frame in frames.drain(..) {
                        two.send_frame(frame)?;
                    }
                    count
                }
                DriverKind::AfPacket | DriverKind::XdpCopied => {
                    let count = one.receive(&mut copies, 64)?;
                    for received in copies.drain(..) {
                        two.send(&received.data)?;
                    }
                    count
                }
            };
            two.flush()?;
            if count == 0 {
                wait(&[one.poll_fd().unwrap_or(-1)], Duration::from_millis(1)).ok();
            }
        }
        Ok(())
    }
}

/// The result of one run.
#[derive(Clone, Copy)]
struct Run {
    arrived_mpps: f64,
    offered_mpps: f64,
    user_ns: f64,
    system_ns: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let seconds: f64 = arguments.next().map_or(Ok(1.0), |text| text.parse())?;
    let runs: usize = arguments.next().map_or(Ok(7), |text| text.parse())?;
    let frame_len: usize = arguments.next().map_or(Ok(60), |text| text.parse())?;

    let router = Namespace::new_own()?;
    let (source, sink) = (Namespace::new("source")?, Namespace::new("sink")?);
    for (host, end) in [(&source, "r1"), (&sink, "r2")] {
        host.disable_ipv6()?;
        veth(host, "eth0", &router, end)?;
        host.set_up("eth0")?;
        router.set_up(end)?;
        host.wait_for_link("eth0", Duration::from_secs(1))?;
        router.wait_for_link(end, Duration::from_secs(1))?;
    }
    // The flood's frames have no socket buffers, and r1 takes such only so.
    router.turn_on("r1", Offload::Receive)?;
    let counter = sink.enter(|| Sink::open("eth0"))??;
    // A type for experiments, and addresses that change.
    let mut frame = vec![2; frame_len.max(18)];
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    let vary = Vary { offset: 14, first: 0, count: 1024, balance: None };

    let flood = source.enter(|| Flood::new("eth0", &frame, Some(vary)))??;
    std::thread::scope(|scope| {
        // In calls that outlast the runs: between two of them nothing is sent for some 20 ms.
        scope.spawn(|| source.enter(|| while let Ok(()) = flood.send(i32::MAX.cast_unsigned()) {}));
        println!("frames of {} bytes", frame.len());
        let done = compare(&flood, &counter, seconds, runs);
        // The flood ends with the process.
        std::process::exit(match done {
            Ok(()) => 0,
            Err(error) => {
                eprintln!("error: {error}");
                1
            }
        })
    })
}

/// Runs the kinds in turn and prints their results.
fn compare(flood: &Flood, sink: &Sink, seconds: f64, runs: usize) -> Result<(), Box<dyn Error>> {
    let mut results = vec![Vec::new(); KINDS.len()];
    for _ in 0..runs {
        for (results, (kind, _)) in results.iter_mut().zip(KINDS) {
            results.push(run(kind, flood, sink, seconds)?);
        }
    }
    println!("{runs} runs of {seconds} s each, medians");
    let mut base = None;
    for (results, (_, name)) in results.iter_mut().zip(KINDS) {
        results.sort_by(|a, b| a.arrived_mpps.total_cmp(&b.arrived_mpps));
        let run = results[results.len() / 2];
        let base = *base.get_or_insert(run.arrived_mpps);
        println!(
            "{name:34} {:6.3} Mpps  {:5.2}x  (offered {:5.2}; a frame costs {:4.0} ns here, {:4.0} ns in the kernel)",
            run.arrived_mpps,
            run.arrived_mpps / base,
            run.offered_mpps,
            run.user_ns,
            run.system_ns
        );
    }
    Ok(())
}

fn run(kind: DriverKind, flood: &Flood, sink: &Sink, seconds: f64) -> Result<Run, Box<dyn Error>> {
    let mut ports = kind.open()?;
    let stop = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        let forwarding = scope.spawn(|| {
            kind.forward(&mut ports, &stop)?;
            Ok::<_, PortError>(thread_cpu())
        });
        std::thread::sleep(Duration::from_millis(200));
        let (started, before) = (Instant::now(), (sink.arrived(), flood.offered()));
        std::thread::sleep(Duration::from_secs_f64(seconds));
        let (elapsed, after) = (started.elapsed().as_secs_f64(), (sink.arrived(), flood.offered()));
        stop.store(true, Ordering::Relaxed);
        (before, after, elapsed, forwarding.join().expect("the forwarder does not panic"))
    });
    let (before, after, elapsed, cpu) = result;
    let (user, system) = cpu?;
    let sent = ports[1].stats().tx_packets.max(1) as f64;
    Ok(Run {
        arrived_mpps: (after.0?.frames - before.0?.frames) as f64 / elapsed / 1e6,
        offered_mpps: (after.1? - before.1?) as f64 / elapsed / 1e6,
        user_ns: user.as_nanos() as f64 / sent,
        system_ns: system.as_nanos() as f64 / sent,
    })
}

/// Returns the time the calling thread has spent in this program and in the kernel.
fn thread_cpu() -> (Duration, Duration) {
    // SAFETY: a struct of integers, for which zero bytes are a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the struct lives through the call.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    let time =
        |time: libc::timeval| Duration::new(time.tv_sec.unsigned_abs(), time.tv_usec.unsigned_abs() as u32 * 1000);
    (time(usage.ru_utime), time(usage.ru_stime))
}
