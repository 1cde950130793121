//! A steady load: a flood in its own process, which reports on request how much it has offered.
//!
//! The kernel generates the frames in one call that lasts as long as the process. Repeated calls would leave a gap of
//! some 20 ms between any two. A forwarder would idle in the gap, and the load before and after it would exceed the
//! mean.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use crate::network::{self, Network};

/// First argument of a process that runs a load; the length of its frames and its share of 64 follow.
pub const LOAD: &str = "load";

/// Maximum time that the kernel may take to begin.
const TEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Runs the load's process: floods, and answers each line with the number of frames offered so far and the nanoseconds
/// since it began. The process and its flood end when its input is closed.
pub fn load() -> Result<(), Box<dyn Error>> {
    let argument = |at| std::env::args().nth(at).and_then(|text| text.parse().ok()).ok_or("a number is missing");
    let flood = network::flood_here(argument(2)?, argument(3)? as u32)?;
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
    /// Starts a load on a processor, or on those of this process, and waits until frames are offered: `share` of each
    /// 64 that the kernel could send.
    pub fn start(network: &Network, len: usize, share: u32, processor: Option<&str>) -> Result<Load, Box<dyn Error>> {
        let own = std::env::current_exe()?;
        let mut command = match processor {
            Some(processor) => {
                let mut command = network.source.command("taskset")?;
                command.args(["-c", processor]).arg(&own);
                command
            }
            None => network.source.command(&own)?,
        };
        command.args([LOAD, &len.to_string(), &share.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
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
