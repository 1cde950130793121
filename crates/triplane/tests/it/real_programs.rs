//! What programs of the real world do that examples do not: directives in strings, wide ports, names that two
//! instances share.

use crate::support::{Directory, Done, hex, run, triplane};
use wire::pcap::{Reader, Writer};

fn command(arguments: &[&str]) -> Done {
    run(&mut triplane(arguments))
}

/// Returns a program with this ingress, for the `v1model.p4` that is found first.
fn program(ingress: &str) -> String {
    format!(
        "#include <core.p4>
         #include \"v1model.p4\"
         header h_t {{ bit<16> port; }}
         struct headers {{ h_t h; }}
         struct metadata {{ }}
         parser P(packet_in p, out headers h, inout metadata m, inout standard_metadata_t s) {{
             state start {{ p.extract(h.h); transition accept; }}
         }}
         control V(inout headers h, inout metadata m) {{ apply {{ }} }}
         {ingress}
         control E(inout headers h, inout metadata m, inout standard_metadata_t s) {{ apply {{ }} }}
         control D(packet_out p, in headers h) {{ apply {{ p.emit(h); }} }}
         V1Switch(P(), V(), I(), E(), V(), D()) main;"
    )
}

const FORWARD: &str = "
    control I(inout headers h, inout metadata m, inout standard_metadata_t s) {
        action forward(bit<16> port) { s.egress_spec = (PORT_TYPE) port; }
        table t { key = { h.h.port : exact; } actions = { forward; NoAction; } default_action = NoAction; }
        apply { mark_to_drop(s); t.apply(); }
    }";

#[test]
fn a_program_may_bring_its_own_architecture_file_with_wide_ports() {
    let directory = Directory::new();
    directory.write("v1model.p4", v1model::description::INCLUDES[0].1.replace("bit<9>", "bit<16>"));
    let program = directory.write("wide.p4", program(FORWARD));
    let entry = r#"{"table_entries": [{"table": "t", "match": {"h.h.port": 1},
        "action_name": "forward", "action_params": {"port": 1000}}]}"#;
    let entries = directory.write("entries.json", entry);
    let program = [&*program, "-D", "PORT_TYPE=bit<16>", "--entries", &entries];
    let trace = command(&[&["trace"], &program[..], &["--port", "2000", "--packet", "0001"]].concat()).ok();
    assert!(trace.stdout.contains("1000"), "{}", trace.stdout);
    let beyond = command(&[&["trace"], &program[..], &["--port", "65535", "--packet", "0001"]].concat());
    assert!(beyond.code == Some(2) && beyond.stderr.contains("numbered 0 to 65534"), "{beyond:?}");

    let mut writer = Writer::new(Vec::new()).expect("a buffer can be written");
    writer.write(0, &hex("0001 aaaa")).expect("a buffer can be written");
    let input = directory.write("in.pcap", writer.into_inner());
    let output = directory.path("out.pcap");
    let ports = ["--port", &*format!("2000={input}:"), "--port", &*format!("1000=:{output}")];
    command(&[&["run"], &program[..], &ports].concat()).ok();
    let sent = Reader::new(&std::fs::read(output).expect("a capture")[..]).expect("a capture").next();
    assert_eq!(sent.expect("a packet").expect("a packet").data, hex("0001 aaaa"));

    // A CPU port beyond nine bits.
    let to_cpu = directory.write("cpu.json", entry.replace("1000", "3000"));
    let notes = directory.path("notes.jsonl");
    let program = [program[0], program[1], program[2], "--entries", &to_cpu];
    let cpu = ["--port", ports[1], "--cpu-port", "3000", "--notifications", &notes];
    command(&[&["run"], &program[..], &cpu].concat()).ok();
    let notes = std::fs::read_to_string(notes).expect("it was written");
    assert!(notes.lines().count() == 1 && notes.contains("3000"), "{notes}");

    // The same program for the shipped file, whose ports have nine bits.
    let narrow = Directory::new();
    let program = narrow.write("narrow.p4", self::program(FORWARD));
    let refused = command(&[&["run", &program, "-D", "PORT_TYPE=bit<9>"], &ports[..]].concat());
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("the program's ports are numbered 0 to 510"), "{refused:?}");
    let port = format!("1={input}:");
    let refused = command(&["run", &program, "-D", "PORT_TYPE=bit<9>", "--port", &port, "--cpu-port", "3000"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("port 3000, and the program's ports are numbered 0 to 510"), "{refused:?}");
}

