//! Whole networks: created, checked, and simulated in virtual time.

use crate::support::{Directory, root, run, triplane};

/// Writes a topology of this shape and returns its path.
fn new(directory: &Directory, arguments: &[&str]) -> String {
    let path = directory.path("lab.toml");
    let made = run(&mut triplane(&[&["lab", "new"], arguments].concat())).ok();
    std::fs::write(&path, made.stdout).expect("the file can be written");
    path
}

#[test]
fn everyone_reaches_everyone_in_every_shape() {
    let shapes: [&[&str]; 7] = [
        &["line", "--switches", "3", "--hosts", "2"],
        &["ring", "--switches", "4"],
        &["star", "--hosts", "3"],
        &["leaf-spine", "--leaves", "3", "--spines", "2", "--hosts", "2"],
        &["fat-tree", "--k", "4"],
        &["dumbbell", "--hosts", "2", "--middle-rate", "10Mbps"],
        &["random", "--switches", "6", "--extra", "2", "--seed", "3"],
    ];
    let directory = Directory::new();
    for shape in shapes {
        let lab = new(&directory, shape);
        run(&mut triplane(&["lab", "check", &lab])).ok();
        let results = run(&mut triplane(&["lab", "sim", &lab, "--json"])).ok().json();
        let ping = &results["traffic"][0];
        assert_eq!(ping["traffic"], "ping", "{shape:?}");
        assert!(ping["sent"].as_u64() >= Some(30), "{shape:?}: {ping}");
        assert_eq!(ping["sent"], ping["received"], "{shape:?}: {}", results["pairs"]);
    }
}

const LOAD: &str = r#"
duration = "100ms"
[[traffic]]
name = "web"
kind = "flows"
from = "all"
to = "all"
rate = "100Mbps"
[[traffic]]
name = "voice"
kind = "udp"
from = "h1"
to = "h4"
rate = "5Mbps"
timing = "poisson"
[random-faults]
every = "20ms"
lasts = "5ms"
[[captures]]
at = "leaf1:1"
file = "leaf1.pcap"
[[expect]]
traffic = "voice"
delivered = 1.0
"#;

/// Returns the names and contents of the files that a run wrote.
fn files(folder: &str) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let names = entries.map(|entry| entry.expect("it can be read").file_name().into_string().expect("names are ASCII"));
    let mut files: Vec<_> = names
        .map(|name| {
            let bytes = std::fs::read(format!("{folder}/{name}")).expect("the file can be read");
            (name, bytes)
        })
        .collect();
    files.sort();
    files
}

#[test]
fn a_seed_gives_the_same_files_on_any_number_of_threads_and_replays_a_failure() {
    let directory = Directory::new();
    let lab = new(&directory, &["leaf-spine", "--leaves", "2", "--spines", "2", "--hosts", "2"]);
    let scenario = directory.path("load.toml");
    std::fs::write(&scenario, LOAD).expect("the file can be written");
    let sim = |seed: &str, threads: &str, out: &str| {
        let out = directory.path(out);
        let arguments = ["lab", "sim", &lab, "--scenario", &scenario, "--seed", seed, "--threads", threads];
        let done = run(&mut triplane(&[&arguments[..], &["--out", &out, "--plot", "--json"]].concat()));
        (done.code, done.json(), files(&out))
    };
    let once = sim("1", "1", "once");
    let names: Vec<&str> = once.2.iter().map(|(name, _)| name.as_str()).collect();
    let expected = [
        "flows.csv",
        "latency.csv",
        "latency.png",
        "latency.svg",
        "leaf1.pcap",
        "links.csv",
        "queues.csv",
        "queues.png",
        "queues.svg",
        "throughput.png",
        "throughput.svg",
    ];
    let names: Vec<&str> = names.into_iter().filter(|name| !name.ends_with(".parquet")).collect();
    assert_eq!(names, expected);
    assert!(once.2.iter().all(|(name, bytes)| bytes.len() > 100 || panic!("{name} is nearly empty")));
    assert!(once == sim("1", "2", "again"), "two threads gave other results than one");
    assert!(once != sim("2", "1", "other"), "another seed gave the same results");

    let seeds = ["lab", "sim", &lab, "--scenario", &scenario, "--seeds", "6", "--threads", "2", "--json"];
    let many = run(&mut triplane(&seeds));
    let failing = many.json()["failing"].as_array().expect("a list").clone();
    assert_eq!(many.code, Some(if failing.is_empty() { 0 } else { 1 }));
    assert!(!failing.is_empty(), "no fault hit the flow in six seeds");
    let replayed = sim(&failing[0]["seed"].to_string(), "1", "replayed");
    assert_eq!(replayed.0, Some(1));
    assert_eq!(replayed.1["unmet"], failing[0]["unmet"]);
}

