//! Compiles the service's interface file to Rust. The compiler is a library, so that building needs no `protoc`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let files = protox::compile(["triplane/subscriptions/v1/subscriptions.proto"], ["proto"])?;
    let mut config = prost_build::Config::new();
    config.disable_comments(["."]).include_file("modules.rs");
    let builder = tonic_prost_build::configure().build_transport(false).disable_comments(["."]);
    config.service_generator(builder.service_generator());
    config.compile_fds(files)?;
    Ok(())
}
