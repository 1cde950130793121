//! Runs the generated dissector in tshark.

use std::process::Command;

use tpp::map::{FieldShape, MemoryMap, RegisterShape, dissector};
use tpp::{AccessRights, SparseMemory, Tcpu};
use wire::tpp::{Addressing, Instruction, Operation, Packet, Repr, UDP_PORT, WordSize};
use wire::{ethernet, ipv4, pcap, udp};

fn ip_packet(port: u16, payload: &[u8]) -> Vec<u8> {
    let udp = udp::Repr { source_port: 4000, destination_port: port };
    let ip = ipv4::Repr::new([10, 0, 1, 1].into(), [10, 0, 2, 2].into(), ipv4::UDP);
    ip.packet(&udp.packet(ip.addresses(), payload))
}

fn frame(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let [destination, source] = [2, 1].map(|last| ethernet::Address([8, 0, 0, 0, last, last]));
    ethernet::Repr { destination, source, ethertype }.packet(payload)
}

/// A transparent program after two hops, a standalone one, and one with a wrong checksum.
fn frames() -> [Vec<u8>; 3] {
    let pushes = [0x0000, 0xb000].map(|address| Instruction::new(Operation::Push, address, 0, 0));
    let mut repr = Repr::new(WordSize::Bits16, Addressing::Stack { pointer: 0 }, 7);
    repr.encapsulated = ethernet::IPV4;
    let mut stack = repr.packet(&pushes, &[0; 12], &ip_packet(53, b"payload"));
    for hop in 1..3 {
        let mut memory = SparseMemory::new();
        memory.fixed(0x0000, hop);
        memory.fixed(0xb000, 10 * hop);
        Tcpu::execute(&mut stack, &mut memory, &AccessRights::all());
    }
    let instructions = [
        Instruction::new(Operation::Cexec, 0x1041, 63, 0),
        Instruction::new(Operation::Cstore, 0x3800, 1, 2),
        Instruction::new(Operation::LoadIndirect, 0, 0, 1),
        Instruction::new(Operation::Max, 0x8002, 2, 0),
        Instruction::new(Operation::Load, 0x5555, 1, 0),
    ];
    let repr = Repr::new(WordSize::Bits32, Addressing::Hop { len: 12 }, 8);
    let standalone = ip_packet(UDP_PORT, &repr.packet(&instructions, &[0; 24], &[]));
    let mut wrong = stack.clone();
    Packet::new_checked(&mut wrong[..]).unwrap().set_checksum(1);
    [frame(0x6666, &stack), frame(ethernet::IPV4, &standalone), frame(0x6666, &wrong)]
}

#[test]
fn tshark_shows_names_values_and_the_packet_behind() {
    if !Command::new("tshark").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return testing::skip("tshark is not installed");
    }
    let folder = std::env::temp_dir().join(format!("tpp-dissector-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (script, capture) = (folder.join("tpp.lua"), folder.join("tpp.pcap"));
    let register = RegisterShape { name: "MyIngress.\"limits\"".to_owned(), width: 32, size: 4 };
    let field = FieldShape { name: "hdr.ipv4.ttl".to_owned(), width: 8 };
    std::fs::write(&script, dissector(&MemoryMap::with_program([register], [field]))).unwrap();
    let mut writer = pcap::Writer::new(std::fs::File::create(&capture).unwrap()).unwrap();
    for frame in frames() {
        writer.write(0, &frame).unwrap();
    }
    drop(writer);
    let fields = [
        "tpp.application",
        "tpp.hop",
        "tpp.sp",
        "tpp.hop_length",
        "tpp.checksum_good",
        "tpp.instruction",
        "tpp.value",
        "tpp.name",
        "udp.dstport",
        "_ws.lua.text",
    ];
    let mut tshark = Command::new("tshark");
    tshark.arg("-X").arg(format!("lua_script:{}", script.display())).arg("-n").arg("-r").arg(&capture);
    tshark.args(["-T", "fields", "-E", "separator=|", "-E", "aggregator=;"]);
    tshark.args(fields.iter().flat_map(|field| ["-e", field]));
    let output = tshark.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let stack_names = "hop 0 Switch:ID;hop 0 Queue:QueueOccupancy;hop 1 Switch:ID;hop 1 Queue:QueueOccupancy;\
                       hop 2 Switch:ID;hop 2 Queue:QueueOccupancy";
    let expected = [
        format!("7|2|8||1|PUSH [Switch:ID];PUSH [Queue:QueueOccupancy]|1;10;2;20;0;0|{stack_names}|53|"),
        "8|0||12|1|CEXEC [Stage1:Version.High], all bits, [0];CSTORE [Link:AppSpecific_0], [1], [2];LOADI [[1]], [0];\
         MAX [Register:MyIngress.\\\"limits\\\"[1]], [2];LOAD [0x5555], [1]|0;0;0;0;0;0|hop 0 indirect;hop 0 0x5555;\
         hop 0 Register:MyIngress.\"limits\"[1]"
            .to_owned(),
        format!("7|2|8||0|PUSH [Switch:ID];PUSH [Queue:QueueOccupancy]|1;10;2;20;0;0|{stack_names}|53|"),
    ];
    let lines: Vec<_> =
        said.lines().map(|line| line.replace("True", "1").replace("False", "0").replace("\\\"", "\"")).collect();
    assert_eq!(lines.len(), 3, "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    for (line, expected) in lines.iter().zip(&expected) {
        assert!(
            line.starts_with(&expected.replace("\\\"", "\"")),
            "{line}\n{expected}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
