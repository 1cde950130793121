//! A steady load, and the rate that is forwarded of it. The load is a flood in its own process, which reports on
//! request how much it has offered.
//!
//! The kernel generates the frames in one call that lasts as long as the process. Repeated calls would leave a gap of
//! some 20 ms between any two. A forwarder would idle in the gap, and the load before and after it would exceed the
//! mean.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use ports::load::{Flood, Sink};

/// First argument of a process that runs a load.
pub const LOAD: &str = "load";

/// Maximum time that the kernel may take to begin.
const TEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs the load's process: floods, and answers each line with the number of frames offered so far and the nanoseconds
/// since it began. The process and its flood end when its input is closed.
pub fn run(flood: &Flood) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| while let Ok(()) = flood.send(i32::MAX.cast_unsigned()) {});
        for line in std::io::stdin().lines() {
            let (Ok(_), Ok(offered)) = (line, flood.offered()) else { break };
            println!("{offered} {}", began.elapsed().as_nanos());
        }
        std::process::exit(0)
    })
}

/// A running load. It stops when this value is dropped.
pub struct Load {
    process: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// The number of frames that a load had offered at a time.
#[derive(Clone, Copy, Debug)]
pub struct Offered {
    frames: u64,
    at_ns: u64,
}

impl Offered {
    /// Returns the frames a second since an earlier time, in millions.
    pub fn rate_since(self, earlier: Offered) -> f64 {
        (self.frames - earlier.frames) as f64 * 1e3 / (self.at_ns - earlier.at_ns).max(1) as f64
    }
}

impl Load {
    /// Starts the process of a load, and waits until frames are offered.
    pub fn start(command: &mut Command) -> Result<Load, Box<dyn Error>> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let ask = process.stdin.take().expect("it is piped");
        let answers = BufReader::new(process.stdout.take().expect("it is piped"));
        let mut load = Load { process, ask, answers };
        let deadline = Instant::now() + TEST_TIMEOUT;
        while load.offered()?.frames == 0 {
            if Instant::now() > deadline {
                return Err("the kernel sends nothing".into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(load)
    }

    /// Returns the number of frames offered so far.
    pub fn offered(&mut self) -> Result<Offered, Box<dyn Error>> {
        writeln!(self.ask)?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let mut numbers = line.split_whitespace().map(str::parse);
        let (Some(Ok(frames)), Some(Ok(at_ns))) = (numbers.next(), numbers.next()) else {
            return Err("the load has ended".into());
        };
        Ok(Offered { frames, at_ns })
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Frames a second, in millions.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    pub offered: f64,
    pub arrived: f64,
    /// Processor time that the forwarder needed for each frame, in nanoseconds.
    pub cpu_ns: Option<f64>,
}

/// Time for which the load runs before counting begins.
const SETTLE: Duration = Duration::from_millis(150);

/// Lets a load run for a time and counts the frames that arrive. `cpu` returns the processor time of the forwarder.
pub fn rate(
    load: &mut Load,
    sink: &Sink,
    seconds: f64,
    cpu: impl Fn() -> Option<Duration>,
) -> Result<Rate, Box<dyn Error>> {
    std::thread::sleep(SETTLE);
    let (started, offered, before, cpu_before) = (Instant::now(), load.offered()?, sink.arrived()?, cpu());
    std::thread::sleep(Duration::from_secs_f64(seconds));
    let (elapsed, offered_after, after, cpu_after) = (started.elapsed(), load.offered()?, sink.arrived()?, cpu());
    let frames = (after.frames - before.frames) as f64;
    let used = cpu_after.zip(cpu_before).map(|(after, before)| after.saturating_sub(before));
    Ok(Rate {
        offered: offered_after.rate_since(offered),
        arrived: frames / elapsed.as_secs_f64() / 1e6,
        cpu_ns: used.map(|used| used.as_nanos() as f64 / frames.max(1.0)),
    })
}
