//! `cargo xtask clients`: third-party controllers drive a switch.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The output of `cargo xtask clients --help` below the first line.
pub const HELP: &str = "\
Usage: cargo xtask clients [OPTIONS] [CLIENT...]

Starts `triplane run --p4runtime` with four TAP ports in a network namespace of its own, once for each client, and lets
the client's checks run against it: a line a check, totals at the end. Fails if any check failed. Without CLIENTs, all
run. Needs root, Python 3 with `venv`, and PyPI the first time; without them it is skipped, and says so.

Clients:
  shell   p4runtime-shell
  finsy   finsy
  ptf     ptf with scapy, writing through the p4runtime package

Options:
  --triplane FILE   The command to test [default: what `cargo build --release` made]

Environment:
  TRIPLANE_NO_SKIP=1   What would be skipped fails instead. CI sets it.
";

/// A client: its name, the packages that pip installs for it, and the environment variables that it requires.
struct Client {
    name: &'static str,
    packages: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

/// The clients, each with an environment of its own: shell and finsy need different versions of protobuf.
const CLIENTS: [Client; 3] = [
    Client { name: "shell", packages: &["p4runtime-shell==0.0.6"], environment: &[PURE_PYTHON] },
    Client { name: "finsy", packages: &["finsy==0.30.0"], environment: &[] },
    Client {
        name: "ptf",
        packages: &["ptf==0.12.0", "scapy==2.8.0", "p4runtime==1.4.1", "protobuf==3.20.3"],
        environment: &[PURE_PYTHON],
    },
];

/// The setting for generated code of older versions, which protobuf's own extension refuses.
const PURE_PYTHON: (&str, &str) = ("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python");

/// Number of ports of the switch.
const PORTS: u32 = 4;
/// Maximum time for the checks of one client.
const LIMIT: Duration = Duration::from_secs(180);
/// Maximum time until the server listens.
const START: Duration = Duration::from_secs(20);

/// The argument behind which this chore runs inside the namespace.
const INSIDE: &str = "--inside";

/// Runs the clients' checks. False if any failed.
pub fn run(arguments: &[String]) -> Result<bool> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::root().join("target"), PathBuf::from);
    let mut triplane = target.join("release/triplane");
    let (mut inside, mut chosen) = (false, Vec::new());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            INSIDE => inside = true,
            "--triplane" => triplane = rest.next().context("--triplane needs a file")?.into(),
            name => match CLIENTS.iter().find(|client| client.name == name) {
                Some(client) => chosen.push(client),
                None => bail!("there is no client `{name}`; the clients are shell, finsy, ptf"),
            },
        }
    }
    if chosen.is_empty() {
        chosen.extend(&CLIENTS);
    }
    if !triplane.exists() {
        bail!("{} is missing: run `cargo build --release` first, or name another with --triplane", triplane.display());
    }
    let work = target.join("clients");
    fs::create_dir_all(&work).with_context(|| format!("cannot make {}", work.display()))?;
    if inside {
        return all(&chosen, &triplane, &work);
    }
    for client in &chosen {
        if let Err(error) = environment(client, &work) {
            return skip(&format!("{}: {error:#}", client.name));
        }
    }
    // The TAP devices are visible in this namespace only, and are removed with it.
    let status = Command::new("unshare")
        .args(["--net", "--"])
        .arg(std::env::current_exe().context("this program has no path")?)
        .args(["clients", INSIDE, "--triplane"])
        .arg(&triplane)
        .args(chosen.iter().map(|client| client.name))
        .status();
    match status {
        Ok(status) => match status.code() {
            Some(0) => Ok(true),
            Some(3) => skip("no network namespace can be made here; it needs root"),
            _ => Ok(false),
        },
        Err(error) => skip(&format!("`unshare` does not run: {error}")),
    }
}

/// Reports clients that cannot be run. This is a failure only if `TRIPLANE_NO_SKIP` is `1`.
fn skip(why: &str) -> Result<bool> {
    let strict = std::env::var_os("TRIPLANE_NO_SKIP").is_some_and(|value| value == "1");
    println!("{}: {why}", if strict { "FAILED" } else { "skipped" });
    println!("0 passed, {} failed", usize::from(strict));
    Ok(!strict)
}

/// A virtual environment with the client's packages, made the first time.
fn environment(client: &Client, work: &Path) -> Result<()> {
    let (home, stamp) = (work.join(client.name), client.packages.join("\n"));
    if fs::read_to_string(home.join("packages")).is_ok_and(|made| made == stamp) {
        return Ok(());
    }
    let made = Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home).status().context("python3")?;
    if !made.success() {
        bail!("`python3 -m venv` failed");
    }
    let pip = home.join("bin/pip");
    let mut install = Command::new(&pip);
    install.args(["install", "--quiet", "--disable-pip-version-check", "--retries", "5"]).args(client.packages);
    if !install.status().context("pip")?.success() {
        bail!("pip cannot install {}", client.packages.join(", "));
    }
    fs::write(home.join("packages"), stamp).context("cannot note what was installed")
}