/// Returns the rows of pixels of a picture: red, green, blue.
fn pixels(path: &str) -> Vec<Vec<[u8; 3]>> {
    let file = std::io::BufReader::new(std::fs::File::open(path).expect("the picture is there"));
    let mut reader = png::Decoder::new(file).read_info().expect("it is PNG");
    let mut bytes = vec![0; reader.output_buffer_size().expect("it is small")];
    let info = reader.next_frame(&mut bytes).expect("it can be read");
    assert_eq!(info.color_type, png::ColorType::Rgb);
    let rows = bytes.chunks(info.width as usize * 3);
    rows.map(|row| row.chunks(3).map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect()).collect()
}

#[test]
fn pictures_have_axes_with_numbers_and_a_line_for_each_series() {
    let directory = Directory::new();
    let out = directory.path("out");
    let example = |name: &str| format!("examples/link-monitor/{name}.toml");
    let (lab, scenario) = (example("lab"), example("scenario"));
    run(&mut triplane(&["lab", "sim", &lab, "--scenario", &scenario, "--out", &out, "--plot"])).ok();

    let text = std::fs::read_to_string(format!("{out}/probes.svg")).expect("the picture is there");
    for expected in ["Values read by probes", "time, s", "s1 to s2", "s2 to s3", "s3 to s1", "6M", "1.6"] {
        assert!(text.contains(&format!(">\n{expected}\n<")), "`{expected}` is not in\n{text}");
    }
    // Each series is a polyline of many points, and one of two in the legend.
    let points = |line: &str| line.split("points=\"").nth(1).map_or(0, |points| points.split(' ').count());
    let long = text.lines().filter(|line| line.contains("<polyline") && points(line) > 150).count();
    assert_eq!(long, 3, "{text}");

    let rows = pixels(&format!("{out}/probes.png"));
    assert_eq!((rows.len(), rows[0].len()), (480, 900));
    // Lines partly lie on the time axis; the grid is light.
    let drawn = |pixel: &[u8; 3]| pixel.iter().any(|part| *part < 100);
    let across = rows.iter().rposition(|row| row.iter().filter(|pixel| drawn(pixel)).count() > 700);
    let across = across.expect("there is an axis of times");
    let down = |column: usize| rows.iter().filter(|row| drawn(&row[column])).count();
    let down = (0..900).find(|column| down(*column) > 300).expect("there is an axis of values");
    assert!(across > 350 && down < 150, "the axes cross at {down}, {across}");
    // Letters are dark pixels: left of the vertical axis, below the time axis, above the picture, and beside the lines
    // of the legend.
    let ink = |rows: &[Vec<[u8; 3]>], from: usize, to: usize| {
        rows.iter().flat_map(|row| &row[from..to]).filter(|pixel| pixel.iter().all(|part| *part < 100)).count()
    };
    assert!(ink(&rows[60..across], 0, down - 8) > 100, "no numbers stand at the axis of values");
    assert!(ink(&rows[across + 8..], down, 900) > 100, "no numbers stand at the axis of times");
    assert!(ink(&rows[..40], 0, 900) > 100, "there is no title");
    // There are as many colours as series, and each colours a line about as long as the picture is wide.
    let mut colours = std::collections::BTreeMap::<[u8; 3], usize>::new();
    for pixel in rows.iter().flatten().filter(|pixel| pixel.iter().max() > pixel.iter().min()) {
        *colours.entry(*pixel).or_default() += 1;
    }
    let lines = colours.values().filter(|count| **count > 200).count();
    // Two of the three lines coincide most of the time.
    assert!((2..=3).contains(&lines), "{colours:?}");
    let busy = rows[..across]
        .iter()
        .filter(|row| row[down + 50..].iter().any(|pixel| pixel.iter().max() > pixel.iter().min()));
    assert!(busy.count() > 200, "no line rises");
}

