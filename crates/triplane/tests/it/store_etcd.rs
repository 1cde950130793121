//! Tests `triplane store operate --etcd`: operators that share a layout, and an etcd that is unreachable for a while.

use std::sync::atomic::{AtomicBool, Ordering};

use ports::namespace::NamespaceError;
use testing::etcd::{EtcdServer, MISSING};
use testing::lock::LIVE_TRAFFIC;

use crate::resilient::{Network, PROGRAM};
use crate::store_operator::{Cluster, free_addresses, load, start, words};
use crate::support::authority::Authority;
use crate::support::{Directory, Running, run, triplane};

const AWAY: &str = "the layout cannot be changed: etcd at 127.0.0.1:";
const BACK: &str = "the layout can be changed again";

/// Returns the arguments of an operator, with a socket of its name.
fn operate(cluster: &Cluster, etcd: &EtcdServer, name: &str) -> Vec<String> {
    let socket = cluster.directory.path(&format!("{name}.sock"));
    let words = ["store", "operate", "--cluster", &cluster.path, "--etcd", &etcd.url(), "--socket", &socket];
    let words = words.into_iter().chain(["--operator", name, "--etcd-prefix", "/triplane/test"]);
    words.map(str::to_owned).collect()
}

fn wait_until_etcd_answers(etcd: &EtcdServer) {
    etcd.call("kv/range", "{\"key\":\"YQ==\"}");
}

/// Starts two operators of four stores, and the stores.
fn two_operators(etcd: &EtcdServer) -> (Cluster, [Running; 2], Vec<Running>) {
    wait_until_etcd_answers(etcd);
    let addresses = free_addresses(7);
    let mut cluster = Cluster::with_operators(&["x", "y"], &["a", "b", "c", "d"], |at| addresses[at].clone());
    cluster.asked = ["--socket".to_owned(), cluster.directory.path("x.sock")];
    let operators = ["x", "y"].map(|name| start(&operate(&cluster, etcd, name)));
    let stores = ["a", "b", "c", "d"].map(|name| start(&cluster.store(name))).into_iter().collect();
    (cluster, operators, stores)
}

#[test]
fn two_operators_make_each_change_once() {
    let Some(etcd) = EtcdServer::start() else { return testing::skip(MISSING) };
    let (mut cluster, [mut x, mut y], mut stores) = two_operators(&etcd);
    cluster.wait_for_chain(&["a", "b", "c"]);
    stores[0].signal("KILL");
    cluster.wait_for_chain(&["b", "c", "d"]);
    // Both have the same layout, and commands to either one change it.
    cluster.asked[1] = cluster.directory.path("y.sock");
    cluster.wait_for_chain(&["b", "c", "d"]);
    stores[0] = start(&cluster.store("a"));
    let ask = |words: &[&str]| run(&mut triplane(&[&["store"], words, &["--socket", &cluster.asked[1]]].concat()));
    x.wait_for("store `a` answers again");
    y.wait_for("store `a` answers again");
    ask(&["replace", "b"]).ok();
    cluster.wait_for_chain(&["a", "c", "d"]);
    // One operator is suspended, and the other one continues. The first one catches up when it is resumed.
    x.signal("STOP");
    ask(&["drain", "b", "--cancel"]).ok();
    stores[3].signal("KILL");
    cluster.wait_for_chain(&["a", "b", "c"]);
    x.signal("CONT");
    cluster.asked[1] = cluster.directory.path("x.sock");
    cluster.wait_for_chain(&["a", "b", "c"]);
    let mut changes = Vec::new();
    for operator in [x, y] {
        operator.signal("INT");
        let said = operator.wait().ok().stderr;
        changes.extend(said.lines().filter(|line| line.contains("chain ")).map(|line| line[10..].to_owned()));
    }
    let count = |part: &str| changes.iter().filter(|line| line.contains(part)).count();
    assert_eq!((count("chain formed"), count("store `a` was removed")), (1, 1), "{changes:#?}");
    assert_eq!((count("store `b` left the chain"), count("store `d` was removed")), (1, 1), "{changes:#?}");
}

