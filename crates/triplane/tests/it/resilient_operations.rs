//! Tests operations of resilient state: the output of `check`, rows and metrics of running switches and stores, planned
//! moves, and the drawing of a failover.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use testing::golden::GoldenFiles;
use testing::lock::LIVE_TRAFFIC;

use crate::resilient::{LiveCluster, PROGRAM};
use crate::support::controller::set_program;
use crate::support::metrics::{metrics_address, samples};
use crate::support::{Directory, Running, root, run, triplane};

#[test]
fn check_lists_resilient_state() {
    let done = run(&mut triplane(&["check", "examples/nat/nat.p4"])).ok();
    let expected = "\
resilient group \"NatIngress.outbound\": at most 64,512 rows, each with a key of 7 bytes and 2 bytes of values; the \
stores create entries; a row is removed after 5 min without use
  table NatIngress.outbound: entries with NatIngress.translate_source; a miss makes the row, with a number of the pool \
1024-65535 that no other row has
";
    assert!(done.stdout.contains(expected), "{done:?}");
    let found = run(&mut triplane(&["check", PROGRAM, "--json"])).ok().json();
    let keys = &found["resilient"][0];
    assert_eq!(
        (&keys["group"], keys["rows"].as_u64(), keys["value_bytes"].as_u64()),
        (&"keys".into(), Some(65_536), Some(8))
    );
    assert_eq!(keys["idle_ms"], serde_json::Value::Null);
    assert_eq!(keys["registers"].as_array().map(Vec::len), Some(2), "{keys:#}");
    let router = run(&mut triplane(&["check", "examples/router/router.p4", "--json"])).ok().json();
    assert_eq!(router["resilient"], serde_json::json!([]));
}

#[test]
fn examples_with_resilient_state_forget_no_register() {
    let mut seen = 0;
    for folder in std::fs::read_dir(root().join("examples")).expect("the examples").flatten() {
        for file in std::fs::read_dir(folder.path()).into_iter().flatten().flatten() {
            let is_program = file.path().extension().is_some_and(|extension| extension == "p4");
            let text = if is_program { std::fs::read_to_string(file.path()).expect("a source") } else { String::new() };
            if text.contains("@resilient") {
                let path = file.path().display().to_string();
                let done = run(&mut triplane(&["check", &path])).ok();
                assert!(!done.stderr.contains("unannotated-state"), "{done:?}");
                seen += 1;
            }
        }
    }
    assert!(seen >= 6, "{seen} programs");
}

#[test]
fn a_forgotten_register_is_a_warning_that_can_be_silenced() {
    let directory = Directory::new();
    let text = std::fs::read_to_string(root().join(PROGRAM)).expect("a source");
    let text = text
        .replace("@resilient[group = \"keys\"] register<bit<32>>(65536) changes", "register<bit<32>>(65536) changes");
    let path = directory.write("forgotten.p4", text.as_str());
    let done = run(&mut triplane(&["check", &path])).ok();
    assert!(done.stderr.contains("warning[unannotated-state]") && done.stderr.contains("changes"), "{done:?}");
    let quiet = run(&mut triplane(&["check", &path, "--allow", "unannotated-state"])).ok();
    assert_eq!(quiet.stderr, "");
    let noted = directory.write(
        "noted.p4",
        text.replace("register<bit<32>>(65536) changes", "@noWarn register<bit<32>>(65536) changes"),
    );
    assert_eq!(run(&mut triplane(&["check", &noted])).ok().stderr, "");
}

#[test]
fn mistakes_about_rows_are_one_sentence() {
    let directory = Directory::new();
    let none = directory.path("none.sock");
    let refused = |arguments: &[&str], code: i32, part: &str| {
        let done = run(&mut triplane(arguments));
        assert!(done.code == Some(code) && done.stderr.contains(part), "{done:?} lacks {part:?}");
    };
    refused(&["resilient", "rows", "--socket", &none], 3, "no switch listens on");
    refused(&["resilient", "move", "--socket", &none, "--away", "4000"], 2, "up to 3600 seconds");
    refused(&["run", PROGRAM, "--port", "1=lo", "--socket", &none], 2, "--store");
}

/// Returns the samples of a metrics server in the namespace of the switches.
fn read_metrics(live: &LiveCluster, address: &str) -> BTreeMap<String, f64> {
    live.network.switches.enter(|| samples(address)).expect("to enter a namespace")
}