/// A frame from h2 to h4 of a dumbbell, with these ECN bits.
fn marked(ecn: u8) -> Vec<u8> {
    let mac = |host| wire::ethernet::Address([2, 0, 0, 0, 0, host]);
    let mut packet = wire::ipv4::Repr::new([10, 0, 0, 2].into(), [10, 0, 0, 4].into(), 253);
    packet.traffic_class = ecn;
    let header = wire::ethernet::Repr { destination: mac(4), source: mac(2), ethertype: wire::ethernet::IPV4 };
    header.packet(&packet.packet(&[0; 40]))
}

/// Returns the ECN bits of the packets that reached h4.
fn arrived_marks(rate: &str) -> Vec<u8> {
    let directory = Directory::new();
    let lab = new(&directory, &["dumbbell", "--rate", "100Mbps", "--middle-rate", "10Mbps", "--queue", "50"]);
    let mut capture = wire::pcap::Writer::new(Vec::new()).expect("memory takes a header");
    for number in 0..40 {
        capture.write(number * 10_000_000, &marked(if number % 2 == 0 { 1 } else { 0 })).expect("memory takes a frame");
    }
    std::fs::write(directory.path("ect.pcap"), capture.into_inner()).expect("the file can be written");
    let text = format!(
        "duration = \"1s\"\n[[traffic]]\nkind = \"udp\"\nfrom = \"h1\"\nto = \"h3\"\nrate = \"{rate}\"\nsize = 1000\n\
         [[traffic]]\nname = \"ect\"\nkind = \"replay\"\nfrom = \"h2\"\nfile = \"ect.pcap\"\nstart = \"500ms\"\n\
         [[captures]]\nat = \"s2:2\"\nfile = \"h4.pcap\"\n"
    );
    let scenario = directory.path("ecn.toml");
    std::fs::write(&scenario, text).expect("the file can be written");
    let out = directory.path("out");
    run(&mut triplane(&["lab", "sim", &lab, "--scenario", &scenario, "--out", &out])).ok();
    let bytes = std::fs::read(format!("{out}/h4.pcap")).expect("it was captured");
    let frames = wire::pcap::Reader::new(bytes.as_slice()).expect("a capture");
    let from_h2 = |data: &Vec<u8>| data[12..14] == [8, 0] && data[26..30] == [10, 0, 0, 2];
    frames.map(|frame| frame.expect("a frame").data).filter(from_h2).map(|data| data[15] & 3).collect()
}

#[test]
fn programs_see_the_queue_before_a_slow_link() {
    let idle = arrived_marks("5Mbps");
    assert_eq!((idle.len(), idle.contains(&3)), (40, false), "{idle:?}");
    let busy = arrived_marks("20Mbps");
    let count = |mark| busy.iter().filter(|seen| **seen == mark).count();
    // All ECN-capable packets are marked, the others are unchanged, and many were dropped.
    assert!(count(3) > 0 && count(0) > 0, "{busy:?}");
    assert_eq!(count(1), 0, "{busy:?}");
    assert!(busy.len() < 40, "{busy:?}");
}

