//! What the benchmarks share: programs from text, the units of a switch, and measuring in turns.

#![allow(dead_code, reason = "not every benchmark needs all of it")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use engine::{Interpreter, Now, Objects, PacketState};
use ir::{BodyId, Program};
use jit::{Compiled, Packet, Plan, Speed, Step, Unit};
use source::{Diagnostics, SourceMap};

/// The program of a text; its tables hold a million entries.
pub fn program(text: &str) -> Program {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let file = map.add("bench.ir", text);
    let program = ir::parse(&map, file, &mut diagnostics);
    let mut program = program.unwrap_or_else(|| panic!("{}", diagnostics.render(&map, false)));
    if let Err(violations) = ir::validate(&program) {
        panic!("{violations:#?}");
    }
    program.tables.values_mut().for_each(|table| table.size = Some(1 << 20));
    program
}

/// The units of a switch: all at once, up to the end of ingress, and from egress on.
pub fn plan(program: &Program) -> Plan {
    let body = |role: &str| Step::Run(program.blocks[role]);
    let slot = |name: &str| program.slot_named(&format!("standard_metadata.{name}")).expect("a v1model program");
    let visible = [
        "ingress_port",
        "egress_spec",
        "egress_port",
        "instance_type",
        "packet_length",
        "mcast_grp",
        "ingress_global_timestamp",
        "egress_global_timestamp",
        "parser_error",
    ];
    let ingress = vec![body("parser"), Step::ErrorTo(slot("parser_error")), body("verify_checksum"), body("ingress")];
    let egress = vec![
        body("egress"),
        Step::StopIfAsked,
        Step::StopIf(slot("egress_spec"), 511),
        body("compute_checksum"),
        body("deparser"),
    ];
    // What a switch does with a packet for one port whose queue is empty, between ingress and egress.
    let between = [
        Step::StopIfAsked,
        Step::StopUnless(slot("mcast_grp"), 0),
        Step::StopIf(slot("egress_spec"), 511),
        Step::Copy(slot("egress_port"), slot("egress_spec")),
        Step::Set(slot("egress_spec"), 0),
    ];
    let whole = ingress.iter().cloned().chain(between).chain(egress.iter().cloned()).collect();
    Plan {
        units: vec![
            Unit { steps: whole, fresh: true, next: vec![] },
            Unit { steps: ingress, fresh: true, next: vec![2] },
            Unit { steps: egress, fresh: false, next: vec![] },
        ],
        visible: Some(visible.into_iter().map(slot).collect()),
    }
}

/// The roles in their order.
pub fn roles(program: &Program) -> Vec<BodyId> {
    ["parser", "verify_checksum", "ingress", "egress", "compute_checksum", "deparser"]
        .map(|role| program.blocks[role])
        .to_vec()
}

/// Many packets of one length, each with what it looked like before it was processed.
pub struct Load {
    pub fresh: Vec<Vec<u8>>,
    pub packets: Vec<Vec<u8>>,
    pub room: usize,
}

impl Load {
    pub fn new(fresh: Vec<Vec<u8>>, room: usize) -> Load {
        let with_room = |packet: &Vec<u8>| {
            let mut buffer = vec![0; room];
            buffer.extend_from_slice(packet);
            buffer
        };
        Load { packets: fresh.iter().map(with_room).collect(), fresh, room }
    }
}

/// The nanoseconds of one packet, the median of the rounds.
pub fn median(mut rounds: Vec<f64>) -> f64 {
    rounds.sort_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}

pub const ROUNDS: usize = 9;

/// How many packets a round has: `BENCH_PACKETS`, or a million.
pub fn packets() -> usize {
    std::env::var("BENCH_PACKETS").ok().and_then(|count| count.parse().ok()).unwrap_or(1_000_000)
}

/// Runs a load through machine code in batches of 32; returns ns a packet. Packets are renewed before each, as on both
/// sides.
pub fn compiled_ns(compiled: &Compiled, objects: &mut Objects, load: &mut Load, packets: usize) -> f64 {
    let mut packet: Packet = compiled.packet(Vec::new());
    let ingress_port = compiled.program().slot_named("standard_metadata.ingress_port").expect("a v1model program");
    let egress_port = compiled.program().slot_named("standard_metadata.egress_port").expect("a v1model program");
    let now = Now { ns: 0 };
    let count = load.packets.len();
    let begin = Instant::now();
    let (mut at, mut done) = (0, 0);
    while done < packets {
        let batch = &mut load.packets[at..at + 32];
        for (buffer, fresh) in batch.iter_mut().zip(&load.fresh[at..at + 32]) {
            buffer[load.room..].copy_from_slice(fresh);
        }
        compiled.run_batch(
            0,
            &mut packet,
            objects,
            now,
            batch,
            load.room,
            |_, turn| turn.set_slot_to(ingress_port, 1),
            |_, turn, outcome| {
                black_box((outcome, turn.output_start(), turn.slot_word(egress_port)));
            },
        );
        done += 32;
        at = (at + 32) % count;
    }
    begin.elapsed().as_nanos() as f64 / done as f64
}

/// The same through the interpreter.
pub fn interpreted_ns(program: &Program, objects: &mut Objects, load: &Load, packets: usize) -> f64 {
    let roles = roles(program);
    let mut state = PacketState::new(program, Vec::new());
    let begin = Instant::now();
    for number in 0..packets {
        state.restart(program, load.fresh[number % load.fresh.len()].clone());
        for body in &roles {
            Interpreter::run(program, objects, *body, &mut state, Now { ns: 0 }, &mut ());
        }
        black_box(state.finish());
    }
    begin.elapsed().as_nanos() as f64 / packets as f64
}

/// The same by hand: `work` gets the buffer and where the packet begins, and returns where it begins then and its port.
pub fn by_hand_ns(load: &mut Load, packets: usize, mut work: impl FnMut(&mut Vec<u8>, usize) -> (usize, u16)) -> f64 {
    let count = load.packets.len();
    let begin = Instant::now();
    let (mut at, mut done) = (0, 0);
    while done < packets {
        let batch = &mut load.packets[at..at + 32];
        for (buffer, fresh) in batch.iter_mut().zip(&load.fresh[at..at + 32]) {
            buffer[load.room..].copy_from_slice(fresh);
        }
        for buffer in batch {
            black_box(work(buffer, load.room));
        }
        done += 32;
        at = (at + 32) % count;
    }
    begin.elapsed().as_nanos() as f64 / done as f64
}

/// Compiles, and says how long that takes.
pub fn compile(program: &Arc<Program>) -> Compiled {
    let plan = plan(program);
    for speed in [Speed::Compile, Speed::Run] {
        let times: Vec<f64> = (0..5)
            .map(|_| {
                let begin = Instant::now();
                black_box(Compiled::new(program, &plan, speed).expect("it compiles"));
                begin.elapsed().as_secs_f64() * 1000.0
            })
            .collect();
        println!("compile time for {speed:?}: {:.2} ms", median(times));
    }
    Compiled::new(program, &plan, Speed::Run).expect("it compiles")
}

/// Prints what was measured.
pub fn report(name: &str, compiled: f64, by_hand: f64, interpreted: f64) {
    println!(
        "{name}: compiled {compiled:.1} ns, by hand {by_hand:.1} ns (ratio {:.2}), interpreted {interpreted:.0} ns \
         ({:.0}x)",
        compiled / by_hand,
        interpreted / compiled
    );
}
