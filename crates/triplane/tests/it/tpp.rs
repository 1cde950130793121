//! Tests `triplane tpp`: assembling, disassembling and analysing programs; captures; the map.

use wire::tpp::{Addressing, Instruction, Operation, Repr, UDP_PORT, WordSize};
use wire::{ethernet, ipv4, pcap, udp};

use crate::support::{Directory, Done, root, run, triplane};

const BURSTS: &str = "\
.word 16
.hops 5
.app 7
PUSH [PacketMetadata:InputPort]
PUSH [PacketMetadata:OutputPort]
PUSH [Queue:ID]
";

fn command(arguments: &[&str]) -> Done {
    let arguments: Vec<_> = [&["tpp"], arguments].concat();
    run(&mut triplane(&arguments))
}

#[test]
fn a_program_is_assembled_and_disassembled() {
    let directory = Directory::new();
    let (source, bytes) = (directory.write("bursts.tpp", BURSTS), directory.path("bursts.bin"));
    let printed = command(&["asm", &source]).ok();
    assert!(printed.stdout.starts_with("10001b0f 0000"), "{printed:?}");
    assert_eq!(printed.stderr, "");
    assert_eq!(command(&["asm", &source, "-o", &bytes]).ok().stdout, "");
    let written = std::fs::read(&bytes).unwrap();
    assert_eq!(written.len(), 54);
    // Bytes and digits are the same program.
    let digits = directory.write("bursts.hex", printed.stdout);
    let [text, other] = [&bytes, &digits].map(|path| command(&["dis", path]).ok().stdout);
    assert_eq!(text, other);
    assert!(text.contains(".app 7\nPUSH [PacketMetadata:InputPort]\n"), "{text}");
    assert!(text.contains("# hop 4: PacketMetadata:InputPort 0, PacketMetadata:OutputPort 0, Queue:ID 0\n"), "{text}");
    let again = directory.write("again.tpp", &text);
    let json = command(&["asm", &again, "--json"]).ok().json();
    let hex: String = written.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!((json["bytes"].as_str(), json["length"].as_u64()), (Some(&hex[..]), Some(54)));
}

#[test]
fn mistakes_are_shown_in_their_line() {
    let directory = Directory::new();
    let source = directory.write("wrong.tpp", "PUSH [Queue:QueueOcupancy]\n");
    for what in ["asm", "check"] {
        let done = command(&[what, &source]);
        assert_eq!(done.code, Some(1), "{done:?}");
        for part in ["wrong.tpp:1:6", "^^^^", "did you mean `Queue:QueueOccupancy`?", "error: 1 error"] {
            assert!(done.stderr.contains(part), "{part}: {done:?}");
        }
    }
    let done = command(&["dis", &directory.write("short.hex", "1000 1b0f")]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stderr.contains("is not a program: TPP: 12 bytes are needed and 4 are there"), "{done:?}");
    assert_eq!(command(&["check", "no/such.tpp"]).code, Some(3));
}

#[test]
fn an_analysis_has_read_and_write_sets_and_the_worst_case() {
    let directory = Directory::new();
    let text = ".mode hop\n.hops 4\nLOAD [Queue:QueueOccupancy], [Packet:hop[0]]\n\
                CSTORE [Link:AppSpecific_0], [Packet:hop[1]], [Packet:hop[2]]\n";
    let source = directory.write("rcp.tpp", text);
    let done = command(&["check", &source]).ok();
    let expected = format!(
        "{source}: 2 instructions, memory for 4 hops\n\
         reads       Queue:QueueOccupancy, Link:AppSpecific_0\n\
         writes      Link:AppSpecific_0\n\
         worst case  1 read, 0 writes, 1 CSTORE a hop; 68 bytes a packet\n"
    );
    let sorted =
        expected.replace("Queue:QueueOccupancy, Link:AppSpecific_0", "Link:AppSpecific_0, Queue:QueueOccupancy");
    assert_eq!(done.stdout, sorted);
    let json = command(&["check", &source, "--json"]).ok().json();
    assert_eq!((json["hops"].as_u64(), json["permitted"].as_bool()), (Some(4), Some(true)));
    assert_eq!(json["writes"][0]["name"], "Link:AppSpecific_0");
}

