//! Compares packets with those of scapy, in both directions.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use rng::SplitMix64;
use serde_json::{Value, json};
use wire::roce::{self, Aeth, AtomicEth, Extension, Opcode, Packet, Position, Psn, Reth, icrc};
use wire::{ethernet, ipv4, ipv6, udp};

const PACKAGES: &[&str] = &["scapy==2.8.0"];

/// Maximum number of differences that are printed.
const MAX_SHOWN: usize = 5;

/// Compares `frames` frames in each direction. Returns false if any differs.
pub fn compare(frames: u64, seed: u64) -> Result<bool> {
    let home = crate::target().join("interop-roce").join("python");
    if let Err(error) = crate::python::install(&home, PACKAGES) {
        return Ok(crate::skip(&format!("scapy: {error:#}")));
    }
    let mut rng = SplitMix64::new(seed);
    let sent: Vec<Vec<u8>> = (0..frames).map(|_| random_frame(&mut rng)).collect();
    let lines: Vec<String> = sent.iter().map(|frame| hexadecimal(frame)).collect();
    let judged = scapy(&home, &["judge"], &lines.join("\n"))?;
    ensure!(judged.len() == sent.len(), "scapy judged {} of {frames} frames", judged.len());
    let ours = sent.iter().zip(&judged).map(|(frame, found)| difference(frame, found, true));
    let is_good = summarize("frames of ours, judged by scapy", ours);
    let made = scapy(&home, &["make", &frames.to_string(), &seed.to_string()], "")?;
    ensure!(made.len() == sent.len(), "scapy made {} of {frames} frames", made.len());
    let theirs = made.iter().map(|found| match found["frame"].as_str().and_then(bytes_of) {
        Some(frame) => difference(&frame, found, false),
        None => Some("no frame".to_owned()),
    });
    Ok(summarize("frames of scapy's, judged by us", theirs) && is_good)
}

fn summarize(name: &str, differences: impl Iterator<Item = Option<String>>) -> bool {
    let (mut all, mut bad) = (0, 0);
    for difference in differences {
        all += 1;
        if let Some(difference) = difference {
            bad += 1;
            if bad <= MAX_SHOWN {
                println!("{difference}");
            }
        }
    }
    println!("{name}: {} of {all} agree", all - bad);
    bad == 0 && all > 0
}

/// Runs the script, and returns the lines of JSON that it prints.
fn scapy(home: &Path, arguments: &[&str], input: &str) -> Result<Vec<Value>> {
    let mut command = Command::new(home.join("bin/python"));
    command.arg(crate::root().join("crates/xtask/interop_roce/frames.py")).args(arguments);
    command.env("PYTHONDONTWRITEBYTECODE", "1").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().context("cannot run Python")?;
    let mut stdin = child.stdin.take().context("Python has no input")?;
    let input = input.to_owned();
    // It writes while it reads.
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().context("Python")?;
    ensure!(output.status.success(), "scapy failed: {}", output.status);
    writer.join().expect("writing does not panic").context("scapy does not read")?;
    let lines = String::from_utf8(output.stdout).context("scapy printed no text")?;
    lines.lines().map(|line| serde_json::from_str(line).with_context(|| format!("not JSON: {line}"))).collect()
}

/// Returns the difference between scapy's and this project's reading of a frame.
fn difference(frame: &[u8], found: &Value, is_ours: bool) -> Option<String> {
    let ip = &frame[ethernet::HEADER_LEN..];
    let ip_len = if ip[0] >> 4 == 4 { ipv4::HEADER_LEN } else { ipv6::HEADER_LEN };
    let packet = match Packet::new_checked(&ip[ip_len + udp::HEADER_LEN..]) {
        Ok(packet) => packet,
        Err(error) => return Some(format!("{error}: {}", hexadecimal(frame))),
    };
    let mut expected = json!({
        "opcode": u8::from(packet.opcode()),
        "padcount": packet.pad_len(),
        "pkey": packet.partition_key(),
        "dqpn": packet.destination_qp(),
        "psn": packet.psn().number(),
        "solicited": packet.is_solicited(),
        "ackreq": packet.is_ack_requested(),
        // scapy shows the four bytes as they are sent.
        "icrc": packet.icrc().swap_bytes(),
    });
    if let (Opcode::Acknowledge, Extension::Aeth(aeth)) = (packet.opcode(), packet.extension()) {
        expected["syndrome"] = u8::from(aeth.syndrome).into();
        expected["msn"] = aeth.message_number.into();
    }
    let fields = expected.as_object().into_iter().flatten();
    let mut differences: Vec<String> = fields
        .filter(|(name, value)| found.get(name.as_str()) != Some(value))
        .map(|(name, value)| format!("{name} is {value} for us and {} for scapy", found[name.as_str()]))
        .collect();
    if !icrc::is_right(ip) {
        differences.push("the integrity check is wrong for us".to_owned());
    }
    if is_ours && found["same"] != true {
        differences.push("scapy would send other bytes".to_owned());
    }
    (!differences.is_empty()).then(|| format!("{}: {}", differences.join(", "), hexadecimal(frame)))
}

