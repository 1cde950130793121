//! Processes of a benchmark: bound to a processor, started until they are ready, and ended when their value is dropped.

use std::error::Error;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ports::namespace::Namespace;

/// Environment variable that is set in the bound process.
const PINNED: &str = "TRIPLANE_BENCH_PINNED";

/// Whether processes can be bound to processors here.
pub fn can_pin() -> bool {
    std::thread::available_parallelism().is_ok_and(|count| count.get() >= 2) || std::env::var_os(PINNED).is_some()
}

/// Runs this program again on the first processor, unless it is bound to it or there is only one. Returns whether it
/// did.
pub fn ran_pinned() -> Result<bool, Box<dyn Error>> {
    if std::env::var_os(PINNED).is_some() || !can_pin() {
        return Ok(false);
    }
    let own = std::env::current_exe()?;
    let mut again = Command::new("setpriv");
    again.args(["--pdeathsig", "KILL", "taskset", "-c", "0"]).arg(own).args(std::env::args().skip(1)).env(PINNED, "1");
    match again.status() {
        Ok(status) if status.success() => Ok(true),
        Ok(status) => Err(format!("the benchmark ended with {status}").into()),
        Err(error) => Err(format!("`setpriv` or `taskset` (util-linux) cannot be run: {error}").into()),
    }
}

/// Returns a command in a namespace, bound to a processor if `taskset` can do so. It ends with this process.
pub fn pinned(namespace: &Namespace, processor: &str, program: &Path) -> Result<Command, Box<dyn Error>> {
    if !can_pin() {
        return Ok(namespace.command(program)?);
    }
    let mut command = namespace.command("setpriv")?;
    command.args(["--pdeathsig", "KILL", "taskset", "-c", processor]).arg(program);
    Ok(command)
}

/// A running process. It is killed when this value is dropped.
pub struct BenchProcess(Child);

impl BenchProcess {
    /// Starts a process and waits until it reports on its standard error that it is ready.
    ///
    /// # Errors
    /// If it cannot be started, or ends before it is ready.
    pub fn start(command: &mut Command, ready: &str) -> Result<BenchProcess, Box<dyn Error>> {
        let mut process = BenchProcess(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?);
        let stderr = process.0.stderr.take().expect("it was piped");
        let mut lines = BufReader::new(stderr).lines();
        let mut said = String::new();
        for line in lines.by_ref() {
            let line = line?;
            said.push_str(&line);
            if line.contains(ready) {
                // The rest of the output is ignored, but must be read, or the process would block on a full pipe.
                std::thread::spawn(move || lines.count());
                return Ok(process);
            }
        }
        process.0.wait()?;
        Err(format!("it ended before it was ready: {said}").into())
    }

    /// Returns the processor time that the process has used, summed over its threads; `None` if it has ended.
    pub fn cpu(&self) -> Option<Duration> {
        cpu(self.0.id())
    }

    /// Ends the process with SIGINT and returns its output.
    ///
    /// # Errors
    /// If `kill` cannot be run, or the output cannot be read.
    pub fn stop(mut self) -> Result<String, Box<dyn Error>> {
        Command::new("kill").args(["-INT", &self.0.id().to_string()]).status()?;
        let mut text = String::new();
        if let Some(mut out) = self.0.stdout.take() {
            out.read_to_string(&mut text)?;
        }
        self.0.wait()?;
        Ok(text)
    }
}

impl Drop for BenchProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the processor time of a process, summed over its threads.
pub fn cpu(process: u32) -> Option<Duration> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let of_thread = |thread: std::io::Result<std::fs::DirEntry>| -> Option<u64> {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse().ok()
    };
    Some(Duration::from_nanos(threads.filter_map(of_thread).sum()))
}