#[test]
fn mistakes_in_a_topology_its_programs_and_entries_are_reported_in_one_run() {
    let directory = Directory::new();
    let lab = directory.path("lab.toml");
    std::fs::write(directory.path("bad.p4"), "control c() { apply { x = 1; } }\n").expect("it can be written");
    let entries = r#"{ "table_entries": [ { "table": "RouterIngress.ruotes", "match": {} } ] }"#;
    std::fs::write(directory.path("bad.json"), entries).expect("it can be written");
    let text = r#"
[hosts.h1]
ip = "10.0.0.1/8"
[switches.s1]
program = "missing.p4"
[switches.s2]
program = "bad.p4"
[switches.s3]
program = "builtin:router"
entries = "bad.json"
[switches.s4]
[[links]]
ends = ["h1", "s1:1"]
"#;
    std::fs::write(&lab, text).expect("it can be written");
    let done = run(&mut triplane(&["lab", "check", &lab]));
    assert_eq!(done.code, Some(1), "{done:?}");
    for expected in [
        "missing.p4",
        "specifies no program for `s4`",
        "--program",
        "`x` is not declared",
        "RouterIngress.ruotes",
        "lab.toml:5:11",
    ] {
        assert!(done.stderr.contains(expected), "`{expected}` is not told\n{done:?}");
    }
    // Mistakes in the topology do not hide those in the files that it names.
    std::fs::write(&lab, text.replace("10.0.0.1/8", "10.0.0.1/99")).expect("it can be written");
    let done = run(&mut triplane(&["lab", "check", &lab]));
    let all =
        ["10.0.0.1/99", "missing.p4", "specifies no program for `s4`", "`x` is not declared", "RouterIngress.ruotes"];
    for expected in all {
        assert!(done.stderr.contains(expected), "`{expected}` is not told\n{done:?}");
    }
}

#[test]
fn missing_files_of_a_scenario_are_reported_at_their_lines() {
    let directory = Directory::new();
    let lab = new(&directory, &["star", "--hosts", "2"]);
    let replay = |file: &str| format!("[[traffic]]\nkind = \"replay\"\nfrom = \"h1\"\nfile = \"{file}\"\n");
    directory.write("text.pcap", "this is not a capture");
    let scenario = directory.write("scenario.toml", replay("gone.pcap") + &replay("text.pcap"));
    let done = run(&mut triplane(&["lab", "sim", &lab, "--scenario", &scenario]));
    assert_eq!(done.code, Some(1), "{done:?}");
    for expected in
        ["gone.pcap: No such file", "not a capture file", "scenario.toml:1:", "scenario.toml:5:", "2 errors"]
    {
        assert!(done.stderr.contains(expected), "`{expected}` is not told\n{done:?}");
    }
    let write = "[[writes]]\nat = \"1ms\"\nswitch = \"s1\"\nentries = \"gone.json\"\n";
    let scenario = directory.write("scenario.toml", write.repeat(2));
    let done = run(&mut triplane(&["lab", "sim", &lab, "--scenario", &scenario]));
    for expected in ["gone.json: No such file", "scenario.toml:1:", "scenario.toml:5:"] {
        assert!(done.stderr.contains(expected), "`{expected}` is not told\n{done:?}");
    }
}

#[test]
fn results_are_printed_even_if_they_cannot_be_written() {
    let directory = Directory::new();
    let lab = new(&directory, &["star", "--hosts", "2"]);
    let out = directory.path("out");
    // A directory stands in the place of an output file.
    std::fs::create_dir_all(format!("{out}/links.csv")).expect("it can be made");
    let done = run(&mut triplane(&["lab", "sim", &lab, "--out", &out]));
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(done.stderr.contains("links.csv") && done.stdout.contains("10  echoes"), "{done:?}");
}

