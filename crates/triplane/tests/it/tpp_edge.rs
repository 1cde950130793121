//! The edge of the network of tiny packet programs: hosts without a shim, and hosts that are not trusted.

use serde_json::{Value, json};
use wire::{ethernet, ipv4, pcap, tpp, udp};

use crate::support::{Directory, Done, root, run, triplane};

const PROGRAM: &str = "PUSH [Switch:ID]\nPUSH [PacketMetadata:OutputPort]\n";

/// Simulates a host that puts programs into its datagrams and TCP segments to another one, over two switches. Options
/// are those of the receiver, of its switch, and of the sender's switch.
fn simulate(receiver: &str, last: &str, first: &str) -> Done {
    let directory = Directory::new();
    let lab = run(&mut triplane(&["lab", "new", "line", "--switches", "2", "--rate", "100Mbps"])).ok().stdout;
    let options =
        [("[defaults]", "tpp = \"read\""), ("[hosts.h2]", receiver), ("[switches.s2]", last), ("[switches.s1]", first)];
    let lab = options.iter().fold(lab, |lab, (table, option)| {
        assert!(lab.contains(table), "{lab}");
        lab.replacen(&format!("{table}\n"), &format!("{table}\n{option}\n"), 1)
    });
    let lab = directory.write("lab.toml", lab);
    directory.write("path.tpp", PROGRAM);
    let scenario = "duration = \"1s\"\n\
                    [[traffic]]\nname = \"data\"\nkind = \"udp\"\nfrom = \"h1\"\nto = \"h2\"\nrate = \"1Mbps\"\n\
                    stop = \"900ms\"\nminion = \"path.tpp\"\n\
                    [[traffic]]\nname = \"file\"\nkind = \"tcp\"\nfrom = \"h1\"\nto = \"h2\"\nbytes = 100000\n\
                    minion = \"path.tpp\"\n";
    let scenario = directory.write("scenario.toml", scenario);
    run(&mut triplane(&["lab", "sim", &lab, "--scenario", &scenario, "--json"]))
}

/// Returns datagrams sent and received, and bytes that arrived by TCP.
fn delivered(results: &Value) -> (u64, u64, u64) {
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("a number in {results:#}"));
    let [data, file] = [0, 1].map(|at| &results["traffic"][at]);
    (number(&data["sent"]), number(&data["received"]), number(&file["bytes"]))
}

/// The port of each switch to its host, in a line of two switches.
const TO_HOST: u32 = 1;

#[test]
fn a_host_without_a_shim_receives_what_its_switch_strips() {
    let without = simulate("shim = false", "", "").ok().json();
    let (sent, received, bytes) = delivered(&without);
    assert!(sent > 50 && received == 0 && bytes == 0, "{sent} {received} {bytes}");

    let strip = format!("tpp_strip = [{}]", TO_HOST);
    let with = simulate("shim = false", &strip, "").ok().json();
    let (sent, received, bytes) = delivered(&with);
    assert_eq!((received, bytes), (sent, 100_000), "{with:#}");
    let counts = |at: usize| &with["switches"][at]["tiny_programs"];
    assert!(counts(0)["executed"].as_u64() >= Some(sent) && counts(0)["stripped"] == 0, "{with:#}");
    assert_eq!(counts(1)["executed"], counts(1)["stripped"], "{with:#}");
    assert_eq!(counts(1)["executed"], counts(0)["executed"], "{with:#}");

    // A host with a shim collects the programs, unless its switch strips them.
    let collected = |results: &Value| results["traffic"][0]["minion"]["arrived"].as_u64();
    let (shim, stripped) = (simulate("", "", "").ok().json(), simulate("", &strip, "").ok().json());
    assert_eq!(delivered(&shim), delivered(&stripped));
    assert_eq!((collected(&shim), collected(&stripped)), (Some(sent), Some(0)), "{shim:#}");
}

#[test]
fn programs_of_a_host_that_is_not_trusted_are_dropped_with_their_packets() {
    let refused = simulate("", "", &format!("tpp_refuse = [{}]", TO_HOST)).ok().json();
    let (sent, received, bytes) = delivered(&refused);
    assert!(sent > 50 && received == 0 && bytes == 0, "{refused:#}");
    let carried = |from: &str| {
        let links = refused["links"].as_array().expect("a list");
        links.iter().find(|link| link["from"] == from).expect("the link")["carried"].as_u64().expect("a number")
    };
    // An ARP request was answered, and nothing else passed the switch.
    assert!(carried("h1") > sent && carried("s1:2") <= 1, "{refused:#}");
    assert_eq!(refused["switches"][0]["tiny_programs"]["executed"], 0);
}

