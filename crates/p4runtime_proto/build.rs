//! Compiles the interface files below `proto` to Rust types and to one file of descriptors. The compiler is a
//! library, so that building needs no `protoc`.

use std::path::PathBuf;

const FILES: [&str; 5] = [
    "p4/v1/p4runtime.proto",
    "p4/v1/p4data.proto",
    "p4/config/v1/p4info.proto",
    "p4/config/v1/p4types.proto",
    "google/rpc/status.proto",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true);
    compiler.open_files(FILES)?;
    // These are the bytes of the compiler itself, not of `prost_types`: they keep options that this crate does not
    // know.
    std::fs::write(out.join("descriptors.bin"), compiler.encode_file_descriptor_set())?;
    let mut config = prost_build::Config::new();
    config.enable_type_names().btree_map(["."]).disable_comments(["."]).include_file("modules.rs");
    services(&mut config);
    config.compile_fds(compiler.file_descriptor_set())?;
    Ok(())
}

/// Generates the service too: the server's trait and the client, both over any transport.
#[cfg(feature = "grpc")]
fn services(config: &mut prost_build::Config) {
    let builder = tonic_prost_build::configure().build_transport(false).disable_comments(["."]);
    config.service_generator(builder.service_generator());
}

#[cfg(not(feature = "grpc"))]
fn services(_: &mut prost_build::Config) {}
