//! Runs `cargo xtask clients`: third-party controllers drive a switch.

mod go;
mod python;
mod watchdog;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use watchdog::{KillOnDrop, Watchdog};

/// The output of `cargo xtask clients --help` below the first line.
pub const HELP: &str = "\
Usage: cargo xtask clients [OPTIONS] [CLIENT...]

Starts `triplane run --p4runtime` with four TAP ports in a network namespace of its own, once for each client, and lets
the client's checks run against it. Prints one line per check, then totals. Fails if any check failed. Without CLIENTs,
all run. Needs root, Python 3 with `venv`, Go, and the first time the network; clients that lack something are skipped,
with a line that names it.

Clients:
  shell   p4runtime-shell
  finsy   finsy
  ptf     ptf with scapy, writing through the p4runtime package
  go      a controller in Go on the code that the P4Runtime project generates, release 1.4.1

Options:
  --triplane FILE   The command to test [default: target/release/triplane]
  --go-client DIR   Also run checks of p4runtime-go-client, and its examples, from this checkout

Environment:
  TRIPLANE_NO_SKIP=1   Fail instead of skipping. Set in CI.
";

/// A client: its name, what is printed above its checks, and the language that it is written in.
struct Client {
    name: &'static str,
    title: &'static str,
    language: Language,
}

/// Ways to prepare and run a client.
enum Language {
    /// Python, with packages in a virtual environment of its own.
    Python(python::Packages),
    /// Go, with the module in `clients/go`.
    Go,
    /// The same with a checkout of p4runtime-go-client.
    GoLibrary,
}

const CLIENTS: [Client; 4] = [
    Client { name: "shell", title: "p4runtime-shell", language: Language::Python(python::SHELL) },
    Client { name: "finsy", title: "finsy", language: Language::Python(python::FINSY) },
    Client { name: "ptf", title: "ptf, scapy, p4runtime", language: Language::Python(python::PTF) },
    Client { name: "go", title: "p4runtime in Go", language: Language::Go },
];

/// The client of `--go-client`.
const GO_LIBRARY: Client =
    Client { name: "go-client", title: "p4runtime-go-client in Go, and its examples", language: Language::GoLibrary };

/// Number of ports of the switch.
const PORTS: u32 = 4;
/// Maximum time for the checks of one client.
const LIMIT: Duration = Duration::from_secs(900);
/// Maximum time until the server listens.
const START: Duration = Duration::from_secs(120);

/// Internal flag: this process has been re-executed inside the namespace.
const INSIDE: &str = "--inside";

struct Options {
    triplane: PathBuf,
    /// Directory for everything that clients need or leave.
    work: PathBuf,
    /// Checkout of p4runtime-go-client.
    go_client: Option<PathBuf>,
    inside: bool,
    chosen: Vec<&'static Client>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Options> {
        let target = crate::target();
        let (triplane, work) = (target.join("release/triplane"), target.join("clients"));
        let mut options = Options { triplane, work, go_client: None, inside: false, chosen: Vec::new() };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                INSIDE => options.inside = true,
                "--triplane" => options.triplane = rest.next().context("--triplane requires a file")?.into(),
                "--go-client" => {
                    let directory = rest.next().context("--go-client requires a directory")?;
                    let found = fs::canonicalize(directory).with_context(|| format!("cannot find {directory}"))?;
                    options.go_client = Some(found);
                }
                name => match CLIENTS.iter().find(|client| client.name == name) {
                    Some(client) => options.chosen.push(client),
                    None if options.inside && name == GO_LIBRARY.name => options.chosen.push(&GO_LIBRARY),
                    None => bail!("there is no client `{name}`; the clients are shell, finsy, ptf, go"),
                },
            }
        }
        if !options.inside {
            if options.chosen.is_empty() {
                options.chosen.extend(&CLIENTS);
            }
            options.chosen.extend(options.go_client.is_some().then_some(&GO_LIBRARY));
        }
        Ok(options)
    }
}

