//! The machine refuses what the kernel's verifier refuses.

use std::sync::atomic::AtomicU64;

use bpf::asm::{AccessSize, Alu, AluOperand, AsmError, Assembly, Cond, Instruction, Links, MapRef, Reg};
use bpf::machine::{Environment, MachineFault, RunOutcome, run};

fn encode(instructions: &[Instruction]) -> Vec<u64> {
    let mut code = Assembly::default();
    instructions.iter().for_each(|one| code.push(*one));
    code.assemble(&Links::default(), true).expect("no jumps")
}

fn run_on(instructions: &[Instruction], packet: &mut Vec<u8>) -> Result<RunOutcome, MachineFault> {
    let region = [AtomicU64::new(0), AtomicU64::new(7)];
    let environment =
        Environment { links: Links::default(), region: &region, devices: 1, sockets: 1, cpu: 0, time_ns: 0 };
    run(&encode(instructions), packet, environment)
}

const R0: Reg = Reg(0);
const R1: Reg = Reg(1);
const R2: Reg = Reg(2);
const LOAD_PACKET: Instruction = Instruction::Load(AccessSize::B4, R2, R1, 0);

#[test]
fn loads_are_checked_against_the_packet() {
    let load = |offset| [LOAD_PACKET, Instruction::Load(AccessSize::B2, R0, R2, offset), Instruction::Exit];
    let mut packet = vec![1, 2, 3];
    assert_eq!(run_on(&load(1), &mut packet).map(|outcome| outcome.verdict), Ok(0x0302));
    for offset in [2, 3, -1, i16::MAX, i16::MIN] {
        assert!(matches!(run_on(&load(offset), &mut packet), Err(MachineFault::Memory { at: 1, .. })), "{offset}");
    }
}

#[test]
fn the_region_is_checked_too() {
    let load = |offset| {
        let address = Instruction::LoadAddress(R1, MapRef::Region, offset);
        [address, Instruction::Load(AccessSize::B8, R0, R1, 0), Instruction::Exit]
    };
    assert_eq!(run_on(&load(8), &mut Vec::new()).map(|outcome| outcome.verdict), Ok(7));
    assert!(run_on(&load(16), &mut Vec::new()).is_err(), "outside");
    assert!(run_on(&load(4), &mut Vec::new()).is_err(), "not aligned");
}

#[test]
fn stack_registers_and_ends_are_checked() {
    let below =
        [Instruction::StoreImm(AccessSize::B8, Reg(10), -512, 1), Instruction::Load(AccessSize::B8, R0, Reg(10), -512)];
    assert!(run_on(&[below[0], below[1], Instruction::Exit], &mut Vec::new()).is_ok());
    assert!(run_on(&[Instruction::StoreImm(AccessSize::B8, Reg(10), -520, 1)], &mut Vec::new()).is_err());
    assert_eq!(run_on(&[Instruction::Exit], &mut Vec::new()), Err(MachineFault::NoValue { at: 0, register: 0 }));
    let moved = Instruction::Alu64(Alu::Mov, R0, AluOperand::Imm(1));
    assert_eq!(run_on(&[moved], &mut Vec::new()), Err(MachineFault::NoInstruction { at: 1 }));
    assert!(
        run_on(&[Instruction::Alu64(Alu::Mov, Reg(10), AluOperand::Imm(1))], &mut Vec::new()).is_err(),
        "r10 is constant"
    );
}

/// Moves the start of the packet and returns the result.
fn adjust(by: i32) -> [Instruction; 3] {
    let by = Instruction::Alu64(Alu::Mov, R2, AluOperand::Imm(by));
    [by, Instruction::Call(bpf::uapi::ADJUST_HEAD), Instruction::Exit]
}

#[test]
fn the_start_of_a_packet_moves_within_the_headroom_and_to_14_bytes() {
    let room = bpf::machine::HEADROOM as i32;
    for (by, is_done) in [(-room, true), (-room - 1, false), (6, true), (7, false), (20, false), (21, false), (0, true)]
    {
        let mut packet: Vec<u8> = (0..20).collect();
        let outcome = run_on(&adjust(by), &mut packet).expect("no fault");
        assert_eq!(outcome.verdict == 0, is_done, "{by}");
        let length = if is_done { 20 - by } else { 20 };
        assert_eq!(packet.len(), length as usize, "{by}");
        assert_eq!(packet.last(), Some(&19));
    }
    assert_eq!(run_on(&adjust(0), &mut vec![0; 13]).map(|outcome| outcome.verdict), Ok(-22i32 as u32));
}