#[test]
fn an_operator_that_dies_at_any_moment_is_replaced_by_another_one() {
    let Some(etcd) = EtcdServer::start() else { return testing::skip(MISSING) };
    let (mut cluster, operators, _stores) = two_operators(&etcd);
    cluster.wait_for_chain(&["a", "b", "c"]);
    let mut operators = operators.map(Some);
    for round in 0..6_usize {
        // The operator that replaces a store is killed in the middle.
        let (dies, lives) = (round % 2, (round + 1) % 2);
        let names = ["x", "y"];
        cluster.asked[1] = cluster.directory.path(&format!("{}.sock", names[dies]));
        let status = cluster.status();
        let leaves = status["chains"][0]["members"][0].as_str().expect("a head").to_owned();
        let mut command = Running::start(&mut triplane(&["store", "replace", &leaves, "--socket", &cluster.asked[1]]));
        if round > 1 {
            command.wait_for(&format!("store `{leaves}` is drained"));
        }
        operators[dies].take().expect("it runs").signal("KILL");
        drop(command);
        cluster.asked[1] = cluster.directory.path(&format!("{}.sock", names[lives]));
        run(&mut triplane(&["store", "drain", &leaves, "--socket", &cluster.asked[1]])).ok();
        let others: Vec<&str> = ["a", "b", "c", "d"].into_iter().filter(|name| *name != leaves).collect();
        cluster.wait_for_chain(&others);
        operators[dies] = Some(start(&operate(&cluster, &etcd, names[dies])));
        run(&mut triplane(&["store", "drain", &leaves, "--cancel", "--socket", &cluster.asked[1]])).ok();
    }
}

#[test]
fn serving_continues_while_etcd_is_away_and_changes_wait() {
    let _alone = testing::lock(LIVE_TRAFFIC);
    let network = match Network::new() {
        Err(error @ NamespaceError::Refused { .. }) => return testing::skip(&error.to_string()),
        network => network.expect("a network"),
    };
    let Some(mut etcd) = network.switches.enter(EtcdServer::start).expect("to enter a namespace") else {
        return testing::skip(MISSING);
    };
    let inside = |work: &mut (dyn FnMut() + Send)| network.switches.enter(work).expect("to enter a namespace");
    inside(&mut || wait_until_etcd_answers(&etcd));
    let names = ["a", "b", "c", "d"];
    let mut cluster = Cluster::with_operators(&["x"], &names, |at| format!("127.0.0.1:{}", 7101 + at));
    cluster.asked = ["--socket".to_owned(), cluster.directory.path("x.sock")];
    let start = |arguments: &[String]| network.start(&words(arguments));
    let mut operator = start(&operate(&cluster, &etcd, "x"));
    let mut stores = names.map(|name| start(&cluster.store(name)));
    operator.wait_for("chain formed");
    let switch = network.start(&["run", PROGRAM, "--port", "1=p1", "--store", &cluster.path, "--switch", "s1"]);
    let stop = AtomicBool::new(false);
    let (sent, values) = std::thread::scope(|scope| {
        let client = scope.spawn(|| network.clients[0].enter(|| load(&stop)).expect("to enter a namespace"));
        cluster.wait_for_chain(&["a", "b", "c"]);
        // Only etcd is unreachable: writes continue, and the operator reports it once.
        etcd.signal("STOP");
        operator.wait_for(AWAY);
        let before = cluster.status();
        assert!(before["blocked_reason"].as_str().is_some_and(|reason| reason.starts_with("etcd at")), "{before:#}");
        // A store is killed. The chain cannot change, and stops.
        stores[0].signal("KILL");
        operator.wait_for("store `a` does not answer");
        std::thread::sleep(std::time::Duration::from_millis(500));
        assert_eq!(cluster.status()["epoch"], before["epoch"]);
        etcd.signal("CONT");
        operator.wait_for(BACK);
        cluster.wait_for_chain(&["b", "c", "d"]);
        // The same with an etcd that is killed, and with a command.
        etcd.kill();
        stores[0] = start(&cluster.store("a"));
        operator.wait_for(AWAY);
        let socket = cluster.directory.path("x.sock");
        let mut drain = Running::start(&mut triplane(&["store", "drain", "b", "--socket", &socket]));
        drain.wait_for("waiting until the layout can be changed");
        inside(&mut || etcd.restart());
        operator.wait_for(BACK);
        assert!(drain.wait().ok().stdout.contains("store `b` is not in the chain"));
        cluster.wait_for_chain(&["a", "c", "d"]);
        stop.store(true, Ordering::Relaxed);
        client.join().expect("the client does not panic")
    });
    assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "an acknowledged value was lost: {values:?}");
    assert!(values.last().is_some_and(|last| *last <= sent) && values.len() > 100, "{sent} sent: {values:?}");
    for running in stores.into_iter().chain([switch, operator]) {
        running.signal("INT");
        running.wait().ok();
    }
}