#[test]
fn a_lab_has_the_ports_of_its_programs() {
    let directory = Directory::new();
    directory.write("v1model.p4", v1model::description::INCLUDES[0].1.replace("bit<9>", "bit<16>"));
    let ingress = "
        control I(inout headers h, inout metadata m, inout standard_metadata_t s) {
            apply { s.egress_spec = s.ingress_port == 1000 ? 16w20000 : 16w1000; }
        }";
    directory.write("wide.p4", program(ingress));
    let topology = "
        [hosts.h1]
        ip = \"10.0.0.1/24\"
        mac = \"02:00:00:00:00:01\"
        neighbours = { \"10.0.0.2\" = \"02:00:00:00:00:02\" }
        [hosts.h2]
        ip = \"10.0.0.2/24\"
        mac = \"02:00:00:00:00:02\"
        neighbours = { \"10.0.0.1\" = \"02:00:00:00:00:01\" }
        [switches.s1]
        program = \"wide.p4\"
        cpu_port = 3000
        [[links]]
        ends = [\"h1\", \"s1:1000\"]
        [[links]]
        ends = [\"h2\", \"s1:20000\"]
    ";
    let lab = directory.write("lab.toml", topology);
    let results = command(&["lab", "sim", &lab, "--json"]).ok().json();
    let ping = &results["traffic"][0];
    assert!(ping["sent"].as_u64() > Some(0) && ping["sent"] == ping["received"], "{results:#}");
    directory.write("v1model.p4", v1model::description::INCLUDES[0].1);
    directory.write("wide.p4", program(&ingress.replace("16w20000", "9w1").replace("16w1000", "9w2")));
    let refused = command(&["lab", "check", &lab]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    for expected in ["lab.toml:14:", "numbered 0 to 510", "wider ports in its own v1model.p4"] {
        assert!(refused.stderr.contains(expected), "no `{expected}`: {refused:?}");
    }
}

#[test]
fn a_directive_in_a_restriction_chooses_what_it_says() {
    let directory = Directory::new();
    let ingress = "
        #define LEAST 7
        control I(inout headers h, inout metadata m, inout standard_metadata_t s) {
            @entry_restriction(\"
                port != 0;
        #ifdef STRICT
                port >= LEAST; // LEAST
        #endif
            \")
            table t {
                key = { h.h.port : exact @name(\"port\"); }
                actions = { NoAction; }
                default_action = NoAction;
            }
            apply { t.apply(); }
        }";
    let program = directory.write("choice.p4", program(ingress));
    let loose = command(&["p4info", &program]).ok().stdout;
    assert!(loose.contains("port != 0;") && !loose.contains("LEAST") && !loose.contains("#ifdef"), "{loose}");
    let strict = command(&["p4info", &program, "-D", "STRICT"]).ok().stdout;
    assert!(strict.contains("port >= 7; // LEAST"), "{strict}");
    let mistake = std::fs::read_to_string(&program).expect("it was written").replace("port >=", "prt >=");
    let mistake = directory.write("mistake.p4", mistake);
    command(&["check", &mistake]).ok();
    let strict = command(&["check", &mistake, "-D", "STRICT"]);
    assert!(strict.code == Some(1) && strict.stderr.contains("the table has no key `prt`"), "{strict:?}");
}

#[test]
fn a_name_that_two_instances_share_is_refused_where_names_matter() {
    let directory = Directory::new();
    let ingress = "
        control Part(inout headers h) {
            @name(\".t\") table t { key = { h.h.port : exact; } actions = { NoAction; } default_action = NoAction; }
            apply { t.apply(); }
        }
        control I(inout headers h, inout metadata m, inout standard_metadata_t s) {
            Part() a;
            Part() b;
            apply { a.apply(h); b.apply(h); s.egress_spec = 3; }
        }";
    let program = directory.write("shared.p4", program(ingress));
    let checked = command(&["check", &program]);
    assert!(checked.code == Some(0) && checked.stderr.contains("warning[shared-name]"), "{checked:?}");
    let test = directory.write("test.stf", "add \"t (2)\" h.port:1 NoAction()\npacket 1 0001\nexpect 3 0001$\n");
    command(&["stf", &program, &test]).ok();
    let info = command(&["p4info", &program]);
    assert!(info.code == Some(1) && info.stderr.contains("the same name: `t`"), "{info:?}");
    for table in ["t", "t (2)"] {
        let entry = format!(r#"{{"table_entries": [{{"table": "{table}", "match": {{"h.h.port": 1}}}}]}}"#);
        let entries = directory.write("entries.json", entry);
        let traced = command(&["trace", &program, "--port", "1", "--packet", "0001", "--entries", &entries]);
        let message = "the program gives more than one table the name `t`";
        assert!(traced.code == Some(1) && traced.stderr.contains(message), "{traced:?}");
    }
    let p4runtime = ["run", &program, "--p4runtime", "127.0.0.1:0", "--port", "1=tap:unused"];
    let served = command(&p4runtime);
    assert!(served.code == Some(1) && served.stderr.contains("the same name: `t`"), "{served:?}");
}
