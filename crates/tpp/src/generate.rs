//! Generates random programs, memories and rights, and compares both TCPUs on them.

use std::fmt;

use rng::SplitMix64;
use wire::tpp::{Addressing, Instruction, Operation, Packet, Repr, Status, WordSize};

use crate::mutant::Mutant;
use crate::tcpu::{AccessRights, AddressSet, OWN_FIELDS, SparseMemory, Tcpu, reference};

/// Addresses that programs use; those from the fifth on do not exist.
const ADDRESSES: [u32; 7] = [0x0000, 0x3012, 0x6000, 0x6002, 0x7000, 0x1_3000, 0xffff_fffe];

/// A random case: a program, the memories of the switches on its path, and its rights there.
#[derive(Clone, Debug)]
pub struct Case {
    /// The program, and a payload.
    pub bytes: Vec<u8>,
    /// The switches in the order of the hops.
    pub switches: Vec<(SparseMemory, AccessRights)>,
}

impl Case {
    /// Returns the case with this seed.
    pub fn new(seed: u64) -> Case {
        let mut rng = SplitMix64::new(seed);
        let bytes = program(&mut rng);
        Case::with_switches(bytes, &mut rng)
    }

    /// Returns a case with these bytes, and with switches from a seed.
    pub fn of(bytes: Vec<u8>, seed: u64) -> Case {
        Case::with_switches(bytes, &mut SplitMix64::new(seed))
    }

    fn with_switches(bytes: Vec<u8>, rng: &mut SplitMix64) -> Case {
        let switches = (0..1 + rng.below(4)).map(|_| (memory(rng), rights(rng))).collect();
        Case { bytes, switches }
    }

    /// Sends the program through all switches, once with each TCPU; the fast one has the mutant, if there is one.
    ///
    /// # Errors
    /// Returns the first difference: in the results, the packets or the memories.
    pub fn compare(&self, mutant: Option<Mutant>) -> Result<(), Difference> {
        let (mut fast, mut slow) = (self.bytes.clone(), self.bytes.clone());
        for (hop, (memory, rights)) in self.switches.iter().enumerate() {
            let (mut fast_memory, mut slow_memory) = (memory.clone(), memory.clone());
            let found = match mutant {
                None => Tcpu::execute(&mut fast, &mut fast_memory, rights),
                Some(mutant) => Tcpu::execute_with(mutant, &mut fast, &mut fast_memory, rights),
            };
            let expected = reference::execute(&mut slow, &mut slow_memory, rights);
            let difference = |of, values| Err(Difference { hop, of, values });
            if found != expected {
                return difference("results", format!("{found:?}, not {expected:?}"));
            }
            if fast != slow {
                return difference("packets", format!("{fast:02x?}, not\n{slow:02x?}"));
            }
            if fast_memory != slow_memory {
                return difference("memories", format!("{fast_memory:?}, not\n{slow_memory:?}"));
            }
        }
        Ok(())
    }
}

/// A difference between the two TCPUs.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Number of the switch on the path.
    pub hop: usize,
    /// What differs: results, packets or memories.
    pub of: &'static str,
    /// Both values.
    pub values: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "different {} at switch {}: {}", self.of, self.hop, self.values)
    }
}