/// Runs the clients' checks. Returns false if any failed.
pub fn run(arguments: &[String]) -> Result<bool> {
    let mut options = Options::parse(arguments)?;
    let (triplane, work) = (&options.triplane, &options.work);
    if !triplane.exists() {
        bail!(
            "{} is missing: run `cargo build --release` first, or specify another command with --triplane",
            triplane.display()
        );
    }
    fs::create_dir_all(work).with_context(|| format!("cannot create {}", work.display()))?;
    if options.inside {
        return run_clients(&options);
    }
    let mut good = true;
    let mut prepared = Vec::new();
    for client in std::mem::take(&mut options.chosen) {
        match prepare(client, &options) {
            Ok(()) => prepared.push(client.name),
            Err(error) => good &= crate::skip(&format!("{}: {error:#}", client.name)),
        }
    }
    if prepared.is_empty() {
        println!("0 passed, {} failed", usize::from(!good));
        return Ok(good);
    }
    // The TAP devices are visible in this namespace only, and are removed with it.
    let status = Command::new("unshare")
        .args(["--net", "--"])
        .arg(std::env::current_exe().context("cannot find the path of this executable")?)
        .args(["clients", INSIDE, "--triplane"])
        .arg(&options.triplane)
        .args(prepared)
        .status();
    match status {
        Ok(status) => match status.code() {
            Some(0) => Ok(good),
            Some(3) => Ok(crate::skip("cannot create a network namespace; run as root")),
            _ => Ok(false),
        },
        Err(error) => Ok(crate::skip(&format!("cannot run `unshare`: {error}"))),
    }
}

/// Installs and builds what a client needs, as far as it is not there.
fn prepare(client: &Client, options: &Options) -> Result<()> {
    match (&client.language, &options.go_client) {
        (Language::Python(packages), _) => packages.install(&options.work.join(client.name)),
        (Language::Go, _) => go::build(&options.work),
        (Language::GoLibrary, Some(checkout)) => go::build_library(checkout, &options.triplane, &options.work),
        (Language::GoLibrary, None) => bail!("--go-client names no checkout"),
    }
}

fn run_clients(options: &Options) -> Result<bool> {
    // Devices of this namespace send nothing of their own accord.
    let _ = fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
    if !up.is_ok_and(|status| status.success()) {
        std::process::exit(3);
    }
    let (mut passed, mut failed) = (0, 0);
    let mut totals = Vec::new();
    for client in &options.chosen {
        println!("\n=== {}", client.title);
        let (good, bad) = run_client(client, options).with_context(|| client.name.to_owned())?;
        totals.push(format!("{} {good} of {}", client.name, good + bad));
        passed += good;
        failed += bad;
    }
    println!("\n{}\n{passed} passed, {failed} failed", totals.join(", "));
    Ok(failed == 0 && passed > 0)
}

/// A running switch, as its clients see it.
struct Testbed {
    /// The process, ended with this value.
    _server: KillOnDrop,
    /// Address of the P4Runtime server.
    address: String,
    program: PathBuf,
    /// P4Info of the program, as text, in the version of P4Runtime that the client is built on.
    p4info: PathBuf,
    /// `NUMBER=DEVICE` of each port.
    ports: Vec<String>,
}

