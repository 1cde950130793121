//! `triplane trace`: what happened to a packet, step by step.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::Context;
use switch::{Frame, PortId, Time};
use v1model::{Config, Executor, Switch};
use wire::pcap;

use crate::cli::TraceArgs;
use crate::load::Loader;
use crate::output::{Failure, Output};

/// The port numbers that v1model has; a trace does not ask which of them are connected.
const PORTS: u32 = 511;

/// Traces.
pub fn run(args: &TraceArgs, output: &Output) -> Result<(), Failure> {
    if args.port >= PORTS {
        let message = format!("{} is not a port number: ports are numbered 0 to 510", args.port);
        return Err(Failure::Usage(message));
    }
    let mut packets = Packets::open(&args.packet)?;
    let mut loader = Loader::open(&args.program)?;
    let program = loader.program(output)?;
    // Packets that are traced are interpreted, so nothing need be compiled.
    let (seed, executor) = (args.seed, Executor::Interpreter);
    let config = Config { seed, executor, ports: (0..PORTS).map(PortId).collect(), ..Config::default() };
    let mut switch = Switch::new(program, config).map_err(|error| Failure::Input(error.to_string()))?;
    if let Some(path) = &args.entries {
        loader.apply(path, &mut switch, output)?;
    }
    let mut start_ns = None;
    let mut number = 0u64;
    while let Some((time_ns, data)) = packets.next()? {
        number += 1;
        let now = Time::from_ns(time_ns.saturating_sub(*start_ns.get_or_insert(time_ns)));
        let trace = switch.trace(now, Frame { port: PortId(args.port), data }, &mut Vec::new());
        if args.json {
            output.print(&format!("{}\n", trace.to_json()))?;
            continue;
        }
        if matches!(packets, Packets::Capture { .. }) {
            output.print(&format!("{}\n", output.bold(&format!("packet {number}"))))?;
        }
        output.print(&format!("{}\n", trace.render()))?;
    }
    if number == 0 {
        return Err(Failure::Input(format!("{} has no packets", args.packet)));
    }
    Ok(())
}

/// The packets asked for with their times.
pub enum Packets<'a> {
    /// Those of a capture, in order.
    Capture { name: &'a str, reader: pcap::Reader<BufReader<File>> },
    /// One, given in hexadecimal digits, until it is taken.
    Given(Option<Vec<u8>>),
}

impl<'a> Packets<'a> {
    /// What `--packet` says.
    pub fn open(text: &'a str) -> Result<Self, Failure> {
        if Path::new(text).is_file() {
            let file = File::open(text).with_context(|| format!("cannot read {text}"))?;
            let reader = pcap::Reader::new(BufReader::new(file)).map_err(|error| wrong(text, error))?;
            return Ok(Packets::Capture { name: text, reader });
        }
        let digits: String = text.chars().filter(|c| !c.is_whitespace() && !matches!(c, ':' | '-' | '.')).collect();
        let digits = digits.strip_prefix("0x").unwrap_or(&digits);
        let is_hex =
            !digits.is_empty() && digits.len().is_multiple_of(2) && digits.chars().all(|c| c.is_ascii_hexdigit());
        if !is_hex {
            let shown: String = text.chars().take(60).collect();
            return Err(Failure::Usage(format!(
                "--packet `{shown}` is neither a capture file nor an even number of hexadecimal digits"
            )));
        }
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap_or(0);
        Ok(Packets::Given(Some((0..digits.len()).step_by(2).map(byte).collect())))
    }

    /// The next one, with its time in nanoseconds.
    pub fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>, Failure> {
        match self {
            Packets::Given(packet) => Ok(packet.take().map(|data| (0, data))),
            Packets::Capture { name, reader } => {
                let captured = reader.read().map_err(|error| wrong(name, error))?;
                Ok(captured.map(|captured| (captured.time_ns, captured.data)))
            }
        }
    }
}

fn wrong(name: &str, error: pcap::PcapError) -> Failure {
    ports::PortError::Capture { path: name.into(), source: error }.into()
}
