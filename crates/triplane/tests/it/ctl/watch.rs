//! `triplane ctl watch`.

use crate::ctl::{EVERY, Router};
use crate::support::{Running, hex, triplane};

/// Starts a watcher that subscribes to everything.
fn watch(router: &Router, words: &[&str]) -> Running {
    let address = router.address().to_string();
    let mut watch = Running::start(&mut triplane(&[&["ctl", "--addr", &address, "watch"], words].concat()));
    watch.wait_for("watching as the primary");
    watch
}

#[test]
fn notifications_of_the_switch_are_printed_line_by_line() {
    let router = Router::start(EVERY);
    router.says(&["insert", "exact_t", "a=1 -> learn()"]);
    router.says(&["insert", "exact_t", "a=2 -> to_cpu(reason=9)"]);
    router.says(&["insert", "idle_t", "a=3, timeout=0.05 -> NoAction()"]);
    let mut watched = watch(&router, &[]);
    watched.wait_for("idle I.idle_t: hdr.data.a=3, timeout=0.05");
    router.receive(3, hex("0001 0002 00000003 04 05"));
    watched.wait_for("digest learned_t: a=1, port=3");
    router.receive(4, hex("0002 0002 00000003 04 05 ffee"));
    // The controller header is stripped and printed as fields.
    watched.wait_for("packet ingress_port=4 reason=9 12 bytes 0002000200000003040");
    watched.signal("INT");
    let done = watched.wait().ok();
    assert!(!done.stdout.contains("error"), "{done:?}");

    // The watcher enabled the digest and disabled it again: another watcher can enable it anew.
    let mut watched = watch(&router, &["--json"]);
    router.receive(2, hex("0001 0002 00000003 04 05"));
    watched.wait_for(r#""data":"a=1, port=2""#);
    router.receive(2, hex("0002 0002 00000003 04 05"));
    watched.wait_for(r#""metadata":{"ingress_port":"2","reason":"9"}"#);
    watched.signal("INT");
    for line in watched.wait().ok().stdout.lines() {
        let object: serde_json::Value = serde_json::from_str(line).expect("a JSON object a line");
        assert!(object["kind"].is_string(), "{object}");
    }
}

#[test]
fn a_lost_server_is_reported() {
    let router = Router::start(EVERY);
    let watched = watch(&router, &[]);
    drop(router);
    let done = watched.wait();
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(done.stderr.contains("the server closed the stream"), "{done:?}");
}
