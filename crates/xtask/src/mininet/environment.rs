//! Sets up what Mininet's scripts need: the links to `triplane`, and a Python with Mininet and P4Runtime.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The packages that pip installs beside Debian's `mininet`.
const PACKAGES: [&str; 7] = [
    "p4runtime==1.4.1",
    "p4runtime-shell==0.0.6",
    "protobuf==3.20.3",
    "grpcio",
    "psutil",
    "scapy==2.8.0",
    "ptf==0.12.0",
];

/// The interpreter for which Debian installs Mininet's modules.
const PYTHON: &str = "/usr/bin/python3";

/// The directories of the environment, below one work directory.
pub struct Environment {
    /// The work directory.
    pub work: PathBuf,
    /// The links to `triplane`.
    pub shims: PathBuf,
    /// The virtual environment.
    venv: PathBuf,
}

impl Environment {
    /// Returns the environment in a work directory.
    ///
    /// # Errors
    /// If it was not created.
    pub fn existing(work: &Path) -> Result<Environment> {
        let environment = Environment { work: work.to_owned(), shims: work.join("shims"), venv: work.join("venv") };
        match environment.shims.is_dir() && environment.venv.is_dir() {
            true => Ok(environment),
            false => bail!("{} has no environment", work.display()),
        }
    }

    /// Creates the environment, or what is missing of it.
    ///
    /// # Errors
    /// If a tool is missing or something cannot be installed.
    pub fn create(work: &Path, triplane: &Path) -> Result<Environment> {
        let (shims, venv) = (work.join("shims"), work.join("venv"));
        let made = Command::new(triplane).arg("shims").arg(&shims).output().context("triplane shims")?;
        if !made.status.success() {
            bail!("`triplane shims` failed: {}", String::from_utf8_lossy(&made.stderr).trim());
        }
        let has_mininet = Command::new(PYTHON).args(["-c", "import mininet.net"]).output();
        if !has_mininet.is_ok_and(|output| output.status.success()) {
            bail!("{PYTHON} has no Mininet; install the Debian package `mininet`");
        }
        install(&venv)?;
        let environment = Environment { work: work.to_owned(), shims, venv };
        environment.add_device_config()?;
        Ok(environment)
    }

    /// Returns the value of PATH with the links and the Python of this environment in front.
    pub fn path(&self) -> OsString {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let own = [self.shims.clone(), self.venv.join("bin")];
        let all = own.into_iter().chain(std::env::split_paths(&path));
        std::env::join_paths(all).unwrap_or(path)
    }

    /// Adds the module `p4.tmp.p4config_pb2`.
    fn add_device_config(&self) -> Result<()> {
        let script = "import os, p4; print(os.path.dirname(p4.__file__))";
        let found = Command::new(self.venv.join("bin/python")).args(["-c", script]).output().context("python")?;
        let folder = PathBuf::from(String::from_utf8_lossy(&found.stdout).trim()).join("tmp");
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        fs::write(folder.join("__init__.py"), "")?;
        fs::write(folder.join("p4config_pb2.py"), include_str!("../../mininet/p4config_pb2.py"))?;
        Ok(())
    }
}

/// Creates the virtual environment with its packages, unless it exists. It sees Debian's modules too.
fn install(venv: &Path) -> Result<()> {
    let (stamp, file) = (PACKAGES.join("\n"), venv.join("packages"));
    if fs::read_to_string(&file).is_ok_and(|made| made == stamp) {
        return Ok(());
    }
    let mut create = Command::new(PYTHON);
    create.args(["-m", "venv", "--clear", "--system-site-packages"]).arg(venv);
    if !create.status().context(PYTHON)?.success() {
        bail!("`{PYTHON} -m venv` failed; install the Debian package `python3-venv`");
    }
    let mut install = Command::new(venv.join("bin/pip"));
    install.args(["install", "--quiet", "--disable-pip-version-check", "--retries", "5"]).args(PACKAGES);
    if !install.status().context("pip")?.success() {
        bail!("pip failed to install {}", PACKAGES.join(", "));
    }
    fs::write(&file, stamp).context("cannot record what was installed")
}
