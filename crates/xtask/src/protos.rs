//! Runs `cargo xtask protos`: generates the Rust code of the protobuf interface files, which is committed.
//!
//! Generating it in build scripts would compile a protobuf compiler, `prost-reflect` a second time and a formatter for
//! every build of the command. The generator is therefore a feature of this crate, `protos`, that only this chore uses.
//! `SHA256SUMS` beside the generated files holds the digests of both sides, so that a test without the generator sees
//! when one side has changed and the other has not.

#![cfg_attr(not(feature = "protos"), allow(dead_code, reason = "the generator and the test use most of it"))]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

#[cfg(not(feature = "protos"))]
use crate::step::Step;
use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

/// The help text of the chore.
pub const HELP: &str = "Generates Rust code from the protobuf interface files in `crates/*/proto` into
`crates/*/src/generated`, which is committed. Run it after a change to an interface file or to the
version of `prost` or `tonic`.

Usage: cargo xtask protos
";

/// A crate with interface files.
struct Interface {
    /// Directory of the crate, from the root of the workspace.
    crate_dir: &'static str,
    /// Files to compile, from the crate's `proto` directory.
    files: &'static [&'static str],
    /// Whether the crate encodes messages as text and JSON, which needs descriptors and type names. The service of such
    /// a crate is behind its feature `grpc`.
    reflective: bool,
}

const INTERFACES: [Interface; 3] = [
    Interface {
        crate_dir: "crates/p4runtime_proto",
        files: &[
            "p4/v1/p4runtime.proto",
            "p4/v1/p4data.proto",
            "p4/config/v1/p4info.proto",
            "p4/config/v1/p4types.proto",
            "google/rpc/status.proto",
        ],
        reflective: true,
    },
    Interface {
        crate_dir: "crates/subscribe_service",
        files: &["triplane/subscriptions/v1/subscriptions.proto"],
        reflective: false,
    },
    Interface { crate_dir: "crates/resilient_etcd", files: &["etcdserverpb/etcd.proto"], reflective: false },
];

/// Generates the code of every interface and its digests.
///
/// # Errors
/// Fails if an interface file is wrong, or a file cannot be read or written.
#[cfg(feature = "protos")]
pub fn run(_: &[String]) -> Result<bool> {
    for interface in &INTERFACES {
        let crate_dir = crate::root().join(interface.crate_dir);
        generate::generate(interface, &crate_dir)?;
        std::fs::write(crate_dir.join(SUMS), digests(&crate_dir)?)?;
        println!("{}/src/generated is current", interface.crate_dir);
    }
    Ok(true)
}

/// Runs this chore in a build that has the generator.
///
/// # Errors
/// Fails if cargo cannot be started.
#[cfg(not(feature = "protos"))]
pub fn run(_: &[String]) -> Result<bool> {
    let arguments = ["run", "-q", "-p", "xtask", "--features", "protos", "--", "protos"];
    Ok(Step::cargo("protos", &arguments).run().passed())
}

#[cfg(feature = "protos")]
mod generate {
    use std::path::Path;

    use anyhow::{Result, anyhow};
    use prost_build::{Service, ServiceGenerator};

    /// Compiles the interface files of a crate to Rust, and to descriptors if the crate needs them.
    pub fn generate(interface: &super::Interface, crate_dir: &Path) -> Result<()> {
        let out = crate_dir.join("src/generated");
        std::fs::create_dir_all(&out)?;
        let mut compiler = protox::Compiler::new([crate_dir.join("proto")]).map_err(|error| anyhow!("{error:?}"))?;
        compiler.include_imports(true);
        compiler.open_files(interface.files).map_err(|error| anyhow!("{error:?}"))?;
        let mut config = prost_build::Config::new();
        config.disable_comments(["."]).include_file("modules.rs").out_dir(&out);
        let tonic = tonic_prost_build::configure().build_transport(false).disable_comments(["."]);
        if interface.reflective {
            // These are the bytes of the compiler itself, not of `prost_types`: they keep options that this crate does
            // not know.
            std::fs::write(out.join("descriptors.bin"), compiler.encode_file_descriptor_set())?;
            config.enable_type_names().btree_map(["."]);
            config.service_generator(Box::new(GatedService(tonic.service_generator())));
        } else {
            config.service_generator(tonic.service_generator());
        }
        config.compile_fds(compiler.file_descriptor_set())?;
        Ok(())
    }

    /// A generator that puts the modules of a service behind the feature `grpc`.
    struct GatedService(Box<dyn ServiceGenerator>);

    impl ServiceGenerator for GatedService {
        fn generate(&mut self, service: Service, buf: &mut String) {
            let mut text = String::new();
            self.0.generate(service, &mut text);
            buf.push_str(&text.replace("\npub mod ", "\n#[cfg(feature = \"grpc\")]\npub mod "));
        }

        fn finalize(&mut self, buf: &mut String) {
            self.0.finalize(buf);
        }

        fn finalize_package(&mut self, package: &str, buf: &mut String) {
            self.0.finalize_package(package, buf);
        }
    }
}

/// The file of digests, from the crate's directory.
const SUMS: &str = "src/generated/SHA256SUMS";

/// Returns the digests of the interface files and of the generated files of a crate, a line each, as `sha256sum` writes
/// them in the crate's directory.
fn digests(crate_dir: &Path) -> Result<String> {
    let mut paths = Vec::new();
    files_below(&crate_dir.join("proto"), &mut paths)?;
    files_below(&crate_dir.join("src/generated"), &mut paths)?;
    paths.sort();
    let mut text = String::new();
    for path in paths.iter().filter(|path| !path.ends_with("SHA256SUMS")) {
        let name = path.strip_prefix(crate_dir).expect("the walk began there");
        for byte in Sha256::digest(std::fs::read(path)?) {
            let _ = write!(text, "{byte:02x}");
        }
        let _ = writeln!(text, "  {}", name.display());
    }
    Ok(text)
}

fn files_below(dir: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            files_below(&path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_code_belongs_to_its_interface_files() {
        for interface in &INTERFACES {
            let crate_dir = crate::root().join(interface.crate_dir);
            let written = std::fs::read_to_string(crate_dir.join(SUMS)).expect("the digests are committed");
            let found = digests(&crate_dir).expect("the files can be read");
            assert_eq!(written, found, "{}: run `cargo xtask protos`", interface.crate_dir);
        }
    }
}
