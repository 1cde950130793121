//! Files that are wrong on purpose: each mistake is reported, and none panics, hangs or exhausts memory.

use diagnostics::{Diagnostics, SourceMap};

use crate::generate::{NetworkKind, generate};
use crate::random::Random;
use crate::topology::{Shape, Topology};
use crate::{emit, scenario};

/// Returns the rendered diagnostics of a topology and of a scenario for it.
fn findings(topology: &str, scenario: Option<&str>) -> String {
    let mut map = SourceMap::new();
    let mut diagnostics = Diagnostics::new();
    let file = map.add("lab.toml", topology);
    let read = super::read(file, topology, 510, &mut diagnostics);
    if let (Some(topology), Some(text)) = (read, scenario) {
        let file = map.add("scenario.toml", text);
        let _ = scenario::read(file, text, &topology, 510, &mut diagnostics);
    }
    diagnostics.render(&map, false)
}

fn star(hosts: u32) -> Topology {
    generate(NetworkKind::Star { hosts }, Shape::default(), Shape::default(), 510).expect("it can be made")
}

#[test]
fn nests_without_end_are_refused() {
    let deep = 200_000;
    for text in [
        format!("a = {}", "[".repeat(deep)),
        format!("a = {}{}", "[".repeat(deep), "]".repeat(deep)),
        format!("a = {}", "{ a = ".repeat(deep)),
        format!("[{}a]", "a.".repeat(deep)),
        format!("{{ \"hosts\": {}", "[".repeat(deep)),
        format!("{{ \"hosts\": {}", "{\"a\":".repeat(deep)),
    ] {
        assert!(findings(&text, None).contains("error"), "{}", &text[..20]);
    }
}

#[test]
fn numbers_out_of_range_are_reported_at_their_line() {
    let lab = "[hosts.h1]\nip = \"10.0.0.1/8\"\n[hosts.h2]\nip = \"10.0.0.2/8\"\n[switches.s1]\n\
               [[links]]\nends = [\"h1\", \"s1:1\"]\n[[links]]\nends = [\"h2\", \"s1:2\"]\n";
    for (wrong, expected) in [
        ("rate = \"0bps\"", "`0bps` is out of range"),
        ("rate = \"99999999999999999999Gbps\"", "is out of range"),
        ("delay = \"-1ms\"", "`-1ms` is not a time"),
        ("delay = \"99h\"", "is not a time"),
        ("rate = \"1Tbps\"\ndelay = \"1s\"", "bytes would be in flight on this link"),
        ("queue = 1000000000", "`queue` must be an integer from 1 to 1000000"),
        ("mtu = 99999999999999999999", "`mtu` must be an integer"),
        ("loss = 1e400", "`loss` must be a probability"),
        ("loss = nan", "`loss` must be a probability"),
        ("ends = [\"s1:4294967296\", \"h1\"]", ""),
        ("[hosts.h3]\nip = \"10.0.1.1/24\"\ngateway = \"10.0.2.1\"", "cannot reach its gateway 10.0.2.1"),
    ] {
        let found = findings(&format!("{lab}{wrong}\n"), None);
        assert!(found.contains(expected) && found.contains("lab.toml:"), "{wrong}\n{found}");
    }
    let udp = "[[traffic]]\nkind = \"udp\"\nfrom = \"h1\"\nto = \"h2\"\n";
    let slow = lab.replacen("[[links]]", "[[links]]\ndelay = \"1000s\"", 1);
    for (lab, scenario, expected) in [
        (lab, "duration = \"3600s\"\nsample = \"1us\"\n".to_owned(), "give more than 10000000 samples"),
        (lab, "duration = \"9999999s\"\n".to_owned(), "is too long: the maximum is 3600s"),
        (
            lab,
            "duration = \"3600s\"\n[random-faults]\nevery = \"0ns\"\n".to_owned(),
            "a fault every 0ns gives more than",
        ),
        (lab, format!("{udp}rate = \"1Tbps\"\nsize = 1\n"), "`size` must be an integer from 62"),
        (lab, format!("{udp}rate = \"1Mbps\"\nstart = \"2s\"\nstop = \"1s\"\n"), "stops before it starts"),
        (
            lab,
            "[[traffic]]\nkind = \"ping\"\nfrom = \"h1\"\nto = \"h2\"\ncount = 10000000000\n".to_owned(),
            "`count` must be an integer",
        ),
        (lab, format!("duration = \"3600s\"\n{udp}rate = \"1Tbps\"\nsize = 62\n"), "sends about 7258064516129 frames"),
        (
            lab,
            "[[traffic]]\nkind = \"flows\"\nfrom = \"h1\"\nto = \"h2\"\nrate = \"1Tbps\"\nsizes = 1\n".to_owned(),
            "starts about 125000000000 flows",
        ),
        (lab, format!("{udp}name = \"a\\u001b[2J\"\nrate = \"1Mbps\"\n"), "contains control characters"),
        (&slow, format!("{udp}rate = \"1Tbps\"\n"), "bytes in flight on a link with a delay of 1000s"),
    ] {
        let found = findings(lab, Some(&scenario));
        assert!(found.contains(expected) && found.contains("scenario.toml:"), "{scenario}\n{found}");
    }
}

