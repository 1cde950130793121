//! Runs the project's own network: `crates/xtask/mininet/network.py`.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use super::environment::Environment;

/// Maximum duration of the network, in seconds.
const LIMIT_S: &str = "300";

/// Runs the network. Returns false if a check failed.
pub fn run(environment: &Environment) -> Result<bool> {
    let folder = environment.work.join("network");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let root = crate::root();
    let status = Command::new("timeout")
        .args(["--kill-after=10", LIMIT_S, "python3"])
        .arg(root.join("crates/xtask/mininet/network.py"))
        .arg(&folder)
        .arg(root.join("examples/ecn/ecn.p4"))
        .env("PATH", environment.path())
        .env("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")
        .status()
        .context("python3")?;
    Ok(status.success())
}