#[test]
fn a_topology_of_the_tutorials_runs_with_the_program_that_is_named() {
    let directory = Directory::new();
    let lab = directory.path("topology.json");
    let host = |number: u32| {
        format!(
            r#""h{number}": {{ "ip": "10.0.{number}.{number}/24", "mac": "08:00:00:00:0{number}:0{number}", "commands": [
                "route add default gw 10.0.{number}.254 dev eth0",
                "arp -i eth0 -s 10.0.{number}.254 08:00:00:00:0{number}:fe" ] }}"#
        )
    };
    let text = format!(
        r#"{{ "hosts": {{ {}, {} }}, "switches": {{ "s1": {{ "runtime_json": "s1-runtime.json" }} }},
             "links": [ ["h1", "s1-p1"], ["h2", "s1-p2"] ] }}"#,
        host(1),
        host(2)
    );
    std::fs::write(&lab, text).expect("it can be written");
    let route = |number: u32| {
        format!(
            r#"{{ "table": "RouterIngress.ipv4_lpm", "match": {{ "hdr.ipv4.dst": ["10.0.{number}.{number}", 32] }},
                 "action_name": "RouterIngress.forward",
                 "action_params": {{ "mac": "08:00:00:00:0{number}:0{number}", "port": {number} }} }}"#
        )
    };
    let runtime = format!(r#"{{ "target": "bmv2", "table_entries": [ {}, {} ] }}"#, route(1), route(2));
    std::fs::write(directory.path("s1-runtime.json"), runtime).expect("it can be written");
    let arguments = ["lab", "sim", &lab, "--program", "examples/router/router.p4", "--json"];
    let results = run(&mut triplane(&arguments)).ok().json();
    assert_eq!(results["traffic"][0]["received"], 10, "{results:#}");
}

#[test]
fn programs_of_a_lab_find_their_included_files_and_macros() {
    let directory = Directory::new();
    std::fs::create_dir(directory.path("inc")).expect("it can be made");
    directory.write("inc/other_port.p4", "#define OTHER(port) (SUM - port)\n");
    let wire = std::fs::read_to_string(root().join("examples/wire/wire.p4")).expect("the example");
    let including = wire.replace("#include <v1model.p4>", "#include <v1model.p4>\n#include <other_port.p4>");
    directory.write("wire.p4", including.replace("3 - sm.ingress_port", "OTHER(sm.ingress_port)"));
    let lab = "[defaults]\nprogram = \"wire.p4\"\n[switches.s1]\n[hosts.h1]\nip = \"10.0.0.1/24\"\n\
               [hosts.h2]\nip = \"10.0.0.2/24\"\n[[links]]\nends = [\"h1\", \"s1:1\"]\n\
               [[links]]\nends = [\"s1:2\", \"h2\"]\n";
    let lab = directory.write("lab.toml", lab);
    let done = run(&mut triplane(&["lab", "check", &lab]));
    assert!(done.code == Some(1) && done.stderr.contains("cannot find the included file `other_port.p4`"), "{done:?}");
    let (inc, seeds) = (directory.path("inc"), ["--seeds", "1", "--scenario"]);
    let options = ["-I", &inc, "-D", "SUM=3"];
    let arguments = [&["lab", "sim", &lab, "--json"], &options[..]].concat();
    let results = run(&mut triplane(&arguments)).ok().json();
    assert_eq!(results["traffic"][0]["received"], results["traffic"][0]["sent"], "{results:#}");
    // The command that reproduces a seed has the options as well.
    let missed = "duration = \"10ms\"\n[[traffic]]\nname = \"ping\"\nkind = \"ping\"\nfrom = \"h1\"\nto = \"h2\"\n\
                  [[expect]]\ntraffic = \"ping\"\nlatency_p99 = \"1ns\"\n";
    let scenario = directory.write("scenario.toml", missed);
    let done = run(&mut triplane(&[&["lab", "sim", &lab], &options[..], &seeds, &[&scenario]].concat()));
    assert!(done.stdout.contains(&format!("--include {inc} --define SUM=3 --scenario")), "{done:?}");
}

#[test]
fn an_empty_topology_is_refused() {
    let directory = Directory::new();
    let lab = directory.write("lab.toml", "");
    for command in ["check", "sim"] {
        let done = run(&mut triplane(&["lab", command, &lab]));
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(done.stderr.contains("the topology has no hosts and no switches"), "{done:?}");
    }
}