fn all(chosen: &[&Client], triplane: &Path, work: &Path) -> Result<bool> {
    // Devices of this namespace send nothing of their own accord.
    let _ = fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    let up = Command::new("ip").args(["link", "set", "lo", "up"]).status();
    if !up.is_ok_and(|status| status.success()) {
        std::process::exit(3);
    }
    let (mut passed, mut failed) = (0, 0);
    for client in chosen {
        println!("\n=== {}", client.packages.join(", "));
        let (good, bad) = one(client, triplane, work).with_context(|| client.name.to_owned())?;
        passed += good;
        failed += bad;
    }
    println!("\n{passed} passed, {failed} failed");
    Ok(failed == 0 && passed > 0)
}

/// Ends a server however its client ends.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Checks that passed and failed. A client that dies counts as one that failed.
fn one(client: &Client, triplane: &Path, work: &Path) -> Result<(usize, usize)> {
    let sources = crate::root().join("crates/xtask/clients");
    let program = crate::root().join("crates/p4runtime_server/tests/p4/every.p4");
    let p4info = work.join("every.txtpb");
    let text = Command::new(triplane).arg("p4info").arg(&program).output().context("triplane p4info")?;
    fs::write(&p4info, text.stdout).context("cannot write the P4Info")?;

    let device = |port: u32| format!("p4c{port}");
    let mut command = Command::new(triplane);
    command.arg("run").arg(&program).args(["--p4runtime", "127.0.0.1:0", "--duration", &LIMIT.as_secs().to_string()]);
    for port in 1..=PORTS {
        command.arg("--port").arg(format!("{port}=tap:{}", device(port)));
    }
    let log_path = work.join(format!("{}.log", client.name));
    let log = fs::File::create(&log_path).context("cannot make a log")?;
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let mut server = Server(command.spawn().context("triplane run")?);
    let begun = Instant::now();
    let address = loop {
        let ended = server.0.try_wait()?;
        let log = fs::read_to_string(&log_path).unwrap_or_default();
        if let Some(address) = served_address(&log) {
            break address.to_owned();
        }
        if ended.is_some() || begun.elapsed() > START {
            bail!("the server does not listen: {}", log.trim());
        }
        std::thread::sleep(Duration::from_millis(50));
    };

    let bin = work.join(client.name).join("bin");
    let mut checks = if client.name == "ptf" {
        let mut ptf = Command::new(bin.join("ptf"));
        ptf.arg("--test-dir").arg(sources.join("ptf")).current_dir(work);
        for port in 1..=PORTS {
            ptf.arg("--interface").arg(format!("{port}@{}", device(port)));
        }
        let (p4info, program) = (p4info.display(), program.display());
        ptf.arg(format!("--test-params=address='{address}';p4info='{p4info}';program='{program}'"));
        ptf
    } else {
        let script = if client.name == "finsy" { "finsy_checks.py" } else { "shell.py" };
        let mut python = Command::new(bin.join("python"));
        python.arg("-u").arg(sources.join(script)).arg(&address).arg(&p4info).arg(&program);
        python.args((1..=PORTS).map(|port| format!("{port}={}", device(port))));
        python
    };
    checks.env("PYTHONDONTWRITEBYTECODE", "1").envs(client.environment.iter().copied());
    let ptf = client.name == "ptf";
    // ptf reports the results of its tests on the other stream.
    let (stdout, stderr) = if ptf { (Stdio::inherit(), Stdio::piped()) } else { (Stdio::piped(), Stdio::inherit()) };
    let mut checks = Server(checks.stdin(Stdio::null()).stdout(stdout).stderr(stderr).spawn().context("python")?);
    let output: Box<dyn std::io::Read> = match (checks.0.stdout.take(), checks.0.stderr.take()) {
        (Some(stdout), _) => Box::new(stdout),
        (_, Some(stderr)) => Box::new(stderr),
        _ => bail!("the client has no output"),
    };
    watch(checks.0.id());
    let (mut passed, mut failed) = (0, 0);
    for line in BufReader::new(output).lines() {
        let line = line?;
        // Some clients print every step.
        if ptf || line.starts_with("ok      ") || line.starts_with("FAILED  ") {
            println!("{line}");
        }
        passed += usize::from(line.starts_with("ok      ") || (ptf && line.ends_with("... ok")));
        failed += usize::from(
            line.starts_with("FAILED  ") || (ptf && (line.ends_with("... FAIL") || line.ends_with("... ERROR"))),
        );
    }
    let status = checks.0.wait()?;
    if !status.success() && failed == 0 {
        println!("FAILED  {}: {status}", client.name);
        failed += 1;
    }
    Ok((passed, failed))
}

/// Ends a client that takes too long, so that a hang counts as a failure.
fn watch(process: u32) {
    std::thread::spawn(move || {
        std::thread::sleep(LIMIT);
        let _ = Command::new("kill").arg(process.to_string()).status();
    });
}

/// Returns the address at which the log of a switch says that it serves P4Runtime, once the line is complete.
fn served_address(log: &str) -> Option<&str> {
    let (_, after) = log.split_once("P4Runtime on ")?;
    after.split_once(',').map(|(address, _)| address)
}

#[cfg(test)]
mod tests {
    use super::served_address;

    #[test]
    fn the_address_is_read_from_the_log() {
        let log = "note\nP4Runtime on 127.0.0.1:43123, without TLS, for this machine only, device 0\n";
        assert_eq!(served_address(log), Some("127.0.0.1:43123"));
        assert_eq!(served_address("P4Runtime on 127.0.0.1:431"), None);
    }
}