#[test]
fn networks_beyond_memory_are_refused() {
    for kind in [
        NetworkKind::FatTree { k: 1000 },
        NetworkKind::FatTree { k: 48 },
        NetworkKind::Star { hosts: u32::MAX },
        NetworkKind::Line { switches: u32::MAX, hosts: u32::MAX },
        NetworkKind::LeafSpine { leaves: u32::MAX, spines: u32::MAX, hosts: u32::MAX },
        NetworkKind::Random { switches: 10, extra: u32::MAX, hosts: 1, seed: 1 },
        NetworkKind::Ring { switches: u32::MAX, hosts: 0 },
        NetworkKind::Dumbbell { hosts: u32::MAX },
    ] {
        assert!(generate(kind, Shape::default(), Shape::default(), 510).is_err(), "{kind:?}");
    }
    let line = generate(NetworkKind::Line { switches: 4_000, hosts: 1 }, Shape::default(), Shape::default(), 510);
    let found = findings(&emit(&line.expect("it can be made")), None);
    assert!(found.contains("shortest paths would need 16000000 routes"), "{found}");
    let many: String = (0..30_000).map(|host| format!("[hosts.h{host}]\n")).collect();
    assert!(findings(&many, None).contains("30000 hosts and 0 switches; the maximum is 20000"));
    let ping = "[[traffic]]\nkind = \"ping\"\nfrom = \"all\"\nto = \"all\"\n";
    let found = findings(&emit(&star(300)), Some(ping));
    assert!(found.contains("has 89700 pairs that ping each other") && found.contains("scenario.toml:1:1"), "{found}");
}

#[test]
fn files_with_bytes_changed_never_panic() {
    let lab = emit(&star(3));
    let scenario = "duration = \"1s\"\n[[traffic]]\nname = \"a\"\nkind = \"probe\"\nfrom = \"h1\"\nto = [\"h2\"]\n\
        frame = \"ffffffffffff 020000000001 88b5 00\"\nvalues = { v = { at = 14, over = [1, 2], scale = 8e6 } }\n\
        [[faults]]\nat = \"500ms\"\ndown = [\"s1\", \"h2\"]\n\
        [[expect]]\ntraffic = \"a\"\nvalue = \"v\"\nmean = [1, 2]\n\
        [[expect]]\nlink = \"s1:1\"\nshare = [0.1, 0.2]\namong = [\"s1:1\"]\n";
    let mut random = Random::new(1, 0);
    let pieces = ["\"", "[", "]", "{", "}", "=", "-", "9999999999", "\n", ".", "1e9", "[[", "'", "\u{e9}", "# ", "all"];
    let mut changed = |text: &str| {
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            let end = (at + random.below(4) as usize).min(bytes.len());
            let piece = pieces[random.below(pieces.len() as u64) as usize];
            bytes.splice(at..end, piece.bytes());
        }
        String::from_utf8_lossy(&bytes).into_owned()
    };
    for _ in 0..3_000 {
        findings(&changed(&lab), Some(scenario));
        findings(&lab, Some(&changed(scenario)));
    }
}
