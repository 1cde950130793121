//! Measures the code of `examples/router` beside a hand-written router on the same search structures. Run
//! `cargo bench -p bpf --bench router` as root.
//!
//! Both are run by the kernel on single frames (`BPF_PROG_TEST_RUN`), so nothing is measured but the programs. Each row
//! is the median of rounds that take turns. Before, frames of all kinds are compared: both programs return the same
//! verdict and the same bytes.
//!
//! The kernel repeats runs on the same bytes, whose time to live would soon be over. So a few instructions restore it
//! in front of each measured program. A time is what a program takes longer than these and an end.

mod hand_written;
#[path = "../shared/mod.rs"]
mod shared;

use std::io;

use bits::Bits;
use bpf::asm::{AccessSize, Alu, Assembly, Cond, Instruction, Links, Reg};
use bpf::uapi;
use engine::{Objects, TableEntry};
use hand_written::{Counting, HandWritten};
use ir::{KeyValue, Program};
use rng::SplitMix64;
use shared::{InKernel, ROUNDS, RUNS, median};

/// Number of ports.
const PORTS: u32 = 8;
/// Maximum ratio of the compiled program to the hand-written one.
const BAR: f64 = 2.5;
/// Number of frames that are compared.
const FRAMES: u32 = 5000;

/// A route, whose bits behind the prefix are 0.
pub struct Route {
    prefix: u32,
    length: u32,
    mac: u64,
    port: u32,
}

/// Returns 256 routes of 24 bits, and a few that contain each other.
fn routes() -> Vec<Route> {
    let route = |prefix, length, number: u32| Route {
        prefix,
        length,
        mac: 0x0200_0000_0200 + u64::from(number),
        port: number % PORTS,
    };
    let plain = (0..256).map(|number| route(0x0a02_0000 | number << 8, 24, number));
    let nested = [(0x0b00_0000, 8), (0x0b01_0000, 16), (0x0b01_0200, 23), (0x0b01_0204, 30), (0x0b01_0205, 32)];
    plain.chain((1..).zip(nested).map(|(number, (prefix, length))| route(prefix, length, number))).collect()
}

/// Returns the address of each port. The last one has none.
fn sources() -> Vec<u64> {
    (0..PORTS - 1).map(|port| 0x0200_0000_0100 + u64::from(port)).collect()
}

/// Writes the same tables for the compiled program.
fn write(program: &Program, objects: &mut Objects) {
    let table = |name: &str| program.table_named(name).expect("a table");
    let action = |name: &str| program.actions.iter().find(|(_, action)| action.name == name).expect("an action").0;
    let mac = |mac: u64| Bits::new(mac.into(), 48);
    for route in routes() {
        let key = vec![KeyValue::Lpm(Bits::new(route.prefix.into(), 32), route.length)];
        let call = vec![mac(route.mac), Bits::new(route.port.into(), 9)];
        let entry = TableEntry::new(key, 0, action("RouterIngress.forward"), call);
        objects.insert(table("RouterIngress.ipv4_lpm"), entry).expect("there is room");
    }
    for (port, source) in (0..).zip(sources()) {
        let key = vec![KeyValue::Exact(Bits::new(port, 9))];
        let entry = TableEntry::new(key, 0, action("RouterEgress.set_source"), vec![mac(source)]);
        objects.insert(table("RouterEgress.port_mac"), entry).expect("there is room");
    }
}

/// Returns an IPv4 frame of 60 bytes.
fn frame(to: u32, time_to_live: u8) -> Vec<u8> {
    let mut header = vec![0x45, 0, 0, 46, 1, 2, 0, 0, time_to_live, 17, 0, 0, 10, 9, 9, 9];
    header.extend(to.to_be_bytes());
    let sum = wire::checksum::checksum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    [&[2; 12][..], &[8, 0], &header, &[0x5a; 26]].concat()
}

/// Returns a frame that is right, without a route, expired, cut, damaged, or of another protocol but ARP.
fn random_frame(rng: &mut SplitMix64) -> Vec<u8> {
    let net = rng.pick(&[(6, 0x0a02_0000), (3, 0x0b01_0000), (1, 0x0b00_0000), (1, 0x0c00_0000)]);
    let host = rng.below(if net == 0x0b01_0000 { 0x400 } else { 0x1_0000 }) as u32;
    let mut frame = frame(net | host, rng.pick(&[(20, 64), (1, 255), (1, 2), (1, 1), (1, 0)]));
    match rng.below(8) {
        0 => frame.truncate(14 + rng.below(47) as usize),
        1 => {
            let at = 14 + rng.below(20) as usize;
            frame[at] ^= 1 << rng.below(8);
        }
        2 => frame[12..14].copy_from_slice(&rng.pick(&[(1, [0x86, 0xdd]), (1, [0x88, 0xcc]), (1, [0x81, 0])])),
        _ => {}
    }
    frame
}

