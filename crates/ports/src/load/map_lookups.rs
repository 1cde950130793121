//! Looks up pseudorandom keys in the kernel's own maps.
//!
//! ```text
//! state = state * 1103515245 + 12345                               (64 bits, in an array)
//! key = (state[bits + 39:40] * 10368889)[23:0] ++ state[31:24]      (0 instead of the last byte for exact keys)
//! return XDP_DROP if the map has the key, or there is no map; else XDP_PASS
//! ```

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::KernelProgram;
use crate::bpf::{self, BytesMap, code, instruction, look_up};

const DROP: i32 = 1;
const PASS: i32 = 2;
const MULTIPLIER: i32 = 10_368_889;

/// A map of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupMap {
    /// Keys of 32 bits (`BPF_MAP_TYPE_HASH`).
    Exact,
    /// Prefixes of 24 bits, looked up with 32 (`BPF_MAP_TYPE_LPM_TRIE`).
    Prefixes,
}

/// A program that looks a key up in a map of the kernel at each run, as a baseline for other tables.
pub struct MapLookups {
    program: KernelProgram,
    /// Kept open, as the program uses them.
    _maps: Maps,
}

struct Maps {
    state: BytesMap<4, 8>,
    exact: Option<BytesMap<4, 4>>,
    prefixes: Option<BytesMap<8, 4>>,
}

/// Returns the key with a number below 2^24. All have different upper 24 bits, and the lower 8 are 0.
pub fn lookup_key(number: u32) -> u32 {
    number.wrapping_mul(MULTIPLIER as u32) << 8
}

impl MapLookups {
    /// Loads the program with a map of 2^`bits` keys, or without one, to measure all but the lookup. Every key that it
    /// draws is in the map.
    ///
    /// # Errors
    /// The system's, for example if the process may not load BPF programs.
    pub fn load(map: Option<LookupMap>, bits: u32) -> io::Result<MapLookups> {
        let mut maps = Maps { state: BytesMap::array(1)?, exact: None, prefixes: None };
        match map {
            None => {}
            Some(LookupMap::Exact) => {
                let exact = BytesMap::hash(1 << bits)?;
                for number in 0..1 << bits {
                    exact.update(&lookup_key(number).to_be_bytes(), &number.to_ne_bytes())?;
                }
                maps.exact = Some(exact);
            }
            Some(LookupMap::Prefixes) => {
                let prefixes = BytesMap::prefix_trie(1 << bits)?;
                for number in 0..1 << bits {
                    let mut key = [0; 8];
                    key[..4].copy_from_slice(&24u32.to_ne_bytes());
                    key[4..].copy_from_slice(&lookup_key(number).to_be_bytes());
                    prefixes.update(&key, &number.to_ne_bytes())?;
                }
                maps.prefixes = Some(prefixes);
            }
        }
        let program = KernelProgram::new(bpf::load_xdp(&program(&maps, bits), 0)?);
        Ok(MapLookups { program, _maps: maps })
    }

    /// Returns the program.
    pub fn program(&self) -> &KernelProgram {
        &self.program
    }
}

/// Generates the program. The state is in r6, and the key in r7.
fn program(maps: &Maps, bits: u32) -> Vec<u64> {
    let mut program = vec![instruction(code::STORE_IMMEDIATE_U32, 10, 0, -8, 0)];
    program.extend(lookup(maps.state.as_fd()));
    program.extend([
        instruction(code::LOAD_U64, 6, 0, 0, 0),
        instruction(code::MULTIPLY, 6, 0, 0, 1_103_515_245),
        instruction(code::ADD, 6, 0, 0, 12345),
        instruction(code::STORE_U64, 0, 6, 0, 0),
        instruction(code::MOVE_REGISTER, 7, 6, 0, 0),
        instruction(code::SHIFT_RIGHT, 7, 0, 0, 40),
        instruction(code::AND, 7, 0, 0, (1 << bits) - 1),
        instruction(code::MULTIPLY, 7, 0, 0, MULTIPLIER),
        instruction(code::AND, 7, 0, 0, 0xff_ffff),
        instruction(code::MULTIPLY, 7, 0, 0, 256),
    ]);
    if maps.prefixes.is_some() {
        program.extend([
            instruction(code::SHIFT_RIGHT, 6, 0, 0, 24),
            instruction(code::AND, 6, 0, 0, 0xff),
            instruction(code::ADD_REGISTER, 7, 6, 0, 0),
        ]);
    }
    program.push(instruction(code::TO_BIG_ENDIAN, 7, 0, 0, 32));
    if let Some(prefixes) = &maps.prefixes {
        program.push(instruction(code::STORE_IMMEDIATE_U32, 10, 0, -8, 32));
        program.push(instruction(code::STORE_U32, 10, 7, -4, 0));
        program.extend(lookup(prefixes.as_fd()));
    } else if let Some(exact) = &maps.exact {
        program.push(instruction(code::STORE_U32, 10, 7, -8, 0));
        program.extend(lookup(exact.as_fd()));
    }
    program.extend([instruction(code::MOVE, 0, 0, 0, DROP), instruction(code::EXIT, 0, 0, 0, 0)]);
    program
}

/// Generates code that looks up the key at `r10 - 8`: r0 becomes the address of its value. Without one, the frame is
/// passed.
fn lookup(map: BorrowedFd<'_>) -> Vec<u64> {
    let end = [
        instruction(code::JUMP_NOT_EQUAL, 0, 0, 2, 0),
        instruction(code::MOVE, 0, 0, 0, PASS),
        instruction(code::EXIT, 0, 0, 0, 0),
    ];
    [&look_up(map, -8)[..], &end].concat()
}
