//! `triplane subscribe serve` with switches that refuse writes, hang or run something unexpected: the messages of the
//! service, and the functions that still work.

use std::net::TcpListener;
use std::time::Duration;

use crate::support::plain;
use crate::support::rig::Rig;
use crate::support::service::{Service, eventually};
use crate::support::stalling::Stalling;
use crate::support::{Directory, Running, run, triplane};
use testing::port::reserved_address;

#[test]
fn the_rule_that_a_switch_refuses_is_named() {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", "stock == \"GOOGL\" : fwd(2)\n");
    let address = reserved_address();
    let _rig = Rig::new(8, address);
    for through in [|address| address, plain::plain] {
        let mut service = Service::start(&rules, through(address), &[]);
        service.running.wait_for("the switch applies 1 rule");
        let many = "price > 5 : fwd(3)\nprice > 9 and side == \"B\" : fwd(3, 57)\nshares > 7 : fwd(2)";
        let done = service.tell(&["add", many]);
        assert_eq!(done.code, Some(1), "{done:?}");
        // The message names the refused object, the reason, and the rule among the three.
        assert!(done.stderr.contains("the switch rejected multicast group"), "{done:?}");
        assert!(done.stderr.contains("for `price > 9 and side == \"B\" : fwd(3, 57)`"), "{done:?}");
        assert!(!done.stderr.contains("shares") && !done.stderr.contains("price > 5"), "{done:?}");
        assert_eq!(service.list().lines().count(), 1);
    }
}

#[test]
fn a_rule_that_a_switch_takes_no_more_can_be_removed() {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", "stock == \"GOOGL\" : fwd(2)\n");
    let kept = directory.path("kept");
    let address = reserved_address();
    let rig = Rig::new(8, address);
    let mut service = Service::start(&rules, address, &["--keep", &kept]);
    service.running.wait_for("the switch applies 1 rule");
    let id = service.add("price > 5 : fwd(3, 8)");
    drop(rig);
    service.running.wait_for("the connection to the switch was lost");
    // The switch comes back with fewer ports.
    let _rig = Rig::new(4, address);
    service.running.wait_for(&format!("it is for rule {id}, `price > 5 : fwd(3, 8)`"));
    let done = service.tell(&["add", "price > 7 : fwd(4)"]);
    assert!(done.code == Some(1) && done.stderr.contains("fwd(3, 8)"), "{done:?}");
    assert_eq!(service.list().lines().count(), 2);
    service.tell(&["remove", &id]).ok();
    service.running.wait_for("the switch applies 1 rule");
    service.add("price > 7 : fwd(4)");
    assert_eq!(service.list().lines().count(), 2);
}

#[test]
fn reads_do_not_wait_for_a_switch_that_hangs() {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", "stock == \"GOOGL\" : fwd(2)\n");
    let address = reserved_address();
    let _rig = Rig::new(8, address);
    let stalling = Stalling::before(address);
    let mut service = Service::start(&rules, stalling.address(), &[]);
    service.running.wait_for("the switch applies 1 rule");
    let mut watch = Running::start(&mut triplane(&["subscribe", "watch", "--service", &service.address]));
    watch.wait_for("the rules are in effect");
    stalling.stall(true);
    let mut add = triplane(&["subscribe", "add", "price > 5 : fwd(3)", "--service", &service.address]);
    let adding = Running::start(&mut add);
    watch.wait_for("waiting for the switch, which has not responded for");
    assert!(service.list().contains("GOOGL"));
    let late = run(&mut triplane(&["subscribe", "list", "--json", "--service", &service.address])).ok();
    assert_eq!(late.json().as_array().map(Vec::len), Some(1), "what is not acknowledged is not listed");
    stalling.stall(false);
    adding.wait().ok();
    watch.wait_for("the rules are in effect");
    assert_eq!(service.list().lines().count(), 2);
}

/// Returns the output of a service until it is stopped, after it has printed `first` and has had time for several
/// tries.
fn stderr_of(mut service: Service, first: &str) -> String {
    service.running.wait_for(first);
    std::thread::sleep(Duration::from_secs(2));
    service.running.signal("TERM");
    service.running.wait().ok().stderr
}

#[test]
fn a_persistent_error_is_reported_once_with_its_cause() {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", "stock == \"GOOGL\" : fwd(2)\n");
    let address = reserved_address();
    let said = stderr_of(Service::start(&rules, address, &[]), "cannot be reached");
    assert_eq!(said.matches("cannot be reached").count(), 1, "{said}");
    let _rig = Rig::new(4, address);
    let said = stderr_of(Service::start(&rules, address, &["--device-id", "7"]), "--device-id");
    assert_eq!(said.matches("there is no device 7 at").count(), 1, "{said}");
    // The server accepts connections and closes them at once.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let said = stderr_of(Service::start(&rules, other, &[]), "the switch");
    assert_eq!(said.matches("the switch ").count() - said.matches("the switch keeps").count(), 1, "{said}");
}

#[test]
fn a_call_is_answered_though_the_switch_never_is() {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", "stock == \"GOOGL\" : fwd(2)\n");
    // The server accepts connections and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let service = Service::start(&rules, listener.local_addr().unwrap(), &[]);
    let done = service.tell(&["add", "price > 5 : fwd(3)"]);
    assert_eq!(done.code, Some(3), "{done:?}");
    eventually("it says that it has no answer", || {
        service.tell(&["add", "price > 5 : fwd(3)"]).stderr.contains("no response")
    });
    assert!(service.list().contains("GOOGL"));
    let mut watch = Running::start(&mut triplane(&["subscribe", "watch", "--service", &service.address]));
    watch.wait_for("1 rules, 1 of them in the file; 0 changes; ");
}

#[test]
fn a_program_that_is_not_for_the_rules_is_said_once_and_which_it_is() {
    const OTHER: &str = "#include <v1model.p4>
header q_t { @query_field bit<32> price; @query_field bit<16> side; }
struct headers_t { q_t q; }
struct metadata_t {}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.q); transition accept; }
}
";
    let directory = Directory::new();
    let rules = directory.write("rules.sub", "stock == \"GOOGL\" : fwd(2); fwd(510)\n");
    let (format, others) = (directory.write("other.p4", OTHER), directory.write("others.sub", "price > 5 : fwd(2)\n"));
    let address = reserved_address();
    let _rig = Rig::new(4, address);
    let mut other = Service::of(&format, &others, address, &[]);
    other.running.wait_for("program loaded");
    drop(other);
    let said = stderr_of(Service::start(&rules, address, &["--keep-program"]), "different formats");
    assert_eq!(said.matches("were generated from different formats").count(), 1, "{said}");
    assert!(
        !said.contains("different field orders")
            && said.contains("serve the format that the switch's program was generated from"),
        "{said}"
    );
    // The program loaded for the rules is the right one; delivery to the controller's port may be unintended.
    let mut right = Service::start(&rules, address, &[]);
    right.running.wait_for("program loaded");
    assert!(said.contains("port 510 is the port of the controller"), "{said}");
    assert!(right.tell(&["add", "price > 5 : fwd(510)"]).code == Some(0));
    right.running.wait_for("port 510 is the port of the controller");
}
