//! Runs `triplane trace`: shows the processing of a packet, step by step.

use switch::{Frame, PortId, Time};
use v1model::{Config, Executor, Switch};

use crate::cli::TraceArgs;
use crate::load::Loader;
use crate::output::{Failure, Output};
use crate::packet_source::PacketSource;

/// Traces.
pub fn run(args: &TraceArgs, output: &Output) -> Result<(), Failure> {
    let mut packets = PacketSource::open(&args.packet)?;
    let mut loader = Loader::open(&args.program)?;
    let program = loader.program(output)?;
    // A trace does not ask which ports are connected.
    let max_port = u32::from(v1model::max_port(&program));
    if args.port > max_port {
        let message = format!("{} is not a port number: ports are numbered 0 to {max_port}", args.port);
        return Err(Failure::Usage(message));
    }
    // Packets that are traced are interpreted, so nothing need be compiled.
    let (seed, executor) = (args.seed, Executor::Interpreter);
    let config = Config { seed, executor, ports: (0..=max_port).map(PortId).collect(), ..Config::default() };
    let mut switch = Switch::new(program, config).map_err(|error| Failure::Input(error.to_string()))?;
    for path in &args.entries {
        loader.apply(path, &mut switch, output)?;
    }
    let mut start_ns = None;
    let mut number = 0u64;
    while let Some((time_ns, data)) = packets.next()? {
        number += 1;
        let now = Time::from_ns(time_ns.saturating_sub(*start_ns.get_or_insert(time_ns)));
        let mut trace = switch.trace(now, Frame { port: PortId(args.port), data }, &mut Vec::new());
        trace.show_source(&loader.map);
        if args.json {
            output.print(&format!("{}\n", trace.to_json()))?;
            continue;
        }
        if matches!(packets, PacketSource::Capture { .. }) {
            output.print(&format!("{}\n", output.bold(&format!("packet {number}"))))?;
        }
        output.print(&format!("{}\n", trace.render()))?;
    }
    if number == 0 {
        return Err(Failure::Input(format!("{} contains no packets", args.packet)));
    }
    Ok(())
}