impl Testbed {
    /// Starts a switch for a client, and waits until its server listens.
    fn start(client: &Client, options: &Options) -> Result<Testbed> {
        let (triplane, work) = (&options.triplane, &options.work);
        let program = crate::root().join("crates/p4runtime_server/tests/p4/every.p4");
        let p4info = work.join(format!("{}.p4info.txtpb", client.name));
        let version = match client.language {
            Language::Python(_) => "1.5",
            Language::Go => "1.4",
            // The library is built on a release candidate of 1.4.
            Language::GoLibrary => "1.3",
        };
        write_p4info(triplane, version, &program, &p4info)?;
        let ports = (1..=PORTS).map(|port| format!("{port}=p4c{port}")).collect();
        let mut command = Command::new(triplane);
        command.arg("run");
        match client.language {
            // The examples of the library expect the device ID 0 and a switch that waits for a program.
            Language::GoLibrary => command.args(["--device-id", "0"]),
            _ => command.arg(&program),
        };
        command.args(["--p4runtime", "127.0.0.1:0", "--duration", &LIMIT.as_secs().to_string()]);
        for port in 1..=PORTS {
            command.arg("--port").arg(format!("{port}=tap:p4c{port}"));
        }
        let log_path = work.join(format!("{}.log", client.name));
        let log = fs::File::create(&log_path).context("cannot create the log file")?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let mut server = KillOnDrop(command.spawn().context("triplane run")?);
        let begun = Instant::now();
        let address = loop {
            let ended = server.0.try_wait()?;
            let log = fs::read_to_string(&log_path).unwrap_or_default();
            if let Some(address) = served_address(&log) {
                break address.to_owned();
            }
            if ended.is_some() || begun.elapsed() > START {
                bail!("the server is not listening: {}", log.trim());
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        Ok(Testbed { _server: server, address, program, p4info, ports })
    }
}

/// Writes the P4Info of a program as text, without the fields that clients of a version cannot read.
fn write_p4info(triplane: &Path, version: &str, program: &Path, p4info: &Path) -> Result<()> {
    let mut command = Command::new(triplane);
    command.args(["p4info", "--p4runtime-version", version]).arg(program).arg("-o").arg(p4info);
    let output = command.output().context("triplane p4info")?;
    if !output.status.success() {
        bail!("triplane p4info: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Runs one client and returns the numbers of passed and failed checks. If the client dies without a failed check, that
/// counts as one.
fn run_client(client: &Client, options: &Options) -> Result<(usize, usize)> {
    let testbed = Testbed::start(client, options)?;
    let mut checks = match &client.language {
        Language::Python(packages) => packages.command(&options.work.join(client.name), &testbed),
        Language::Go => go::command(&options.work, &testbed),
        Language::GoLibrary => go::library_command(&options.work, &testbed),
    };
    // ptf reports the results of its tests on stderr.
    let on_stderr = client.name == "ptf";
    let (stdout, stderr) =
        if on_stderr { (Stdio::inherit(), Stdio::piped()) } else { (Stdio::piped(), Stdio::inherit()) };
    let mut checks = KillOnDrop(checks.stdin(Stdio::null()).stdout(stdout).stderr(stderr).spawn().context("client")?);
    let output: Box<dyn Read> = match (checks.0.stdout.take(), checks.0.stderr.take()) {
        (Some(stdout), _) => Box::new(stdout),
        (_, Some(stderr)) => Box::new(stderr),
        _ => bail!("the client has no output"),
    };
    let checks = Watchdog::start(checks, LIMIT);
    let (mut passed, mut failed) = (0, 0);
    for line in BufReader::new(output).lines() {
        let line = line?;
        let result = result_of(&line);
        // Some clients print every step.
        let is_step = match client.language {
            Language::Python(_) => result.is_none() && !on_stderr,
            Language::Go | Language::GoLibrary => line.starts_with("=== "),
        };
        if !is_step {
            println!("{line}");
        }
        passed += usize::from(result == Some(true));
        failed += usize::from(result == Some(false));
    }
    let status = checks.wait()?;
    if !status.success() && failed == 0 {
        println!("FAILED  {}: {status}", client.name);
        failed += 1;
    }
    Ok((passed, failed))
}

/// Returns the result of the check that a line of a client's output reports: of our scripts, of ptf, or of Go's tests.
fn result_of(line: &str) -> Option<bool> {
    let passed = line.starts_with("ok      ") || line.ends_with("... ok") || line.starts_with("--- PASS: ");
    let failed = line.starts_with("FAILED  ")
        || line.ends_with("... FAIL")
        || line.ends_with("... ERROR")
        || line.starts_with("--- FAIL: ");
    (passed || failed).then_some(passed)
}

/// Returns the address at which the log of a switch says that it serves P4Runtime, once the line is complete.
fn served_address(log: &str) -> Option<&str> {
    let (_, after) = log.split_once("P4Runtime on ")?;
    after.split_once(',').map(|(address, _)| address)
}

#[cfg(test)]
mod tests {
    use super::{Options, result_of, served_address};

    #[test]
    fn the_address_is_read_from_the_log() {
        let log = "note\nP4Runtime on 127.0.0.1:43123, without TLS, reachable from this machine only, device 0\n";
        assert_eq!(served_address(log), Some("127.0.0.1:43123"));
        assert_eq!(served_address("P4Runtime on 127.0.0.1:431"), None);
    }

    #[test]
    fn results_of_every_client_are_counted() {
        for line in ["ok      exact", "forwarding.Exact ... ok", "--- PASS: TestExact (0.20s)"] {
            assert_eq!(result_of(line), Some(true), "{line}");
        }
        for line in ["FAILED  exact: no", "forwarding.Exact ... FAIL", "f.E ... ERROR", "--- FAIL: TestExact (0.20s)"] {
            assert_eq!(result_of(line), Some(false), "{line}");
        }
        for line in
            ["=== RUN   TestExact", "    tables_test.go:14: 1 instead of 2", "--- SKIP: TestExact (0.0s)", "PASS"]
        {
            assert_eq!(result_of(line), None, "{line}");
        }
    }

    #[test]
    fn a_checkout_adds_its_client() {
        let names = |arguments: &[&str]| -> Vec<&str> {
            let arguments: Vec<_> = arguments.iter().map(|it| (*it).to_owned()).collect();
            Options::parse(&arguments).expect("valid").chosen.iter().map(|client| client.name).collect()
        };
        assert_eq!(names(&[]), ["shell", "finsy", "ptf", "go"]);
        assert_eq!(names(&["ptf"]), ["ptf"]);
        assert_eq!(names(&["go", "--go-client", "/"]), ["go", "go-client"]);
        assert!(Options::parse(&["go-client".to_owned()]).is_err());
    }
}
