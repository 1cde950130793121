//! Flows over several paths, and counts on links: what scenarios may say of them.

use super::fair_rates::{line, read_for};
use crate::scenario::TrafficKind;
use crate::sim::traffic::{Balancing, CountedElement};
use tpp::conga::{MAX_HOPS, PathMetric};
use tpp::hpcc;

fn findings(more: &str) -> String {
    let text = format!("[[traffic]]\nkind = \"conga\"\nfrom = \"h1\"\nto = \"h2\"\nrate = \"1Mbps\"\n{more}");
    read_for(&line(2), &text).1
}

#[test]
fn balancers_have_defaults_and_settings() {
    let text = "[[traffic]]\nkind = \"conga\"\nfrom = \"h1\"\nto = \"h2\"\nrate = \"1Mbps\"\n";
    let kind = |text: &str| {
        let (scenario, findings) = read_for(&line(2), text);
        scenario.unwrap_or_else(|| panic!("{findings}")).traffic[0].kind.clone()
    };
    let TrafficKind::Conga { size, flows, balancing, .. } = kind(text) else { panic!("another kind") };
    let Balancing::LeastLoaded { settings, interval_ns } = balancing else { panic!("{balancing:?}") };
    assert_eq!((size, flows, settings.paths, interval_ns, settings.gap_ns), (1_000, 16, 4, 1_000_000, 500_000));
    let more = "flows = 3\npaths = 8\nmetric = \"sum\"\ngap = \"2ms\"\ninterval = \"3ms\"\n";
    let TrafficKind::Conga { flows, balancing, .. } = kind(&format!("{text}{more}")) else { panic!("another kind") };
    let Balancing::LeastLoaded { settings, .. } = balancing else { panic!("{balancing:?}") };
    assert_eq!((flows, settings.paths, settings.metric, settings.age_ns), (3, 8, PathMetric::Sum, 30_000_000));
    let TrafficKind::Conga { balancing, .. } = kind(&format!("{text}balance = \"ecmp\"\n")) else { panic!("another") };
    assert_eq!(balancing, Balancing::Ecmp);
}

#[test]
fn balancers_are_refused_with_the_reason() {
    for (more, part) in [
        ("balance = \"ecmp\"\ngap = \"1ms\"\n", "`gap` requires balance = \"least-loaded\""),
        ("balance = \"random\"\n", "`balance` must be one of least-loaded, ecmp"),
        ("paths = 65\n", "`paths` must"),
        ("interval = \"1001ms\"\n", "samples its paths every 1.001s; the maximum is 1s"),
        ("interval = \"1ns\"\nstop = \"1s\"\n", "frames; the maximum is"),
        ("fairness = \"max-min\"\n", "traffic of kind `conga` has no `fairness`"),
    ] {
        let found = findings(more);
        assert!(found.contains(part), "{more}: {found}");
    }
    let topology = line(MAX_HOPS as u32 + 1);
    let far = |to: usize| {
        let text = format!("[[traffic]]\nkind = \"conga\"\nfrom = \"h1\"\nto = \"h{to}\"\nrate = \"1Mbps\"\n");
        read_for(&topology, &text).1
    };
    assert_eq!(far(MAX_HOPS), "");
    assert!(far(MAX_HOPS + 1).contains("the maximum for load balancing is 23"), "{}", far(MAX_HOPS + 1));
}

#[test]
fn counts_on_links_are_settings_of_a_minion() {
    let read = |minion: &str, expect: &str| {
        let text = format!(
            "[[traffic]]\nname = \"v\"\nkind = \"udp\"\nfrom = \"h1\"\nto = \"h2\"\nrate = \"1Mbps\"\nminion = \
             {{ file = \"a.tpp\"{minion} }}\n[[expect]]\ntraffic = \"v\"\n{expect}"
        );
        read_for(&line(2), &text)
    };
    let (scenario, found) = read(", count = \"sources\"", "deviation = 3");
    let count = scenario.unwrap_or_else(|| panic!("{found}")).traffic[0].minion.clone().and_then(|minion| minion.count);
    let count = count.expect("it counts");
    assert_eq!((count.element, count.hash.bits, count.period_ns), (CountedElement::Sources, 1_024, 10_000_000_000));
    for (minion, expect, part) in [
        ("", "deviation = 3", "`v` counts nothing on links"),
        (", bits = 64", "delivered = 1", "require `count`"),
        (", count = \"words\"", "delivered = 1", "must be one of sources, destinations, flows"),
        (", count = \"flows\", bits = 7", "delivered = 1", "`bits` must"),
        (", count = \"flows\", every = \"1us\"", "delivered = 1", "`every` is 1us; the minimum is 1ms"),
    ] {
        let found = read(minion, expect).1;
        assert!(found.contains(part), "{minion}: {found}");
    }
}

#[test]
fn windows_have_defaults_settings_and_limits() {
    let text = "[[traffic]]\nkind = \"hpcc\"\nfrom = \"h1\"\nto = \"h2\"\n";
    let kind = |more: &str| {
        let (scenario, findings) = read_for(&line(2), &format!("{text}{more}"));
        scenario.map(|scenario| scenario.traffic[0].kind.clone()).ok_or(findings)
    };
    let Ok(TrafficKind::Hpcc { size, settings }) = kind("") else { panic!("another kind") };
    assert_eq!((size, settings.target, settings.max_flows, settings.max_stage), (1_000, 0.95, 16, 5));
    let Ok(TrafficKind::Hpcc { settings, .. }) = kind("target = 0.5\nmax-flows = 4\n") else { panic!("another kind") };
    assert_eq!((settings.target, settings.max_flows), (0.5, 4));
    for (more, part) in [
        ("target = 1.0\n", "`target` must be a share of the capacity from 0.5 to 0.99"),
        ("target = 0.49\n", "`target` must be a share"),
        ("max-flows = 0\n", "`max-flows` must"),
        ("rate = \"1Mbps\"\n", "traffic of kind `hpcc` has no `rate`"),
    ] {
        let found = read_for(&line(2), &format!("{text}{more}")).1;
        assert!(found.contains(part), "{more}: {found}");
    }
    let mut topology = line(hpcc::MAX_HOPS as u32 + 1);
    let far = text.replace("h2", "h24");
    let found = read_for(&topology, &far).1;
    assert!(found.contains("24 switches from `h1` to `h24`; the maximum for HPCC is 23"), "{found}");
    assert_eq!(read_for(&topology, &text.replace("h2", "h23")).1, "");
    topology.links.iter_mut().for_each(|link| link.shape.rate = None);
    let found = read_for(&topology, text).1;
    assert!(found.contains("would not send, as no link has a rate: add rate = \"100Mbps\" to links"), "{found}");
}