#[test]
fn pointers_to_a_packet_whose_start_moved_are_invalid() {
    let keep = |register| Instruction::Alu64(Alu::Mov, Reg(register), AluOperand::Reg(R1));
    let load = |from| Instruction::Load(AccessSize::B1, R0, from, 0);
    let code = |reload: bool| {
        let mut code = vec![keep(6), Instruction::Load(AccessSize::B4, Reg(7), R1, 0)];
        code.extend(&adjust(-2)[..2]);
        if reload {
            code.push(Instruction::Load(AccessSize::B4, Reg(7), Reg(6), 0));
        }
        code.extend([load(Reg(7)), Instruction::Exit]);
        code
    };
    assert!(matches!(run_on(&code(false), &mut vec![1; 20]), Err(MachineFault::Memory { .. })));
    assert!(run_on(&code(true), &mut vec![1; 20]).is_ok());
}

#[test]
fn a_program_that_does_not_end_is_found() {
    let mut code = Assembly::default();
    let again = code.label();
    code.push(Instruction::Bind(again));
    code.push(Instruction::Jump(again));
    let words = code.assemble(&Links::default(), false).expect("a short jump");
    let environment = Environment { links: Links::default(), region: &[], devices: 0, sockets: 0, cpu: 0, time_ns: 0 };
    assert_eq!(run(&words, &mut Vec::new(), environment), Err(MachineFault::Endless));
}

/// Jumps over `count` instructions, under a condition that holds or does not.
fn far(count: usize, holds: bool) -> Assembly {
    let mut code = Assembly::default();
    let end = code.label();
    code.push(Instruction::Alu64(Alu::Mov, R0, AluOperand::Imm(i32::from(holds))));
    code.push(Instruction::JumpIf(Cond::Eq, R0, AluOperand::Imm(1), end));
    (0..count).for_each(|_| code.push(Instruction::Alu64(Alu::Mov, R0, AluOperand::Imm(9))));
    code.push(Instruction::Bind(end));
    code.push(Instruction::Exit);
    code
}

#[test]
fn long_jumps_are_used_where_they_are_needed() {
    for (count, needs_long) in [(10, false), (32_767, false), (32_768, true), (40_000, true)] {
        for (holds, verdict) in [(true, 1), (false, 9)] {
            let code = far(count, holds);
            let short = code.assemble(&Links::default(), false);
            assert_eq!(short.is_err(), needs_long, "{count}");
            assert!(short.is_ok() || short == Err(AsmError::LongJump));
            let words = code.assemble(&Links::default(), true).expect("long jumps");
            let environment =
                Environment { links: Links::default(), region: &[], devices: 0, sockets: 0, cpu: 0, time_ns: 0 };
            assert_eq!(run(&words, &mut Vec::new(), environment).map(|outcome| outcome.verdict), Ok(verdict));
        }
    }
}

#[test]
fn unreachable_code_and_idle_jumps_are_removed() {
    let mut code = Assembly::default();
    let (next, unused) = (code.label(), code.label());
    code.push(Instruction::Jump(next));
    code.push(Instruction::Bind(unused));
    code.push(Instruction::Exit);
    code.push(Instruction::Bind(next));
    code.push(Instruction::Alu64(Alu::Mov, R0, AluOperand::Imm(2)));
    code.push(Instruction::Exit);
    assert_eq!(code.prune(), [true, false, false, true, true, true]);
    assert!(code.is_bound(next) && !code.is_bound(unused));
    assert_eq!(bpf::disassemble(&code.assemble(&Links::default(), false).expect("code")), "0: r0 = 2\n1: exit\n");
}

#[test]
fn instructions_print_as_the_verifier_prints_them() {
    let words = encode(&[
        Instruction::Load64(R1, 0x1_0000_0002),
        Instruction::Load(AccessSize::B4, R2, R1, 4),
        Instruction::Store(AccessSize::B8, R1, -8, R2),
        Instruction::AtomicAdd(R1, 8, R2),
        Instruction::BigEndian(R2, 16),
        Instruction::Alu32(Alu::Rsh, R2, AluOperand::Imm(3)),
        Instruction::Alu64(Alu::Neg, R2, AluOperand::Imm(0)),
        Instruction::Call(51),
        Instruction::Exit,
    ]);
    let expected = "0: r1 = 0x100000002\n2: r2 = *(u32 *)(r1 +4)\n3: *(u64 *)(r1 -8) = r2\n\
                    4: lock *(u64 *)(r1 +8) += r2\n5: r2 = be16 r2\n6: w2 >>= 3\n\
                    7: r2 = -r2\n8: call 51\n9: exit\n";
    assert_eq!(bpf::disassemble(&words), expected);
    assert_eq!(bpf::disassemble(&[u64::MAX]), "0: no instruction: 0xffffffffffffffff\n");
}