#[test]
fn a_policy_refuses_what_it_does_not_permit() {
    let directory = Directory::new();
    let source = directory.write("write.tpp", ".memory 5\nSTORE [Link:AppSpecific_1], [Packet:0]\n");
    let policy = directory.write("policy", "7 read all\n7 write Link:AppSpecific_0\n8 write Link:AppSpecific_1\n");
    let check = |application: &str| command(&["check", &source, "--policy", &policy, "--application", application]);
    check("8").ok();
    let refused = check("7");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("the application may not write `Link:AppSpecific_1`"), "{refused:?}");
    assert!(refused.stderr.contains("write.tpp:2:1"), "{refused:?}");
    assert!(command(&["check", &source, "--no-writes"]).stderr.contains("writes are disabled"));
}

#[test]
fn registers_and_fields_of_a_program_have_names() {
    let directory = Directory::new();
    let p4 = directory.write(
        "counting.p4",
        "#include <core.p4>\n#include <v1model.p4>\nheader h_t { bit<8> kind; bit<32> key; }\n\
         struct H { h_t h; }\nstruct M {}\n\
         parser P(packet_in p, out H hdr, inout M m, inout standard_metadata_t s) {\n\
             state start { p.extract(hdr.h); transition accept; } }\n\
         control V(inout H hdr, inout M m) { apply {} }\n\
         control I(inout H hdr, inout M m, inout standard_metadata_t s) {\n\
             register<bit<32>>(16) rates;\n\
             apply { bit<32> r; rates.read(r, 3); hdr.h.key = r; s.egress_spec = 1; } }\n\
         control E(inout H hdr, inout M m, inout standard_metadata_t s) { apply {} }\n\
         control D(packet_out p, in H hdr) { apply { p.emit(hdr.h); } }\n\
         V1Switch(P(), V(), I(), E(), V(), D()) main;\n",
    );
    let text = ".memory 1\nSTORE [Register:rates[3]], [Packet:0]\nPUSH [Field:hdr.h.key]\n";
    let source = directory.write("register.tpp", text);
    let done = command(&["check", &source, "--program", &p4]).ok();
    assert!(done.stdout.contains("reads       Field:hdr.h.key\nwrites      Register:I.rates[3]\n"), "{done:?}");
    let map = command(&["map", "register", "Field", "--program", &p4]).ok().stdout;
    assert!(map.contains("0x8000  Register:I.rates[i]  32") && map.contains("Field:hdr.h.kind"), "{map}");
    let json = command(&["map", "register", "--json", "--program", &p4]).ok().json();
    let number = format!("`Switch:RegisterMap` is {:#010x}", json["register_map"].as_u64().expect("a number"));
    assert!(map.contains(&number), "{map} {number}");
    assert_eq!(command(&["check", &source]).code, Some(1), "without the program there are no such names");
    let tables = command(&["map", "stage", "--program", "examples/router/router.p4"]).ok().stdout;
    assert!(tables.contains("0x1040  Stage1, FlowEntry1"), "{tables}");
    assert!(tables.contains("table RouterIngress.ipv4_lpm"), "{tables}");
}

