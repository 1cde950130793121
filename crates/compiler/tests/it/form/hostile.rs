//! Bytes that are not a compiled program, or one that somebody made up.

use compiler::{FORMAT, ProgramFile, ProgramFileError};
use rng::SplitMix64;
use sha2::{Digest, Sha256};

use super::{program, programs};

/// The end of the hash.
const PARTS: usize = 44;

/// The same with a hash that fits.
fn with_hash(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() >= PARTS {
        let hash = Sha256::digest(&bytes[PARTS..]);
        bytes[12..PARTS].copy_from_slice(&hash);
    }
    bytes
}

fn refused(bytes: &[u8]) -> String {
    ProgramFile::parse(bytes).expect_err("it is refused").to_string()
}

#[test]
fn damaged_files_and_files_of_other_formats_have_different_errors() {
    let bytes = program("router.p4").emit().unwrap();
    assert_eq!(ProgramFile::parse(b""), Err(ProgramFileError::Other));
    assert_eq!(ProgramFile::parse(b"#include <v1model.p4>"), Err(ProgramFileError::Other));
    assert_eq!(ProgramFile::parse(&bytes[..20]), Err(ProgramFileError::Damaged("it is truncated")));
    assert_eq!(ProgramFile::parse(&bytes[..6]), Err(ProgramFileError::Damaged("it is truncated")));

    let mut text_mode = bytes.clone();
    text_mode.remove(4);
    assert!(refused(&text_mode).contains("line endings were changed"), "{}", refused(&text_mode));

    let mut other = bytes.clone();
    other[8..12].copy_from_slice(&(FORMAT + 1).to_le_bytes());
    assert_eq!(ProgramFile::parse(&other), Err(ProgramFileError::Format(FORMAT + 1)));
    assert!(refused(&other).contains("rebuild it"), "{}", refused(&other));

    let mut longer = bytes.clone();
    longer.push(0);
    assert!(matches!(ProgramFile::parse(&longer), Err(ProgramFileError::Damaged(_))));
    assert!(refused(&with_hash(longer)).contains("there is data after its end"));
}

/// A bit that is another one and an end that is missing, at 400 random places each.
#[test]
fn flips_and_cuts_are_noticed() {
    let bytes = program("router.p4").emit().unwrap();
    let mut rng = SplitMix64::new(1);
    for _ in 0..400 {
        let mut flipped = bytes.clone();
        flipped[rng.below(bytes.len() as u64) as usize] ^= 1 << rng.below(8);
        assert!(ProgramFile::parse(&flipped).is_err());
        assert!(ProgramFile::parse(&bytes[..rng.below(bytes.len() as u64) as usize]).is_err());
    }
}

/// With a hash that fits, what is read is either refused in words or a program that holds together.
#[test]
fn made_up_content_is_refused_or_makes_sense() {
    let mut rng = SplitMix64::new(2);
    let (mut taken, mut refused) = (0, 0);
    for program in programs() {
        let bytes = program.emit().unwrap();
        if bytes.len() > 40_000 {
            continue;
        }
        for round in 0..60 {
            let mut changed = bytes.clone();
            for _ in 0..=rng.below(3) {
                let at = PARTS + rng.below((changed.len() - PARTS) as u64) as usize;
                match rng.below(5) {
                    0 => changed[at] ^= 1 << rng.below(8),
                    1 => changed[at] = b"0123456789 \n{}#;:\""[rng.below(18) as usize],
                    2 => changed.truncate(at.max(PARTS + 1)),
                    3 => drop(changed.drain(at..(at + 1 + rng.below(16) as usize).min(changed.len()))),
                    _ => {
                        let end = (at + 1 + rng.below(64) as usize).min(changed.len());
                        let piece = changed[at..end].to_vec();
                        changed.splice(at..at, piece);
                    }
                }
            }
            match ProgramFile::parse(&with_hash(changed)) {
                Err(why) => {
                    refused += 1;
                    assert!(matches!(why, ProgramFileError::Content(_)), "{} round {round}: {why}", program.source);
                    assert!(why.to_string().len() < 2_000, "{} round {round}: {why}", program.source);
                }
                Ok(read) => {
                    taken += 1;
                    assert_eq!(ir::validate(&read.program.ir), Ok(()));
                    assert_eq!(compiler::agree(&read.program.ir, &read.program.p4info), Ok(()));
                }
            }
        }
    }
    assert!(taken > 50 && refused > 1_000, "both happen: {taken} taken, {refused} refused");
}

#[test]
fn lengths_are_not_believed() {
    let bytes = program("router.p4").emit().unwrap();
    for length in [u32::MAX, 1 << 31, bytes.len() as u32, 5_000] {
        let mut changed = bytes.clone();
        changed[PARTS..PARTS + 4].copy_from_slice(&length.to_le_bytes());
        let why = refused(&with_hash(changed));
        assert!(why.contains("the version"), "{why}");
    }
}