fn program(rng: &mut SplitMix64) -> Vec<u8> {
    let word_size = if rng.percent(50) { WordSize::Bits16 } else { WordSize::Bits32 };
    let memory_len = 2 * rng.pick(&[(1, 0), (1, 1), (4, 8), (6, 16), (4, 30)]);
    let addressing = if rng.percent(50) {
        let even = 2 * rng.below(memory_len as u64 / 2 + 1) as usize;
        Addressing::Stack { pointer: rng.pick(&[(5, 0), (3, even), (1, memory_len), (1, 510)]) }
    } else {
        Addressing::Hop { len: rng.pick(&[(1, 0), (1, 2), (2, 6), (4, 8), (4, 12), (1, 510)]) }
    };
    let mut repr = Repr::new(word_size, addressing, rng.next_u64() as u16);
    repr.hop = rng.pick(&[(10, 0), (2, 1), (1, 2), (2, -1), (1, -128), (1, 127), (1, 126)]);
    repr.is_reflective = rng.percent(20);
    repr.is_read_only = rng.percent(10);
    repr.status = rng.pick(&[(12, Status::NONE), (1, Status::DONE), (1, Status::FULL), (1, Status(0x60))]);
    repr.encapsulated = rng.pick(&[(1, 0), (1, 0x0800), (1, 0x6666)]);
    let instructions: Vec<_> = (0..rng.below(6)).map(|_| instruction(rng)).collect();
    // Some words are values of the switches and addresses, so that comparisons succeed.
    let words = (0..memory_len.div_ceil(4)).flat_map(|_| word(rng, word_size));
    let memory: Vec<u8> = words.take(memory_len).collect();
    let payload: Vec<u8> = (0..rng.below(20)).map(|_| rng.next_u64() as u8).collect();
    let mut bytes = repr.packet(&instructions, &memory, &payload);
    match rng.below(20) {
        0 => {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << rng.below(8);
        }
        1 => bytes.truncate(rng.below(bytes.len() as u64) as usize),
        2 => {
            let at = 4 + rng.below(2) as usize;
            bytes[at] = rng.next_u64() as u8;
            if let Ok(mut packet) = Packet::new_checked(&mut bytes[..]) {
                packet.fill_checksum();
            }
        }
        _ => {}
    }
    bytes
}

fn instruction(rng: &mut SplitMix64) -> Instruction {
    let weight = |operation| match operation {
        Operation::Cstore => 6,
        Operation::LoadIndirect => 4,
        _ => 2,
    };
    let weights = Operation::ALL.iter().map(|operation| (weight(*operation), *operation)).collect::<Vec<_>>();
    let own = u32::from(OWN_FIELDS) + 2 * rng.below(8) as u32;
    let direct = ADDRESSES[rng.below(5) as usize];
    let address = rng.pick(&[(9, direct), (1, own)]) as u16;
    let odd = u16::from(rng.percent(20));
    let operand = |rng: &mut SplitMix64| {
        let near = rng.below(5) as u8;
        rng.pick(&[(12, near), (1, 62), (2, 63)])
    };
    let (first, second) = (operand(rng), operand(rng));
    let operation = rng.pick(&weights);
    if operation == Operation::Cstore && rng.percent(50) {
        // A word that exists in every switch.
        return Instruction::new(operation, ADDRESSES[2] as u16, first, second);
    }
    Instruction::new(operation, address | odd, first, second)
}

/// Returns four bytes of packet memory.
fn word(rng: &mut SplitMix64, word_size: WordSize) -> [u8; 4] {
    let address = ADDRESSES[rng.below(7) as usize];
    let value = rng.pick(&[(4, 7), (1, 3), (2, 0xff), (1, 0), (2, address)]);
    match word_size {
        WordSize::Bits16 if rng.percent(50) => (value << 16 | value & 0xffff).to_be_bytes(),
        _ => value.to_be_bytes(),
    }
}

fn memory(rng: &mut SplitMix64) -> SparseMemory {
    let mut memory = SparseMemory::new();
    memory.fixed(ADDRESSES[0], rng.pick(&[(3, 7), (1, 0x10007), (1, 3)]));
    memory.counter(ADDRESSES[1], rng.pick(&[(1, 6), (1, 0xffff_ffff), (1, 0xfffe), (1, u64::MAX)]));
    memory.word(ADDRESSES[2] as u16, rng.pick(&[(2, 7), (2, 0x10007), (1, 0)]));
    memory.word(ADDRESSES[3] as u16, rng.pick(&[(1, 7), (1, 0xff)]));
    memory.counter(ADDRESSES[5], rng.next_u64());
    memory.fixed(ADDRESSES[6], 3);
    memory
}

fn rights(rng: &mut SplitMix64) -> AccessRights {
    let mut set = |chance| {
        if rng.percent(chance) {
            return AddressSet::all();
        }
        let chosen = ADDRESSES.iter().filter(|_| rng.percent(60)).map(|address| (*address, *address | 1));
        AddressSet::of(chosen.collect::<Vec<_>>())
    };
    let (reads, writes) = (set(60), set(70));
    AccessRights { writes_enabled: rng.percent(80), reads, writes }
}