#[test]
fn rows_of_a_running_switch_are_shown_and_moved_and_counted() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(live) = LiveCluster::new() else { return };
    let start = |arguments: &[&str]| {
        let mut command = live.network.switches.command(triplane(&[]).get_program()).expect("a command");
        Running::start(command.args(arguments).current_dir(root()))
    };
    let mut stores = ["a", "b"].map(|name| {
        let state = live.directory.path(name);
        let arguments = ["store", "run", name, "--cluster", &live.cluster, "--state-dir", &state, "--durable"];
        start(&[&arguments[..], &["--metrics", "127.0.0.1:0"]].concat())
    });
    let metrics = stores.each_mut().map(metrics_address);
    let socket = live.directory.path("s1.sock");
    let switch = |name: &str, port: &str, more: &[&str]| {
        let arguments = ["run", PROGRAM, "--port", port, "--store", &live.cluster, "--switch", name];
        start(&[&arguments[..], more].concat())
    };
    let mut first = switch("s1", "1=p1", &["--socket", &socket, "--metrics", "127.0.0.1:0", "--json"]);
    let address = metrics_address(&mut first);
    let mut second = switch("s2", "1=p2", &[]);
    second.wait_for("press Ctrl-C to stop");
    assert_eq!(live.network.count(0, 50), (1..=50).collect::<Vec<_>>());

    let mode = std::fs::metadata(&socket).expect("the socket is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let rows = |more: &[&str]| run(&mut triplane(&[&["resilient", "rows", "--socket", &socket][..], more].concat()));
    let found = rows(&["--json"]).ok().json();
    let row = &found["rows"][0];
    assert_eq!((found["granted"].as_u64(), &row["group"], &row["state"]), (Some(1), &"keys".into(), &"owned".into()));
    assert_eq!((&row["key"][0]["shown"], &row["values"][0]["shown"]), (&"7".into(), &"50".into()), "{row:#}");
    assert!(rows(&["--key", "7"]).ok().stdout.contains("values=50 changes=50"));
    assert_eq!(rows(&["--key", "8", "--json"]).ok().json()["rows"], serde_json::json!([]));
    let beginning = rows(&["--key", "7*", "--limit", "1", "--json"]).ok().json();
    assert_eq!(beginning["rows"].as_array().map(Vec::len), Some(1), "{beginning:#}");
    assert_eq!(rows(&["--key", "8*", "--json"]).ok().json()["rows"], serde_json::json!([]));
    let wrong = rows(&["--group", "key"]);
    assert!(wrong.code == Some(1) && wrong.stderr.contains("it has \"keys\""), "{wrong:?}");

    let samples = read_metrics(&live, &address);
    let sample = |name: &str| *samples.get(name).unwrap_or_else(|| panic!("{name} is not in {samples:#?}"));
    assert_eq!(sample("triplane_resilient_rows_granted{group=\"keys\"}"), 1.0);
    assert!(sample("triplane_resilient_requests_total{kind=\"write\"}") >= 50.0);
    assert_eq!(sample("triplane_resilient_acknowledgement_seconds_count"), 50.0);
    assert!(sample("triplane_resilient_acknowledgement_seconds_sum") > 0.0);
    for name in [
        "triplane_resilient_rows_asked",
        "triplane_resilient_rows_releasing",
        "triplane_resilient_snapshots_total",
        "triplane_resilient_snapshot_pages_total",
        "triplane_resilient_snapshot_bytes_total",
        "triplane_resilient_snapshots_restored_total",
        "triplane_resilient_retransmissions_total",
        "triplane_resilient_packets_waiting",
        "triplane_resilient_outputs_held",
        "triplane_resilient_held_bytes",
        "triplane_resilient_piggyback_frames_total",
        "triplane_resilient_piggyback_lost_total",
        "triplane_resilient_lease_seconds{shard=\"0\"}",
        "triplane_resilient_refusals_total{reason=\"pool-exhausted\"}",
        "triplane_drops_total{reason=\"resilient.pool-exhausted\"}",
        "triplane_drops_total{reason=\"resilient.store-full\"}",
        "triplane_drops_total{reason=\"resilient.stopped\"}",
    ] {
        sample(name);
    }
    let [head, tail] = &metrics;
    let (head, tail) = (read_metrics(&live, head), read_metrics(&live, tail));
    assert_eq!(head.get("triplane_store_role{shard=\"0\",role=\"head\"}"), Some(&1.0), "{head:#?}");
    assert_eq!(tail.get("triplane_store_role{shard=\"0\",role=\"tail\"}"), Some(&1.0), "{tail:#?}");
    for store in [&head, &tail] {
        assert_eq!(store.get("triplane_store_rows{shard=\"0\"}"), Some(&1.0), "{store:#?}");
        assert!(store["triplane_store_commit_seconds_count"] >= 50.0 && store["triplane_store_layout_epoch"] == 1.0);
    }
    assert!(head["triplane_store_requests_total{kind=\"write\"}"] >= 50.0, "{head:#?}");

    let moved = run(&mut triplane(&["resilient", "move", "--socket", &socket, "--away", "60", "--json"])).ok().json();
    assert_eq!((moved["moved"].as_u64(), moved["is_done"].as_bool()), (Some(1), Some(true)), "{moved:#}");
    assert_eq!(rows(&["--json"]).ok().json()["granted"].as_u64(), Some(0));
    assert_eq!(live.network.count(1, 50), (51..=100).collect::<Vec<_>>());
    // Another move ends the away time.
    run(&mut triplane(&["resilient", "move", "--socket", &socket])).ok();
    assert_eq!(live.network.count(0, 10), (101..=110).collect::<Vec<_>>());
    first.signal("INT");
    let done = first.wait().ok().json();
    assert_eq!(done["counters"]["drop.resilient.away"].as_u64(), Some(0), "{done:#}");
    assert!(!Path::new(&socket).exists());
    second.signal("INT");
    second.wait().ok();
}

