//! Virtual environments for Python.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Creates the virtual environment `home` with these packages, unless it exists.
///
/// # Errors
/// If Python has no `venv`, or a package cannot be installed.
pub fn install(home: &Path, packages: &[&str]) -> Result<()> {
    let stamp = packages.join("\n");
    if fs::read_to_string(home.join("packages")).is_ok_and(|made| made == stamp) {
        return Ok(());
    }
    let made = Command::new("python3").args(["-m", "venv", "--clear"]).arg(home).status().context("python3")?;
    if !made.success() {
        bail!("`python3 -m venv` failed");
    }
    let mut install = Command::new(home.join("bin/pip"));
    install.args(["install", "--quiet", "--disable-pip-version-check", "--retries", "5"]).args(packages);
    if !install.status().context("pip")?.success() {
        bail!("pip failed to install {}", packages.join(", "));
    }
    fs::write(home.join("packages"), stamp).context("cannot record what was installed")
}
