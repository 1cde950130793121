//! Frames per second that two AF_PACKET ports forward from one veth pair to another, and their cost.
//!
//! ```text
//! cargo run --release -p ports --example forward_rate -- [SECONDS] [FRAME BYTES]
//!
//! source eth0 ──veth── r1 [receive ─ send] r2 ──veth── eth0 sink
//! ```
//!
//! The source sends as fast as possible from one thread, the forwarder polls in another, and the sink's kernel
//! counts. Nothing looks into the frames, so this is the most that a switch on these ports can do. Sending over a veth
//! includes what the receiver's side does with the frame, so most of the time is the kernel's.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ports::namespace::{Namespace, veth};
use ports::{AfPacketPort, Port, wait};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let seconds: u64 = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let frame_len: usize = arguments.next().map_or(Ok(60), |text| text.parse())?;

    let router = Namespace::new_user()?;
    let (source, sink) = (Namespace::new("source")?, Namespace::new("sink")?);
    for (host, end) in [(&source, "r1"), (&sink, "r2")] {
        host.disable_ipv6()?;
        veth(host, "eth0", &router, end)?;
        host.set_up("eth0")?;
        router.set_up(end)?;
        host.wait_for_link("eth0", Duration::from_secs(1))?;
        router.wait_for_link(end, Duration::from_secs(1))?;
    }
    let mut from_source = source.enter(|| AfPacketPort::open("eth0"))??;
    let (mut one, mut two) = (AfPacketPort::open("r1")?, AfPacketPort::open("r2")?);
    // A type for experiments, which the sink's stack drops at once.
    let mut frame = vec![2; frame_len.max(14)];
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);

    let (sending, forwarding) = (AtomicBool::new(true), AtomicBool::new(true));
    let started = Instant::now();
    let (sent, cpu) = std::thread::scope(|scope| {
        let source = scope.spawn(|| {
            while sending.load(Ordering::Relaxed) {
                for _ in 0..64 {
                    from_source.send(&frame)?;
                }
                from_source.flush()?;
            }
            Ok::<_, ports::PortError>(from_source.stats().tx_packets)
        });
        let forwarder = scope.spawn(|| {
            let mut batch = Vec::new();
            while forwarding.load(Ordering::Relaxed) {
                if one.receive(&mut batch, 64)? == 0 {
                    wait(&[one.poll_fd().unwrap_or(-1)], Duration::from_millis(10)).ok();
                }
                for received in batch.drain(..) {
                    two.send(&received.data)?;
                }
                two.flush()?;
            }
            Ok::<_, ports::PortError>(thread_cpu())
        });
        std::thread::sleep(Duration::from_secs(seconds));
        sending.store(false, Ordering::Relaxed);
        let sent = source.join().expect("the source does not panic")?;
        forwarding.store(false, Ordering::Relaxed);
        let cpu = forwarder.join().expect("the forwarder does not panic")?;
        Ok::<_, ports::PortError>((sent, cpu))
    })?;
    let forwarded = two.stats().tx_packets;
    let elapsed = started.elapsed().as_secs_f64();
    let arrived = received_by_kernel(&sink)?;
    let rate = |frames: u64| frames as f64 / elapsed / 1e6;
    let (user, system) = cpu;
    let cost = |time: Duration| time.as_nanos() as f64 / forwarded.max(1) as f64;
    println!("frames of {} bytes, {elapsed:.1} s", frame.len());
    println!("sent       {:6.3} Mpps", rate(sent));
    println!("forwarded  {:6.3} Mpps ({} lost in a full ring)", rate(forwarded), one.stats().rx_dropped);
    println!("arrived    {:6.3} Mpps", rate(arrived));
    println!("cost       {:6.0} ns a frame in this program, {:.0} ns in the kernel", cost(user), cost(system));
    Ok(())
}

/// Returns the number of frames that the sink's eth0 has received, from its kernel's counter.
fn received_by_kernel(sink: &Namespace) -> Result<u64, Box<dyn Error>> {
    let table = sink.enter(|| std::fs::read_to_string("/proc/thread-self/net/dev"))??;
    let line = table.lines().find_map(|line| line.trim().strip_prefix("eth0:")).ok_or("the sink has no eth0")?;
    Ok(line.split_whitespace().nth(1).ok_or("no packet count")?.parse()?)
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