/// Holds the programs to the same verdicts and bytes. Returns the number of frames that are forwarded.
fn compare(compiled: &InKernel, others: &[HandWritten]) -> io::Result<u32> {
    let (mut rng, mut forwarded) = (SplitMix64::new(1), 0);
    for number in 0..FRAMES {
        let data = random_frame(&mut rng);
        let right = compiled.program.run(&data)?;
        forwarded += u32::from(right.0 == uapi::XDP_REDIRECT as u32);
        for other in others {
            assert_eq!(other.program.run(&data)?, right, "frame {number}: {data:02x?}");
        }
    }
    assert!(forwarded > FRAMES / 2 && forwarded < FRAMES * 9 / 10, "{forwarded} of {FRAMES} are forwarded");
    Ok(forwarded)
}

/// Returns instructions that give a frame its time to live and its checksum again.
fn restoring(frame: &[u8]) -> Vec<u64> {
    let (r0, context, data, end) = (Reg(0), Reg(1), Reg(2), Reg(3));
    let mut code = Assembly::default();
    let is_short = code.label();
    code.push(Instruction::Load(AccessSize::B4, data, context, uapi::XDP_MD_DATA));
    code.push(Instruction::Load(AccessSize::B4, end, context, uapi::XDP_MD_DATA_END));
    code.push(Instruction::Alu64(Alu::Mov, r0, data.into()));
    code.push(Instruction::Alu64(Alu::Add, r0, 34.into()));
    code.push(Instruction::JumpIf(Cond::Gt, r0, end.into(), is_short));
    code.push(Instruction::StoreImm(AccessSize::B1, data, 22, frame[22].into()));
    let checksum = u16::from_ne_bytes([frame[24], frame[25]]);
    code.push(Instruction::StoreImm(AccessSize::B2, data, 24, checksum.into()));
    code.push(Instruction::Bind(is_short));
    code.assemble(&Links::default(), false).expect("code")
}

/// Returns the code of a program that only returns.
fn nothing() -> Vec<u64> {
    let mut code = Assembly::default();
    code.push(Instruction::Alu64(Alu::Mov, Reg(0), uapi::XDP_DROP.into()));
    code.push(Instruction::Exit);
    code.assemble(&Links::default(), false).expect("code")
}

fn main() -> io::Result<()> {
    if shared::or_skip(shared::load(&nothing()))?.is_none() {
        return Ok(());
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/router/router.p4");
    let compiled = InKernel::load(&shared::compile(&std::fs::read_to_string(path)?), PORTS, write)?;
    let load = |counting| HandWritten::load(&routes(), &sources(), counting);
    let others = [load(Counting::Shared)?, load(Counting::PerCpu)?, load(Counting::None)?];
    let forwarded = compare(&compiled, &others)?;
    println!("{FRAMES} frames, of which {forwarded} are forwarded: the same verdicts and bytes");
    let frame = frame(0x0a02_0705, 64);
    let measured = |code: &[u64]| shared::load(&[&restoring(&frame), code].concat());
    let nothing = nothing();
    let codes = [&nothing, &compiled.code].into_iter().chain(others.iter().map(|other| &other.code));
    let programs = codes.map(|code| measured(code)).collect::<io::Result<Vec<_>>>()?;
    for program in &programs {
        let once = program.run(&frame)?;
        assert_eq!(program.run(&once.1)?, once, "a run on the bytes of the run before is the same");
    }
    let mut times = vec![Vec::new(); programs.len()];
    for round in 0..=ROUNDS {
        for (program, times) in programs.iter().zip(&mut times) {
            let time = shared::time(program, &frame, RUNS)?;
            // The first round warms up.
            times.extend((round > 0).then_some(time));
        }
    }
    let alone = |of: usize| times[of].iter().zip(&times[0]).map(|(with, without)| with - without).collect::<Vec<_>>();
    let names = [
        "router.p4",
        "hand-written, the same structures",
        "hand-written, counts of each processor",
        "hand-written, no counts",
    ];
    println!("{:<40} {:>6} {:>16}", "a forwarded frame, 261 prefixes", "ns", "router.p4 to it");
    for (of, name) in (1..).zip(names) {
        let ratios = alone(1).into_iter().zip(alone(of)).map(|(compiled, other)| compiled / other);
        let bar = if of == 2 { format!(" (at most {BAR})") } else { String::new() };
        println!("{name:<40} {:>6.1} {:>6.2}{bar}", median(alone(of)), median(ratios.collect()));
    }
    println!("instructions that restore the frame, and an end: {:.1} ns", median(times[0].clone()));
    Ok(())
}
