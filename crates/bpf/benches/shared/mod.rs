//! Loads compiled programs into the kernel, for benchmarks.

// Not every benchmark uses all of these items.
#![allow(dead_code)]

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bpf::asm::Links;
use bpf::{KernelOptions, PortState, RegionWriter};
use compiler::Source;
use engine::Objects;
use ir::Program;
use ports::{KernelProgram, KernelRegion, RedirectMap};
use v1model::{Config, Switch, V1Model};

/// Number of rounds.
pub const ROUNDS: usize = 9;
/// Number of runs of a program in a round.
pub const RUNS: u32 = 4_000_000;

/// A program in the kernel.
pub struct InKernel {
    pub program: KernelProgram,
    /// Its instructions.
    pub code: Vec<u64>,
    pub source: Arc<Program>,
    pub switch: Switch,
    pub writer: RegionWriter,
    pub region: KernelRegion,
    /// Time to write all entries.
    pub fill: Duration,
    /// Kept as the program uses them.
    _targets: [RedirectMap; 2],
}

/// Compiles a program for v1model.
pub fn compile(text: &str) -> Arc<Program> {
    let (mut sources, mut diagnostics) = (diagnostics::SourceMap::new(), diagnostics::Diagnostics::new());
    let compiled = compiler::compile(&Source::new("program.p4", text), &V1Model, &mut sources, &mut diagnostics);
    Arc::new(compiled.expect("a valid program").ir)
}

/// Creates a map of devices for this many ports. The loopback interface stands for all of them, as redirects of test
/// runs are not carried out.
pub fn devices(ports: u32) -> io::Result<RedirectMap> {
    let devices = RedirectMap::devices(ports)?;
    (0..ports).try_for_each(|port| devices.set_device(port, 1))?;
    Ok(devices)
}

impl InKernel {
    /// Loads a P4 program for port 0 of `ports`, which are up, with the entries that `write` writes.
    pub fn load(
        program: &Arc<Program>,
        ports: u32,
        write: impl FnOnce(&Program, &mut Objects),
    ) -> io::Result<InKernel> {
        let pipeline = v1model::kernel_pipeline(program).expect("a v1model program");
        let code = bpf::compile(program, &pipeline, KernelOptions { cpus: 64, ports }).expect("it is small");
        let mut switch = Switch::new(program.clone(), Config::with_ports(ports)).expect("a switch");
        write(program, switch.objects_mut());
        let region = KernelRegion::new(code.layout.bytes())?;
        for port in 0..ports {
            let state = PortState::Fast { device: port, max_frame: 1514 };
            bpf::set_port(&code.layout, region.words(), port, state, true);
        }
        let mut writer = RegionWriter::new(&code.layout, |_| true);
        let start = Instant::now();
        writer.fill(region.words(), program, switch.objects()).expect("the entries fit");
        let fill = start.elapsed();
        switch.objects_mut().record_changes();
        let (devices, sockets) = (devices(ports)?, RedirectMap::sockets(1)?);
        let links = Links {
            region: region.descriptor(),
            devices: devices.descriptor(),
            sockets: sockets.descriptor(),
            port: 0,
            has_local_senders: false,
        };
        let code = code.encode(&links, true).expect("code");
        let (program, source) = (load(&code)?, program.clone());
        Ok(InKernel { program, code, source, switch, writer, region, fill, _targets: [devices, sockets] })
    }
}

/// Loads a program.
pub fn load(code: &[u64]) -> io::Result<KernelProgram> {
    KernelProgram::load(code)
        .map_err(|rejected| io::Error::new(rejected.error.kind(), format!("{rejected}: {}", rejected.reason())))
}

/// Returns the nanoseconds of a run on a frame.
pub fn time(program: &KernelProgram, frame: &[u8], runs: u32) -> io::Result<f64> {
    let start = Instant::now();
    program.run_repeatedly(frame, runs)?;
    Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(runs))
}

/// Returns the programs, or `None`, after a sentence, if the process lacks the privileges to load them.
pub fn or_skip<T>(loaded: io::Result<T>) -> io::Result<Option<T>> {
    match loaded {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            println!("skipped: needs root: {error}");
            Ok(None)
        }
        loaded => loaded.map(Some),
    }
}

/// Returns the middle value.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