#[test]
fn a_host_without_a_shim_inserts_nothing() {
    let directory = Directory::new();
    let lab = run(&mut triplane(&["lab", "new", "line", "--switches", "2"])).ok().stdout;
    let lab = lab.replacen("[hosts.h1]\n", "[hosts.h1]\nshim = false\n", 1);
    let lab = directory.write("lab.toml", lab.replacen("[defaults]\n", "[defaults]\ntpp = \"read\"\n", 1));
    directory.write("path.tpp", PROGRAM);
    let scenario = "[[traffic]]\nkind = \"udp\"\nfrom = \"h1\"\nto = \"h2\"\nrate = \"1Mbps\"\n\
                    minion = \"path.tpp\"\n";
    let scenario = directory.write("scenario.toml", scenario);
    let done = run(&mut triplane(&["lab", "sim", &lab, "--scenario", &scenario]));
    assert!(done.code == Some(1) && done.stderr.contains("`h1` has no shim"), "{done:?}");
}

/// Returns a packet, and the same with a program before it.
fn frames() -> [Vec<u8>; 2] {
    let udp = udp::Repr { source_port: 4000, destination_port: 53 };
    let ip = ipv4::Repr::new([10, 0, 1, 1].into(), [10, 0, 2, 2].into(), ipv4::UDP);
    let packet = ip.packet(&udp.packet(ip.addresses(), b"payload"));
    let (mut sources, mut diagnostics) = (Default::default(), diagnostics::Diagnostics::new());
    let map = ::tpp::MemoryMap::new();
    let mut program = ::tpp::assemble(&mut sources, "path.tpp", PROGRAM, &map, &mut diagnostics).expect("it is right");
    program.repr.encapsulated = ethernet::IPV4;
    let [destination, source] = [2, 1].map(|last| ethernet::Address([8, 0, 0, 0, last, last]));
    let frame = |ethertype, payload: &[u8]| ethernet::Repr { destination, source, ethertype }.packet(payload);
    [frame(ethernet::IPV4, &packet), frame(tpp::ETHERTYPE, &program.packet(&packet))]
}

#[test]
fn a_run_strips_and_refuses_at_the_ports_of_its_options() {
    let directory = Directory::new();
    let [packet, with_program] = frames();
    let mut writer = pcap::Writer::new(Vec::new()).expect("a capture");
    [&packet, &with_program].into_iter().for_each(|frame| writer.write(0, frame).expect("it is written"));
    let capture = directory.write("in.pcap", writer.into_inner());
    let out = directory.path("out.pcap");
    let run_with = |more: &[&str]| {
        let ports = [format!("1={capture}:"), format!("2=:{out}")];
        let arguments = ["run", "examples/wire/wire.p4", "--json", "--port", &ports[0], "--port", &ports[1]];
        run(triplane(&[&arguments, more].concat()).current_dir(root()))
    };
    let left = |more: &[&str]| {
        let summary = run_with(more).ok().json();
        let bytes = std::fs::read(&out).expect("a capture");
        let frames = pcap::Reader::new(bytes.as_slice()).expect("a capture").map(|frame| frame.expect("a frame").data);
        (frames.collect::<Vec<_>>(), summary)
    };
    let (frames, _) = left(&["--tpp", "7"]);
    assert!(frames[0] == packet && frames[1].len() == with_program.len() && frames[1] != with_program);
    for executor in [&[][..], &["--interpret"]] {
        let (frames, summary) = left(&[&["--tpp", "7", "--tpp-strip", "2"], executor].concat());
        assert_eq!(frames, [packet.clone(), packet.clone()]);
        let expected = json!({ "executed": 1, "refused": 0, "limited": 0, "stripped": 1 });
        assert_eq!(summary["tiny_programs"], expected, "{summary:#}");
        let (frames, summary) = left(&[&["--tpp", "7", "--tpp-refuse", "1"], executor].concat());
        assert_eq!(frames, std::slice::from_ref(&packet));
        assert!(summary.to_string().contains("rx.tpp-refused"), "{summary:#}");
        // Other ports are not concerned.
        assert_eq!(left(&["--tpp", "7", "--tpp-strip", "1", "--tpp-refuse", "2"]).0.len(), 2);
    }
    for (options, message) in [
        (&["--tpp-strip", "2"][..], "--tpp <NUMBER>"),
        (&["--tpp-refuse", "2"], "--tpp <NUMBER>"),
        (&["--tpp", "7", "--tpp-strip", "2,3"], "--tpp-strip names port 3, which no --port has; the ports are 1, 2"),
        (&["--tpp", "7", "--tpp-refuse", "9"], "--tpp-refuse names port 9, which no --port has; the ports are 1, 2"),
    ] {
        let refused = run_with(options);
        assert_eq!((refused.code, refused.stderr.contains(message)), (Some(2), true), "{refused:?}");
    }
}