#[test]
fn a_controller_writes_what_the_stores_do_not_keep() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let Some(live) = LiveCluster::new() else { return };
    let text = std::fs::read_to_string(root().join(PROGRAM)).expect("a source");
    let table = "action refuse() { mark_to_drop(standard); }\n    table blocked { key = { hdr.request.key: exact; } \
                 actions = { refuse; NoAction; } default_action = NoAction; }\n    apply {\n        \
                 if (hdr.request.isValid() && blocked.apply().hit) { return; }\n";
    let text = text.replacen("    apply {\n", table, 1);
    let program = live.directory.write("blocked.p4", &text);
    let state = live.directory.path("a");
    let _store = live.network.start(&["store", "run", "a", "--cluster", &live.cluster, "--state-dir", &state]);
    let state = live.directory.path("b");
    let _other = live.network.start(&["store", "run", "b", "--cluster", &live.cluster, "--state-dir", &state]);
    let start = |name: &str, port: &str| {
        let arguments = ["run", &program, "--port", port, "--store", &live.cluster, "--switch", name];
        let mut command = live.network.switches.command(triplane(&[]).get_program()).expect("a command");
        let arguments = [&arguments[..], &["--p4runtime", "127.0.0.1:0"]].concat();
        let mut running = Running::start(command.args(arguments).current_dir(root()));
        let address = running.wait_for_address("P4Runtime on ");
        running.wait_for("press Ctrl-C to stop");
        (running, address)
    };
    let [(mut first, address), (mut second, other)] = [start("s1", "1=p1"), start("s2", "1=p2")];
    let ctl = |address: &str, arguments: &[&str]| {
        let mut command = live.network.switches.command(triplane(&[]).get_program()).expect("a command");
        run(command.args([&["ctl", "--addr", address][..], arguments].concat()).current_dir(root()))
    };
    assert_eq!(live.network.count(0, 20), (1..=20).collect::<Vec<_>>());

    ctl(&address, &["insert", "blocked", "hdr.request.key=9 -> refuse()"]).ok();
    assert!(ctl(&address, &["entries", "blocked"]).ok().stdout.contains("refuse"));
    // Rows are read where they are, and only packets write them.
    let row = |address: &str| ctl(address, &["registers", "changes", "7"]).ok().stdout;
    assert!(row(&address).contains("20"), "{}", row(&address));
    let absent = ctl(&other, &["registers", "changes", "7"]).ok();
    let note = "the switch returned 0 of 1 cell; of resilient state, it has its own rows only";
    assert!(absent.stdout.is_empty() && absent.stderr.contains(note), "{absent:?}");
    for cell in ["7", "all"] {
        let done = ctl(&address, &["set", "values", cell, "1"]);
        assert!(done.code == Some(1) && done.stderr.contains("resilient state, which only packets write"), "{done:?}");
    }
    let set = live.network.switches.enter(|| set_program(&address, &program)).expect("to enter a namespace");
    let refused = set.expect_err("it is not replaced").to_string();
    assert!(refused.contains("state is in stores is not replaced"), "{refused}");
    assert_eq!(live.network.count(0, 20), (21..=40).collect::<Vec<_>>());
    for running in [&mut first, &mut second] {
        running.signal("INT");
    }
    for running in [first, second] {
        running.wait().ok();
    }
}

#[test]
fn a_failover_is_drawn() {
    let directory = Directory::new();
    let drawn = directory.path("failover.svg");
    let lab = ["lab", "sim", "examples/key-value/lab.toml"];
    let scenario = ["--scenario", "examples/key-value/scenario.toml", "--timeline", &drawn];
    let done = run(&mut triplane(&[&lab[..], &scenario].concat())).ok();
    let steps: Vec<&str> = done.stdout.split_once("\nfailover\n").expect("the steps").1.lines().collect();
    let order = ["last answer", "`s1` dies", "`s2` asks", "lease of `s1` has ended", "`s2` owns", "first answer again"];
    assert_eq!(steps.len(), order.len(), "{steps:#?}");
    for (step, part) in steps.iter().zip(order) {
        assert!(step.contains(part), "{steps:#?}");
    }
    let mut golden = GoldenFiles::new();
    golden.compare(root().join("docs/failover.svg"), &std::fs::read_to_string(&drawn).expect("the picture"));
    golden.finish();
    let refused = run(&mut triplane(&[&lab[..], &["--timeline", &drawn]].concat()));
    assert!(refused.code == Some(2) && refused.stderr.contains("--timeline requires"), "{refused:?}");
}