/// A file with this P4Info beside a program.
fn with_p4info(info: &[u8]) -> Vec<u8> {
    let mut bytes = program("router.p4").emit().unwrap()[..PARTS].to_vec();
    let text = program("router.p4").program.ir.to_string();
    for part in [b"0", b"x.p4", info, text.as_bytes()] as [&[u8]; 4] {
        bytes.extend((part.len() as u32).to_le_bytes());
        bytes.extend(part);
    }
    with_hash(bytes)
}

/// Seven million empty tables in 14 MiB.
#[test]
fn a_p4info_that_becomes_too_much_is_not_decoded() {
    let bytes = with_p4info(&[0x12, 0].repeat(7 << 20));
    assert!(refused(&bytes).contains("more than 256 MiB of memory"), "{}", refused(&bytes));
    assert_eq!(ProgramFile::p4info_memory(&bytes), 0, "nothing is decoded");
    let memory = |tables: usize| ProgramFile::p4info_memory(&with_p4info(&[0x12, 0].repeat(tables)));
    assert!(memory(1 << 16) > 100 << 16 && memory(1 << 18) > 3 * memory(1 << 16));
    assert_eq!(ProgramFile::p4info_memory(b"#include <v1model.p4>"), 0);
    assert_eq!(ProgramFile::p4info_memory(&bytes[..100]), 0, "it is cut off");
}

/// The JSON form with damage to the JSON, to the base64 and to the bytes within: each is refused in words, or a program
/// that holds together.
#[test]
fn damaged_json_is_refused_or_makes_sense() {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    let mut rng = SplitMix64::new(3);
    let whole = program("router.p4");
    let (json, binary) = (whole.emit_json().unwrap(), whole.emit().unwrap());
    assert_eq!(ProgramFile::parse(&json).as_ref(), Ok(whole));
    let (mut taken, mut refused) = (0, 0);
    for round in 0..1600 {
        let mut changed = if round % 2 == 0 { json.clone() } else { binary.clone() };
        for _ in 0..=rng.below(3) {
            let at = rng.below(changed.len() as u64) as usize;
            match rng.below(4) {
                0 => changed[at] ^= 1 << rng.below(8),
                1 => changed[at] = b"0\"\\{}[],: \n\0\xff"[rng.below(13) as usize],
                2 => changed.truncate(at.max(1)),
                _ => drop(changed.drain(at..(at + 1 + rng.below(16) as usize).min(changed.len()))),
            }
        }
        if round % 2 == 1 {
            let member = STANDARD.encode(with_hash(changed));
            changed = format!("{{\"source\": \"x\", \"triplane_program\": \"{member}\"}}").into_bytes();
        }
        let memory = ProgramFile::p4info_memory(&changed);
        match ProgramFile::parse(&changed) {
            Err(why) => {
                refused += 1;
                assert!(why.to_string().len() < 2_000, "round {round}: {why}");
            }
            Ok(read) => {
                taken += 1;
                assert!(memory > 0);
                assert_eq!(ir::validate(&read.program.ir), Ok(()));
                assert_eq!(compiler::agree(&read.program.ir, &read.program.p4info), Ok(()));
            }
        }
    }
    assert!(taken > 10 && refused > 300, "both happen: {taken} taken, {refused} refused");
}

/// Nesting without an end, members that occur twice or are of other types, and texts of many megabytes.
#[test]
fn strange_json_is_refused() {
    let member = "\"triplane_program\": ";
    let deep = "[".repeat(1 << 20);
    let long = "x".repeat(16 << 20);
    for json in [
        format!("{{{member}{deep}"),
        format!("{{\"a\": {deep}, {member}\"\"}}"),
        format!("{{{member}\"\", {member}\"\"}}"),
        format!("{{{member}{{}}}}"),
        format!("{{{member}1e999999999}}"),
        format!("{{{member}\"\\ud800\"}}"),
        format!("{{\"source\": \"{long}\", {member}\"{long}\"}}"),
        format!("{{{member}\"\"}} {{"),
        format!("{{{member}"),
    ] {
        assert_eq!(ProgramFile::p4info_memory(json.as_bytes()), 0);
        let why = refused(json.as_bytes());
        assert!(why.starts_with("is damaged (") || why == "is not a compiled program", "{why}");
    }
    // A program within a program is none.
    let inner = program("router.p4").emit_json().unwrap();
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(&inner);
    assert_eq!(refused(format!("{{{member}\"{text}\"}}").as_bytes()), "is not a compiled program");
}
