//! `triplane tpp run` without switches: retries, several hosts, large programs, and what it refuses. The live tests of
//! labs execute programs on switches.

use crate::support::{Directory, Done, Running, run, triplane};

fn tpp(arguments: &[&str]) -> Done {
    run(&mut triplane(&[&["tpp"], arguments].concat()))
}

/// Addresses of the loopback interface that no other test takes.
const ECHOING: &str = "127.103.0.1";
const SILENT: &str = "127.103.0.2";
const OTHER: &str = "127.103.0.4";

fn echo(address: &str) -> Running {
    let mut echo = Running::start(&mut triplane(&["tpp", "echo", address]));
    echo.wait_for("press Ctrl-C");
    echo
}

#[test]
fn programs_that_cannot_be_retried_or_split_are_refused_before_they_are_sent() {
    let directory = Directory::new();
    let store = directory.write("store.tpp", ".memory 5\nSTORE [Link:AppSpecific_1], [Packet:0]\n");
    let refused = tpp(&["run", &store, SILENT]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let parts =
        ["store.tpp:2:1", "^^^^", "a retry would execute this `STORE` again", "(`--tries 1`)", "error: 1 error"];
    for part in parts {
        assert!(refused.stderr.contains(part), "{part}: {refused:?}");
    }
    // Sent once, it is not refused: but nobody receives it.
    let sent = tpp(&["run", &store, SILENT, "--tries", "1", "--timeout", "0.05"]);
    assert_eq!(sent.code, Some(3), "{sent:?}");
    assert!(sent.stderr.contains("127.103.0.2 has no receiver of programs: run `triplane tpp echo` there"), "{sent:?}");
    let text = format!("CSTORE [Link:AppSpecific_1], 0, 5\n{}", "PUSH [Switch:ID]\n".repeat(5));
    let large = directory.write("large.tpp", &text);
    let refused = tpp(&["run", &large, SILENT, "--switch", "3"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    for part in
        ["large.tpp:1:1", "6 instructions belong together, and a packet has room for 3", "= help: a packet has 5"]
    {
        assert!(refused.stderr.contains(part), "{part}: {refused:?}");
    }
    let cstore = directory.write("cstore.tpp", "CSTORE [Link:AppSpecific_1], 0, 5\n");
    let refused = tpp(&["run", &cstore, SILENT, "--switch", "3", "--reflect"]);
    let parts = ["does not send it back then", "without reflection, or send the program once (`--tries 1`)"];
    assert!(refused.code == Some(1) && parts.iter().all(|part| refused.stderr.contains(part)), "{refused:?}");
    let refused = tpp(&["run", &cstore, SILENT, "--switch", "s2"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    for part in ["'s2' for '--switch <ID>'", "expected the number of a switch, such as 2", "`triplane tpp trace HOST`"]
    {
        assert!(refused.stderr.contains(part), "{part}: {refused:?}");
    }
    let many = directory.write("many.tpp", "PUSH [Switch:ID]\n".repeat(65));
    assert!(tpp(&["run", &many, SILENT]).stderr.contains("a program has at most 64 instructions"));
}

#[test]
fn several_hosts_are_asked_and_failures_are_reported_by_host() {
    let echo = echo(ECHOING);
    let directory = Directory::new();
    let program = directory.write("id.tpp", "PUSH [Switch:ID]\n");
    let options = ["--timeout", "0.05", "--tries", "2"];
    let done = tpp(&[&["run", &program, ECHOING, SILENT][..], &options].concat());
    // There is no switch, so nothing was executed.
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(
        done.stderr.contains("error: no switch executed the program: is it enabled (`triplane run --tpp N`"),
        "{done:?}"
    );
    assert!(done.stdout.starts_with("127.103.0.1: 0 switches, round trip "), "{done:?}");
    assert!(done.stdout.ends_with("1 of 2 answered\n"), "{done:?}");
    assert!(
        done.stderr.contains("127.103.0.2: no echo; 2 packets were sent; it has no receiver of programs"),
        "{done:?}"
    );
    let done = tpp(&[&["run", &program, SILENT, ECHOING, "--switch", "4,7", "--json"][..], &options].concat());
    let reason =
        "error: switch 4 did not execute the program: it is not on the way to 127.103.0.1 (`triplane tpp trace";
    assert!(done.code == Some(3) && done.stderr.contains(reason), "{done:?}");
    let json = done.json();
    let of = |field: &str| -> Vec<_> {
        json["targets"].as_array().expect("targets").iter().map(|target| target[field].clone()).collect()
    };
    assert_eq!(of("host"), [SILENT, SILENT, ECHOING, ECHOING]);
    assert_eq!((of("switch"), json["answered"].as_u64()), (vec![4.into(), 7.into(), 4.into(), 7.into()], Some(2)));
    assert_eq!(of("error")[1], "no echo; 2 packets were sent; it has no receiver of programs");
    // No switch is on the way.
    assert_eq!(of("is_executed")[2..], [false, false]);
    assert_eq!(json["targets"][2]["hops"], serde_json::json!([]));
    let failed = tpp(&[&["run", &program, SILENT, "127.103.0.3"][..], &options].concat());
    assert_eq!(failed.code, Some(3), "{failed:?}");
    assert!(failed.stdout.ends_with("0 of 2 answered\n"), "{failed:?}");
    echo.signal("INT");
    echo.wait().ok();
}

#[test]
fn a_program_of_several_packets_comes_back_as_one() {
    let echo = echo(OTHER);
    let directory = Directory::new();
    let program = directory.write("large.tpp", format!(".hops 40\n{}", "PUSH [Switch:ID]\n".repeat(7)));
    let done = tpp(&["run", &program, OTHER, "--json"]);
    assert_eq!(done.code, Some(3), "no switch executed it: {done:?}");
    let json = done.json();
    // Groups of 5 and 2 instructions; 23 hops of five words fit into a packet, and 40 of two.
    assert_eq!((json["sent"].as_u64(), json["bytes"].is_null()), (Some(3), true), "{json:#}");
    assert_eq!((&json["hop"], &json["status"]), (&0.into(), &"done".into()), "{json:#}");
    let waits = directory.write("waits.tpp", ".hop -2\nPUSH [Switch:ID]\n");
    let done = tpp(&["run", &waits, OTHER]);
    let reason = "error: no switch executed the program: it waits for 2 more switches";
    assert!(done.code == Some(3) && done.stderr.contains(reason), "{done:?}");
    echo.signal("INT");
    assert!(echo.wait().ok().stdout.starts_with("4 programs echoed"));
}
