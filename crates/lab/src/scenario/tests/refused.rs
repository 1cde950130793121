//! Scenarios that are rejected, and their diagnostics.

use diagnostics::{Diagnostics, SourceMap};

use super::{read, star};

#[test]
fn mistakes_are_told_all_at_once() {
    let (scenario, findings) = read(
        r#"
durration = "1s"
[[traffic]]
kind = "udp"
from = "h1"
to = "h9"
[[traffic]]
kind = "tpc"
from = "h1"
to = "h2"
[[traffic]]
kind = "tcp"
from = ["h1", "h2", "h3"]
to = ["h4", "h1"]
[[traffic]]
kind = "udp"
rate = "1Mbps"
from = "s1"
to = "h2"
timing = "gauss"
[[faults]]
crash = "s1"
[[faults]]
at = "1s"
down = ["h1", "h2"]
[[captures]]
at = "s1"
file = "x.pcap"
[[captures]]
at = "s1:1"
file = "../up.pcap"
[[captures]]
at = "s1:1"
file = "queues.csv"
[[expect]]
traffic = "voice"
"#,
    );
    assert!(scenario.is_none());
    for expected in [
        "a scenario has no `durration`",
        "there is no host or switch `h9`",
        "this traffic needs a rate",
        "unknown kind of traffic `tpc`",
        "3 senders and 2 receivers",
        "`s1` is a switch; only hosts send and receive",
        "`timing` must be one of constant, poisson, on-off",
        "a fault needs a time",
        "there is no link between `h1` and `h2`",
        "`s1` is a switch: specify a port",
        "`../up.pcap` is not a plain capture file name",
        "`queues.csv` is not a plain capture file name",
        "there is no traffic `voice`",
    ] {
        assert!(findings.contains(expected), "{expected} is not in\n{findings}");
    }
}

#[test]
fn what_would_be_passed_over_is_told() {
    let pair = "from = \"h1\"\nto = \"h2\"\n";
    let udp = format!("[[traffic]]\nkind = \"udp\"\nrate = \"1Mbps\"\n{pair}");
    let (_, fine) = read(&format!("{udp}timing = \"on-off\"\non = \"1ms\"\n[[faults]]\nat = \"1ms\"\nslow = \"h1\"\n"));
    assert_eq!(fine, "");
    for (wrong, expected) in [
        (format!("[[traffic]]\nkind = \"tcp\"\nrate = \"1Mbps\"\n{pair}"), "traffic of kind `tcp` has no `rate`"),
        (format!("[[traffic]]\nkind = \"tcp\"\nstop = \"1s\"\n{pair}"), "traffic of kind `tcp` has no `stop`"),
        (format!("{udp}count = 2\n"), "traffic of kind `udp` has no `count`"),
        (format!("{udp}on = \"1ms\"\n"), "`on` requires timing"),
        (udp.replace("h2", "h1"), "`traffic 1` sends nothing"),
        (udp.replace("\"h1\"", "[]"), "`traffic 1` sends nothing"),
        (
            "[[faults]]\nat = \"1ms\"\nslow = \"s1\"\nby = \"1ms\"\n".to_owned(),
            "`s1` is a switch; only hosts can be slow",
        ),
        ("[[faults]]\nat = \"1ms\"\nskew = \"s1\"\n".to_owned(), "only hosts can have clock skew"),
        ("[[faults]]\nat = \"1ms\"\nskew = \"h1\"\nby = 7\n".to_owned(), "`by` has no effect without `slow`"),
        ("x = 1\n[[faults]]\nat = \"1ms\"\n".to_owned(), "a fault needs an event"),
        (format!("x = 1\n{udp}[[expect]]\ntraffic = \"traffic 1\"\n"), "an expectation needs a bound"),
        ("[[faults]]\nat = \"5s\"\ncrash = \"s1\"\n".to_owned(), "this never happens: the scenario ends at 1s"),
        ("[random-faults]\nkinds = []\n".to_owned(), "`kinds` must not be empty"),
    ] {
        let (_, found) = read(&wrong);
        assert!(found.contains(expected) && found.contains("scenario.toml:"), "{expected} is not in\n{found}");
    }
}

#[test]
fn hosts_without_addresses_send_and_receive_nothing() {
    let mut topology = star().0;
    topology.hosts[1].address = None;
    let mut map = SourceMap::new();
    let text = "[[traffic]]\nkind = \"ping\"\nfrom = \"h1\"\nto = [\"h2\", \"h3\"]\n";
    let file = map.add("scenario.toml", text);
    let mut diagnostics = Diagnostics::new();
    assert!(crate::scenario::read(file, text, &topology, 510, &mut diagnostics).is_none());
    let found = diagnostics.render(&map, false);
    assert!(found.contains("`h2`, which has no address, cannot send or receive `traffic 1`"), "{found}");
}

#[test]
fn an_expectation_that_cannot_be_read_is_told_where_it_stands() {
    let (scenario, findings) = read(
        r#"
[[traffic]]
name = "look"
kind = "probe"
from = "h1"
to = "h2"
frame = "ffffffffffff 020000000001 0800"
values = { a = { bytes = 9 }, b = { at = 1, over = [1] } }
[[traffic]]
name = "voice"
kind = "udp"
from = "h1"
to = "h2"
rate = "1Mbps"
ecn = 1
address = "h3"
[[expect]]
traffic = "voice"
delivered = [0.5, 0.4]
rate = 1000
marked = 2
[[expect]]
link = "s1:9"
[[expect]]
link = "s1:1"
share = 0.5
[[expect]]
traffic = "voice"
value = "a"
[[expect]]
delivered = 1.0
"#,
    );
    assert!(scenario.is_none());
    for expected in [
        "a probe cannot use the EtherTypes of IPv4 and ARP",
        "`bytes` must be an integer from 1 to 8",
        "a value needs a position in the frame",
        "`over` must be the offset and the length of a field",
        "`ecn` must be true or false",
        "`h3` is not an IPv4 address",
        "`delivered` must be a bound, delivered = 0.99 (at least), or a lower and an upper bound: [0.99, 0.99]",
        "`rate` must be a bound",
        "`marked` must be a bound",
        "`s1:9` has no link",
        "`share` and `among` must be given together",
        "`voice` reads no value `a`",
        "an expectation needs a traffic or a link",
    ] {
        assert!(findings.contains(expected), "{expected} is not in\n{findings}");
    }
}

#[test]
fn datagrams_that_no_host_can_send_are_refused() {
    let text = |kind: &str, size: u32| {
        let rate = if kind == "rcp" { "" } else { "rate = \"1Mbps\"\n" };
        format!(
            "duration = \"1s\"\n[[traffic]]\nname = \"v\"\nkind = \"{kind}\"\nfrom = \"h1\"\nto = \"h2\"\n{rate}size = {size}\n"
        )
    };
    for kind in ["udp", "rcp", "conga"] {
        let (_, findings) = read(&text(kind, 1_514));
        assert_eq!(findings, "", "{kind}");
        let (_, findings) = read(&text(kind, 1_515));
        let expected = "`v` has frames of 1515 bytes, whose packets of 1501 bytes exceed the MTU of `h1`, 1500: use size = \
                        1514 or less, or mtu = 1501 or more for its link";
        assert!(findings.contains(expected) && findings.contains("scenario.toml:"), "{kind}: {findings}");
    }
}
