//! Clients in Go: a controller of ours on generated code, and p4runtime-go-client from a checkout.
//!
//! Both are test binaries of Go, built outside of the network namespace, and learn of the switch from their
//! environment. The library cannot be fetched like other modules, so its checks in `clients/go_library` are no module:
//! they are copied into one that replaces the library with the checkout.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Testbed, write_p4info};

/// Examples of the library, with a P4 program of their own unless they take any.
const EXAMPLES: [&str; 2] = ["l2_switch", "wcmp"];

/// The module's sources: `clients/go`, or `clients/go_library`.
fn sources(folder: &str) -> PathBuf {
    crate::root().join("crates/xtask/clients").join(folder)
}

fn binary(work: &Path) -> PathBuf {
    work.join("go/controller.test")
}

fn library_home(work: &Path) -> PathBuf {
    work.join("go-client")
}

/// Builds the checks of the controller.
pub(super) fn build(work: &Path) -> Result<()> {
    let mut build = go(&sources("go"));
    run(build.args(["test", "-c", "-o"]).arg(binary(work)).arg("./controller"))
}

/// Builds the checks of p4runtime-go-client from a checkout, its examples, and the P4Info of their programs.
pub(super) fn build_library(checkout: &Path, triplane: &Path, work: &Path) -> Result<()> {
    let home = library_home(work);
    let (module, examples) = (home.join("module"), home.join("examples"));
    if home.exists() {
        fs::remove_dir_all(&home).with_context(|| format!("cannot remove {}", home.display()))?;
    }
    copy_files(&sources("go").join("testbed"), &module.join("testbed"))?;
    copy_files(&sources("go_library"), &module.join("library"))?;
    fs::write(module.join("go.mod"), library_module(checkout)).context("go.mod")?;
    // The library's own versions of its dependencies, so that the checks run with the protos that it was made for.
    copy(&checkout.join("go.sum"), &module.join("go.sum"))?;
    run(go(&module).args(["test", "-mod=mod", "-c", "-o"]).arg(home.join("library.test")).arg("./library"))?;
    fs::create_dir_all(&examples).context("examples")?;
    run(go(checkout).args(["build", "-buildvcs=false", "-o"]).arg(&examples).arg("./cmd/..."))?;
    for name in EXAMPLES {
        let program = examples.join(format!("{name}.p4"));
        copy(&checkout.join(format!("cmd/{name}/{name}.p4")), &program)?;
        write_p4info(triplane, "1.3", &program, &examples.join(format!("{name}.p4info.txtpb")))?;
    }
    Ok(())
}

/// Returns the `go.mod` of a module with the library's checks.
fn library_module(checkout: &Path) -> String {
    const LIBRARY: &str = "github.com/antoninbas/p4runtime-go-client";
    let checkout = checkout.display();
    format!("module triplane/clients\n\ngo 1.21\n\nrequire {LIBRARY} v0.0.0\n\nreplace {LIBRARY} => \"{checkout}\"\n")
}

/// Returns the command that runs the controller's checks.
pub(super) fn command(work: &Path, testbed: &Testbed) -> Command {
    test_command(&binary(work), testbed)
}

/// Returns the command that runs the library's checks and examples.
pub(super) fn library_command(work: &Path, testbed: &Testbed) -> Command {
    let home = library_home(work);
    let mut command = test_command(&home.join("library.test"), testbed);
    command.env("TRIPLANE_EXAMPLES", home.join("examples"));
    command
}

fn test_command(binary: &Path, testbed: &Testbed) -> Command {
    let mut command = Command::new(binary);
    command.arg("-test.v");
    command.env("TRIPLANE_ADDRESS", &testbed.address).env("TRIPLANE_PORTS", testbed.ports.join(" "));
    command.env("TRIPLANE_P4INFO", &testbed.p4info).env("TRIPLANE_PROGRAM", &testbed.program);
    command
}

/// Returns a call of the installed `go`. It may fetch modules, but no other Go toolchain.
fn go(directory: &Path) -> Command {
    let mut command = Command::new("go");
    command.current_dir(directory).env("GOTOOLCHAIN", "local");
    command
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().context("cannot run `go`; install Go 1.21 or newer")?;
    if !output.status.success() {
        bail!("`go` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

fn copy_files(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).map(|_| ()).with_context(|| format!("cannot copy {}", from.display()))
}