#[test]
fn operators_and_etcd_show_certificates_to_each_other() {
    let Some(authority) = Authority::new() else { return testing::skip("openssl is not installed") };
    authority.certificate("etcd", "subjectAltName=IP:127.0.0.1", Some("ca"));
    authority.certificate("operator", "subjectAltName=DNS:operator.test", Some("ca"));
    let [ca, certificate, key] = ["ca.pem", "operator.pem", "operator.key"].map(|name| authority.path(name));
    let options = ["--cert-file", &authority.path("etcd.pem"), "--key-file", &authority.path("etcd.key")];
    let options = [&options[..], &["--client-cert-auth", "--trusted-ca-file", &ca]].concat();
    let options: Vec<String> = options.into_iter().map(str::to_owned).collect();
    let Some(etcd) = EtcdServer::with("https", &options) else { return testing::skip(MISSING) };
    let addresses = free_addresses(3);
    let cluster = Cluster::new(&["a"], |at| addresses[at].clone());
    let url = format!("https://127.0.0.1:{}", etcd.port());
    let operate = ["store", "operate", "--cluster", &cluster.path, "--etcd", &url, "--etcd-ca"];
    let refused = |more: &[&str], part: &str| {
        let done = run(&mut triplane(&[&operate[..], more].concat()));
        assert!(done.code == Some(3) && done.stderr.contains(part), "{done:?}");
    };
    // The server may close the connection before its reason arrives.
    let done = run(&mut triplane(&[&operate[..], &[&ca]].concat()));
    let reasons = ["refuses clients without a certificate", "it may require a certificate of this client"];
    assert!(done.code == Some(3) && reasons.iter().any(|reason| done.stderr.contains(reason)), "{done:?}");
    authority.certificate("other", "basicConstraints=critical,CA:TRUE", None);
    refused(&[&authority.path("other.pem")], "not signed by the given authority");
    let shown = [&operate[..], &[&ca, "--etcd-cert", &certificate, "--etcd-key", &key]].concat();
    let mut operator = Running::start(&mut triplane(&shown));
    operator.wait_for("with the layout in the key /triplane/layout of etcd");
    let _store = start(&cluster.store("a"));
    operator.wait_for("chain formed: a");
    let status = run(&mut triplane(&["store", "status", "--cluster", &cluster.path])).ok();
    assert!(status.stdout.starts_with("chain a: 1 of 1 stores"), "{status:?}");
}

#[test]
fn mistakes_about_etcd_are_one_sentence() {
    let directory = Directory::new();
    let stores = "[stores.a]\naddress = \"127.0.0.1:7101\"\n";
    let named = |name: &str, port: u16| format!("[operators.{name}]\naddress = \"127.0.0.1:{port}\"\n");
    let two = directory.write("two.toml", format!("{stores}{}{}", named("x", 7102), named("y", 7103)));
    let one = directory.write("one.toml", format!("{stores}[operator]\naddress = \"127.0.0.1:7104\"\n"));
    let layout = directory.path("layout.json");
    let (secret, open) = (directory.write("secret", "one\ntwo\n"), directory.write("open", "word\n"));
    run(std::process::Command::new("chmod").args(["600", &secret])).ok();
    run(std::process::Command::new("chmod").args(["644", &open])).ok();
    let ca = directory.write("ca.pem", "none");
    let refused = |cluster: &str, arguments: &[&str], code: i32, part: &str| {
        let done = run(&mut triplane(&[&["store", "operate", "--cluster", cluster], arguments].concat()));
        assert!(done.code == Some(code) && done.stderr.contains(part), "{part:?} and {code}: {done:?}");
    };
    let near = ["--etcd", "http://127.0.0.1:1"];
    let with = |more: &[&'static str]| [&near[..], more].concat();
    refused(&one, &[], 2, "--layout");
    refused(&one, &with(&["--layout", "x"]), 2, "cannot be used with");
    refused(&two, &["--layout", &layout, "--operator", "x"], 1, "which cannot share a layout file: pass --etcd");
    refused(&two, &near, 2, "pass --operator with one of x, y");
    refused(&two, &with(&["--operator", "z"]), 1, "has no operator `z`");
    refused(&one, &["--etcd", "127.0.0.1:1"], 2, "is not an address of etcd");
    refused(&one, &["--etcd", "http://10.0.0.1:1"], 2, "use https://, or pass --etcd-plaintext");
    refused(&one, &["--etcd", "https://10.0.0.1:1"], 2, "pass --etcd-ca");
    refused(&one, &[&near[..], &["--etcd-ca", &ca]].concat(), 1, "contains no certificate");
    refused(&one, &with(&["--etcd-prefix", "x"]), 2, "is not a prefix of keys");
    refused(&one, &with(&["--etcd-user", "x"]), 2, "--etcd-password-file");
    refused(&one, &[&near[..], &["--etcd-user", "x", "--etcd-password-file", &secret]].concat(), 1, "in one line");
    refused(&one, &[&near[..], &["--etcd-user", "x", "--etcd-password-file", &open]].concat(), 3, "run `chmod 600");
    refused(&one, &near, 3, "etcd at 127.0.0.1:1 cannot be reached");
    let done = run(&mut triplane(&["store", "status", "--cluster", &one]));
    assert!(done.code == Some(3) && done.stderr.contains("no operator of this machine listens on"), "{done:?}");
}