fn random_frame(rng: &mut SplitMix64) -> Vec<u8> {
    let opcode = Opcode::from(rng.below(0x15) as u8);
    let repr = roce::Repr {
        is_solicited: rng.percent(50),
        partition_key: rng.next_u64() as u16,
        is_ack_requested: rng.percent(50),
        ..roce::Repr::new(opcode, rng.next_u64() as u32, Psn::new(rng.next_u64() as u32), extension(opcode, rng))
    };
    let payload: Vec<u8> = (0..rng.below(300)).map(|_| rng.next_u64() as u8).collect();
    let datagram = repr.packet(&payload);
    let udp = udp::Repr { source_port: 0xc000 | rng.next_u64() as u16, destination_port: roce::PORT };
    let (ethertype, mut packet) = if rng.percent(50) {
        let ip = ipv4::Repr {
            traffic_class: rng.next_u64() as u8,
            identification: rng.next_u64() as u16,
            dont_fragment: rng.percent(50),
            ttl: rng.next_u64() as u8,
            ..ipv4::Repr::new((rng.next_u64() as u32).into(), (rng.next_u64() as u32).into(), ipv4::UDP)
        };
        (ethernet::IPV4, ip.packet(&udp.packet(ip.addresses(), &datagram)))
    } else {
        let address = |rng: &mut SplitMix64| (u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())).into();
        let ip = ipv6::Repr {
            traffic_class: rng.next_u64() as u8,
            flow_label: rng.below(1 << 20) as u32,
            hop_limit: rng.next_u64() as u8,
            ..ipv6::Repr::new(address(rng), address(rng), ipv4::UDP)
        };
        (ethernet::IPV6, ip.packet(&udp.packet(ip.addresses(), &datagram)))
    };
    assert!(icrc::seal(&mut packet), "it is a RoCE packet");
    let (source, destination) = (ethernet::Address([2, 0, 0, 0, 0, 1]), ethernet::Address([2, 0, 0, 0, 0, 2]));
    ethernet::Repr { destination, source, ethertype }.packet(&packet)
}

/// Returns random headers for an opcode.
fn extension(opcode: Opcode, rng: &mut SplitMix64) -> Extension {
    let reth = Reth { address: rng.next_u64(), key: rng.next_u64() as u32, len: rng.next_u64() as u32 };
    let aeth = Aeth { syndrome: (rng.next_u64() as u8).into(), message_number: rng.below(1 << 24) as u32 };
    let (swap_or_add, compare) = (rng.next_u64(), rng.next_u64());
    match opcode {
        Opcode::ReadRequest | Opcode::Write(Position::First | Position::Only) => Extension::Reth(reth),
        Opcode::ReadResponse(Position::Middle) => Extension::None,
        Opcode::ReadResponse(_) | Opcode::Acknowledge => Extension::Aeth(aeth),
        Opcode::AtomicAcknowledge => Extension::AtomicAckEth(aeth, compare),
        Opcode::CompareSwap | Opcode::FetchAdd => {
            Extension::AtomicEth(AtomicEth { address: reth.address, key: reth.key, swap_or_add, compare })
        }
        Opcode::SendImmediate(_) | Opcode::WriteImmediate(false) => Extension::Immediate(reth.key.to_be_bytes()),
        Opcode::WriteImmediate(true) => Extension::RethImmediate(reth, reth.key.to_be_bytes()),
        Opcode::Send(_) | Opcode::Write(_) | Opcode::Other(_) => Extension::None,
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.len().is_multiple_of(2).then(|| digits.chunks(2).map(byte).collect())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_the_field() {
        let frame = random_frame(&mut SplitMix64::new(3));
        let agrees = |found: &Value| difference(&frame, found, false);
        let shown = agrees(&json!({})).expect("an empty object lacks all fields");
        assert!(shown.contains("psn is") && !shown.contains("integrity"), "{shown}");
        assert_eq!(bytes_of(&hexadecimal(&frame)), Some(frame));
        assert_eq!((bytes_of("0"), bytes_of("zz")), (None, None));
    }
}