#[test]
fn the_map_is_listed_in_every_form() {
    let text = command(&["map", "queue"]).ok().stdout;
    assert!(text.starts_with("0xb000  Queue:QueueOccupancy   32  packets"), "{text}");
    assert!(!text.contains("Switch:"), "{text}");
    let json = command(&["map", "--json"]).ok().json();
    let rows = json["rows"].as_array().expect("rows");
    assert!(rows.len() > 70 && rows[0]["name"] == "Switch:ID" && rows[0]["int"]["bit"] == 0, "{}", rows[0]);
    assert!(command(&["map", "--lua"]).ok().stdout.contains("[0xb000] = \"Queue:QueueOccupancy\""));
    assert!(
        command(&["map", "--int"])
            .ok()
            .stdout
            .contains("| 7 | Egress interface TX utilization | 32 | `Link:TX-Utilization` |")
    );
    let wrong = command(&["map", "Queues"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.stderr.contains("did you mean `Queue`?"), "{wrong:?}");
}

/// The reference in docs/tpp.md is generated.
#[test]
fn the_documentation_has_the_map() {
    let path = crate::support::root().join("docs/tpp.md");
    let text = std::fs::read_to_string(&path).expect("docs/tpp.md");
    let (begin, end) = ("<!-- map -->\n", "<!-- end of map -->");
    let (before, rest) = text.split_once(begin).expect("the beginning of the map");
    let (_, after) = rest.split_once(end).expect("the end of the map");
    let map = command(&["map", "--markdown"]).ok().stdout;
    let int = command(&["map", "--int"]).ok().stdout;
    let found = format!("{before}{begin}{map}### INT 2.1\n\n{int}{end}{after}");
    testing::golden::assert_golden(&path, &found);
}

#[test]
fn the_programs_of_a_capture_are_listed() {
    let push = [Instruction::new(Operation::Push, 0xb000, 0, 0)];
    let mut repr = Repr::new(WordSize::Bits32, Addressing::Stack { pointer: 4 }, 7);
    repr.hop = 1;
    let program = repr.packet(&push, &[0, 0, 0, 9, 0, 0, 0, 0], &[]);
    let frame = |ethertype, payload: &[u8]| {
        let [destination, source] = [2, 1].map(|last| ethernet::Address([8, 0, 0, 0, last, last]));
        ethernet::Repr { destination, source, ethertype }.packet(payload)
    };
    let datagram = |source_port, destination_port| {
        let ip = ipv4::Repr::new([10, 0, 1, 1].into(), [10, 0, 2, 2].into(), ipv4::UDP);
        let udp = udp::Repr { source_port, destination_port };
        frame(ethernet::IPV4, &ip.packet(&udp.packet(ip.addresses(), &program)))
    };
    let mut writer = pcap::Writer::new(Vec::new()).unwrap();
    for frame in [frame(0x6666, &program), datagram(1, 53), datagram(4000, UDP_PORT), datagram(UDP_PORT, 4000)] {
        writer.write(0, &frame).unwrap();
    }
    let directory = Directory::new();
    let capture = directory.write("tpp.pcap", writer.into_inner());
    let done = command(&["dis", &capture]).ok();
    let lines: Vec<_> = done.stdout.lines().collect();
    assert_eq!(lines[0], "frame 1: TPP app 7, 1 instruction, hop 1, SP 4 of 8");
    assert_eq!(lines[1], "  hop 0: Queue:QueueOccupancy 9");
    assert!(lines[2].starts_with("frame 3: 10.0.1.1:4000 > 10.0.2.2:26214 UDP 24 bytes, TPP app 7"), "{}", lines[2]);
    assert!(lines[4].starts_with("frame 4: 10.0.1.1:26214 > 10.0.2.2:4000"), "{}", lines[4]);
    let json = command(&["dis", &capture, "--json"]).ok().json();
    assert_eq!((json["frames"].as_u64(), json["programs"].as_array().map(Vec::len)), (Some(4), Some(3)));
    assert_eq!(json["programs"][2]["hops"][0][0]["value"], 9);
}

/// Writes a capture of two programs in datagrams to a host. Returns its path.
fn probes(directory: &Directory, programs: &[Vec<u8>; 2], host: [u8; 4]) -> String {
    let mut writer = pcap::Writer::new(Vec::new()).unwrap();
    for program in programs {
        let ip = ipv4::Repr::new([10, 0, 1, 1].into(), host.into(), ipv4::UDP);
        let udp = udp::Repr { source_port: 4000, destination_port: UDP_PORT };
        let [destination, source] = [2, 1].map(|last| ethernet::Address([8, 0, 0, 0, last, last]));
        let frame = ethernet::Repr { destination, source, ethertype: ethernet::IPV4 };
        writer.write(0, &frame.packet(&ip.packet(&udp.packet(ip.addresses(), program)))).unwrap();
    }
    directory.write("in.pcap", writer.into_inner())
}

/// Runs a P4 program on a capture of [`probes`]. Returns hop number and status of the programs that leave by port 2.
fn executed(directory: &Directory, capture: &str, arguments: &[&str]) -> [(serde_json::Value, serde_json::Value); 2] {
    let out = directory.path("out.pcap");
    let (first, second) = (format!("1={capture}:"), format!("2=:{out}"));
    let ports = ["--port", &first, "--port", &second];
    run(triplane(&[&["run"], arguments, &ports].concat()).current_dir(root())).ok();
    let json = command(&["dis", &out, "--json"]).ok().json();
    [0, 1].map(|at| (json["programs"][at]["hop"].clone(), json["programs"][at]["status"].clone()))
}

#[test]
fn registers_are_written_with_an_option_of_their_own() {
    let directory = Directory::new();
    let router = "examples/fast-routes/router.p4";
    let assembled = |text: &str| {
        let (source, bytes) = (directory.write("program.tpp", text), directory.path("program.bin"));
        command(&["asm", &source, "-o", &bytes, "--program", &root().join(router).display().to_string()]).ok();
        std::fs::read(bytes).expect("the program")
    };
    let programs =
        ["PUSH [Register:RouteIngress.masks[1]]\n", ".memory 5\nSTORE [Register:RouteIngress.masks[1]], [Packet:0]\n"];
    let capture = probes(&directory, &programs.map(assembled), [10, 0, 0, 2]);
    // `s2` sends this address by port 2.
    let switch = [router, "--entries", "examples/fast-routes/s2.json", "--tpp", "7"];
    for (option, status) in [("--tpp-writes", "suppressed"), ("--tpp-register-writes", "")] {
        let left = executed(&directory, &capture, &[&switch[..], &[option]].concat());
        assert_eq!(left, [(1.into(), "".into()), (1.into(), status.into())], "{option}");
    }
}

#[test]
fn a_run_executes_programs_and_writes_only_if_told() {
    let directory = Directory::new();
    let assembled = |text: &str| {
        let (source, bytes) = (directory.write("program.tpp", text), directory.path("program.bin"));
        command(&["asm", &source, "-o", &bytes]).ok();
        std::fs::read(bytes).expect("the program")
    };
    let programs = ["PUSH [Switch:ID]\n", ".memory 5\nSTORE [Switch:AppSpecific_0], [Packet:0]\n"].map(assembled);
    let capture = probes(&directory, &programs, [10, 0, 2, 2]);
    let left = |more: &[&str]| executed(&directory, &capture, &[&["examples/wire/wire.p4"], more].concat());
    let is = |hop: u64, status: &str| (hop.into(), status.into());
    assert_eq!(left(&[]), [is(0, ""), is(0, "")], "they are ordinary frames");
    assert_eq!(left(&["--tpp", "7"]), [is(1, ""), is(1, "suppressed")]);
    assert_eq!(left(&["--tpp", "7", "--tpp-writes"]), [is(1, ""), is(1, "")]);
    let json = command(&["dis", &directory.path("out.pcap"), "--json"]).ok().json();
    assert_eq!(json["programs"][0]["hops"][0][0]["value"], 7, "the number of the switch");
    // Both packets arrive at the same time, and a limit below 20 lets one program through.
    assert_eq!(left(&["--tpp", "7", "--tpp-limit", "19"]), [is(1, ""), is(0, "")]);
    // The summary counts the programs.
    let summary = |more: &[&str]| {
        let first = format!("1={capture}:");
        let run_it = ["run", "examples/wire/wire.p4", "--port", &first, "--port", "2=:/dev/null"];
        run(triplane(&[&run_it[..], more].concat()).current_dir(root())).ok()
    };
    let text = summary(&["--tpp", "7", "--tpp-limit", "19"]).stdout;
    assert!(text.contains("\n1 tiny packet program executed, 1 beyond the limit of executions\n"), "{text}");
    assert!(!summary(&[]).stdout.contains("tiny packet program"));
    let json = summary(&["--tpp", "7", "--json"]).json();
    let expected = serde_json::json!({ "executed": 2, "refused": 0, "limited": 0, "stripped": 0 });
    assert_eq!(json["tiny_programs"], expected, "{json:#}");
    for (options, message) in [
        (&["--tpp-limit", "19"][..], "--tpp <NUMBER>"),
        (&["--tpp", "7", "--tpp-limit", "0"], "0 is not from 1 to 4294967295"),
    ] {
        let refused = run(triplane(&[&["run", "examples/wire/wire.p4"][..], options].concat()).current_dir(root()));
        assert_eq!((refused.code, refused.stderr.contains(message)), (Some(2), true), "{refused:?}");
    }
}
