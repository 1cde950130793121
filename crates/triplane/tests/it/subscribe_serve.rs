//! `triplane subscribe serve` and its clients, as processes, with a switch in this process: rules that come and go
//! while a feed runs, files that change, and switches that go away.

use std::net::SocketAddr;
use std::time::Duration;

use crate::support::deliveries::{bytes, delivered, spec, wanted};
use crate::support::feed::frame;
use crate::support::plain;
use crate::support::rig::Rig;
use crate::support::service::{FORMAT, Service, eventually};
use crate::support::{self, Directory, Running, run, triplane};
use itch_feed::{Feed, messages};
use switch::{Frame, PortId};
use testing::port::reserved_address;

#[test]
fn every_message_is_delivered_by_the_old_rules_or_by_the_new_ones() {
    deliveries("atomic changes", |address| address, &[]);
}

#[test]
fn so_it_is_by_a_program_with_groups_or_other_bitmaps() {
    deliveries("atomic changes", |address| address, &["--groups"]);
    deliveries("step-by-step changes", plain::plain, &["--groups"]);
    deliveries("step-by-step changes", plain::plain, &["--bitmaps", "300"]);
}

#[test]
fn programs_with_bitmaps_of_another_width_are_refused() {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", "stock == \"GOOGL\" : fwd(2, 3)\n");
    let address = reserved_address();
    let _rig = Rig::new(8, address);
    let mut groups = Service::start(&rules, address, &["--groups"]);
    groups.running.wait_for("program loaded");
    drop(groups);
    let mut bitmaps = Service::start(&rules, address, &["--keep-program"]);
    bitmaps
        .running
        .wait_for("the program has multicast groups, the rules bitmaps of 64 bits. Generate the program again");
    drop(bitmaps);
    let mut bitmaps = Service::start(&rules, address, &[]);
    bitmaps.running.wait_for("program loaded");
    let done = bitmaps.tell(&["add", "price > 5 : fwd(63)"]);
    assert!(done.code == Some(1) && done.stderr.contains("there is no port 63"), "{done:?}");
    assert!(done.stderr.contains("the ports are 0 to 62; `--bitmaps PORTS`"), "{done:?}");
    bitmaps.add("price > 5 : fwd(3)");
    drop(bitmaps);
    let mut wider = Service::start(&rules, address, &["--keep-program", "--bitmaps", "64"]);
    wider.running.wait_for("the program has bitmaps of 64 bits, the rules bitmaps of 128 bits. Generate");
}

#[test]
fn so_it_is_by_a_switch_that_takes_writes_in_any_order_and_one_after_the_other() {
    deliveries("step-by-step changes", plain::plain, &[]);
}

#[test]
fn codes_are_for_switches_that_change_as_a_whole() {
    const PRICE: &str = "@query_field(\"price\")";
    let directory = Directory::new();
    let format = std::fs::read_to_string(support::root().join(FORMAT)).unwrap();
    let coded = format.replace(PRICE, &format!("@query_codes(10) {PRICE}"));
    assert!(coded != format, "the price is not asked for");
    let (format, rules) = (directory.write("coded.p4", coded), directory.write("rules.sub", "price > 5 : fwd(2)\n"));
    let address = reserved_address();
    let _rig = Rig::new(8, address);
    let mut whole = Service::of(&format, &rules, address, &[]);
    whole.running.wait_for("the switch applies 1 rule");
    drop(whole);
    let mut in_turn = Service::of(&format, &rules, plain::plain(address), &[]);
    in_turn.running.wait_for("generate the program without `@query_codes` for `price`");
}

#[test]
fn programs_of_another_order_are_refused_with_the_cause() {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", "stock == \"GOOGL\" : fwd(2)\n");
    let address = reserved_address();
    let _rig = Rig::new(8, address);
    let mut none = Service::start(&rules, address, &["--keep-program"]);
    none.running.wait_for("the switch has no program yet");
    drop(none);
    let mut first = Service::start(&rules, address, &["--order", "price"]);
    first.running.wait_for("program loaded");
    drop(first);
    let mut other = Service::start(&rules, address, &["--keep-program", "--order", "stock"]);
    other.running.wait_for("different field orders: the program has `Subscriptions.");
    let done = other.tell(&["add", "price > 5 : fwd(3)"]);
    assert!(
        done.code == Some(3) && done.stderr.contains("with the same `--order`, `--ranges`, `--exact-tables`, "),
        "{done:?}"
    );
    drop(other);
    let mut same = Service::start(&rules, address, &["--order", "price", "--keep-program"]);
    same.running.wait_for("the switch applies 1 rule: 0 writes");
}

/// A program that is loaded anew loses the counts of the program before it.
#[test]
fn a_program_whose_order_suited_other_rules_stays_until_the_user_says_otherwise() {
    let directory = Directory::new();
    let crowd = |first: &str, second: &str| -> String {
        (0..300).map(|at| format!("{first} == {} and {second} > {} : fwd(2)\n", at % 60, at * 7 % 1000)).collect()
    };
    let rules = directory.write("rules.sub", crowd("shares", "price"));
    let address = reserved_address();
    let _rig = Rig::new(8, address);
    let mut first = Service::start(&rules, address, &[]);
    first.running.wait_for("the switch applies 300 rules: program loaded");
    drop(first);
    directory.write("rules.sub", crowd("price", "shares"));
    for keep in [&[][..], &["--keep-program"]] {
        let mut second = Service::start(&rules, address, keep);
        second.running.wait_for("keeping the switch's program and its field order");
        let line = second.running.wait_for("the switch applies 300 rules: ");
        assert!(!line.contains("program loaded"), "{line}");
        second.add("shares > 5 : fwd(3)");
    }
    let mut third = Service::start(&rules, address, &["--order", "price"]);
    third.running.wait_for("the switch applies 300 rules: program loaded");
}

/// Rules come and go while a feed runs; each message goes to the ports of the rules before or after a change.
fn deliveries(how: &str, through: fn(SocketAddr) -> SocketAddr, shape: &[&str]) {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", "stock == \"GOOGL\" : fwd(2)\n");
    let address = reserved_address();
    let rig = Rig::new(8, address);
    let mut service = Service::start(&rules, through(address), shape);
    service.running.wait_for(how);

    let mut feed = Feed::new(spec());
    let mut number = 0;
    rig.feed(Box::new(move || {
        number += 1;
        (number < 2_000_000).then(|| Frame { port: PortId(1), data: frame(&feed.datagram(number)) })
    }));
    // Sets of rules, and the datagram numbers at which each was requested and acknowledged.
    let mut current = vec!["stock == \"GOOGL\" : fwd(2)".to_owned()];
    let mut sets = vec![(0, 0, current.clone())];
    let mut step = |current: &[String], change: &mut dyn FnMut()| {
        std::thread::sleep(Duration::from_millis(30));
        let asked = rig.sent();
        change();
        sets.push((asked, rig.sent(), current.to_vec()));
    };
    let changing = [
        "stock == \"GOOGL\" and price > 5000000 : fwd(2, 3)",
        "shares >= 500 : fwd(3)",
        "kind in {\"E\", \"P\"} : fwd(4); fwd(5)",
        "stock == \"S0002\" or price < 3000000 : fwd(5)",
        "not valid(add_order) : fwd(3)",
        "shares in 200..700 and side == \"B\" : fwd(2)",
    ];
    let mut ids = Vec::new();
    for rule in changing {
        current.push(rule.to_owned());
        step(&current, &mut || ids.push(service.add(rule)));
    }
    for at in [3, 0, 2, 1] {
        let id = ids.remove(at);
        current.remove(1 + at);
        step(&current, &mut || drop(service.tell(&["remove", &id]).ok()));
    }
    std::thread::sleep(Duration::from_millis(50));
    let sent = rig.sent();
    rig.drain();
    let (left, last) = (rig.left(), rig.sent());

    let mut delivered = delivered(&left);
    let mut feed = Feed::new(spec());
    let (mut asked, mut changes) = (0, 0);
    for number in 1..=last {
        // The last set acknowledged before this datagram, and the sets requested before the datagram was through.
        let first = sets.iter().rposition(|(_, acknowledged, _)| *acknowledged < number).unwrap_or(0);
        let possible: Vec<&Vec<String>> =
            sets[first..].iter().take_while(|(asked, ..)| *asked <= number).map(|(_, _, rules)| rules).collect();
        changes += usize::from(possible.len() > 1);
        for message in messages(&feed.datagram(number)).unwrap() {
            let got = delivered.remove(&bytes(&message)).unwrap_or_default();
            asked += usize::from(!got.is_empty());
            let allowed: Vec<Vec<u32>> = possible.iter().map(|rules| wanted(rules, &message)).collect();
            assert!(allowed.contains(&got), "datagram {number}, {message:?}: got {got:?}, allowed {allowed:?}");
        }
    }
    assert!(delivered.is_empty(), "messages that nobody sent");
    assert!(sent > 100 && asked > 100 && changes >= 10, "{sent} datagrams, {asked} messages, {changes} during changes");
}

#[test]
fn the_file_is_watched_and_mistakes_change_nothing() {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", "include \"more.sub\"\nstock == \"A\" : fwd(2)\n");
    directory.write("more.sub", "rule first: stock == \"B\" : fwd(3)\n");
    let address = reserved_address();
    let _rig = Rig::new(8, address);
    let mut service = Service::start(&rules, address, &[]);
    service.running.wait_for("the switch applies 2 rules");
    let id = service.add("price > 5 : fwd(4)");
    assert_eq!(id, "3");

    // The file is replaced as an editor does it. The rule that stays keeps its id.
    let new = directory.write("new", "include \"more.sub\"\nstock == \"C\" : fwd(2)\n");
    std::fs::rename(new, &rules).unwrap();
    service.running.wait_for("1 rule added, 1 removed");
    let listed = service.list();
    let ids: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(ids.len(), 3, "{listed}");
    assert!(listed.contains("stock == \"C\"") && !listed.contains("stock == \"A\""), "{listed}");

    directory.write("more.sub", "rule first: stok == \"B\" : fwd(3)\n");
    service.running.wait_for("`stok`");
    service.running.wait_for("the previous rules stay in effect");
    assert_eq!(service.list(), listed, "a mistake changes nothing");
    // A change of an included file takes effect, too.
    directory.write("more.sub", "rule first: stock == \"B\" : fwd(3, 4)\n");
    service.running.wait_for("1 rule added, 1 removed");

    let listed = service.list();
    let of_file = listed.lines().find(|line| line.contains("file")).and_then(|line| line.split_whitespace().next());
    let of_file = of_file.expect("a rule of the file");
    for (arguments, code, said) in [
        (&["add", "stock == \"A\" : fwd(2)\nprice >"][..], 1, "rules:2:8"),
        (&["add", "stok == \"A\" : fwd(2)"], 1, "`stok`"),
        (&["add", "# nothing"], 1, "no rules found"),
        (&["add", "include \"/etc/passwd\""], 1, "cannot be included here"),
        (&["add", "stock == \"A\" : fwd(57)"], 1, "the switch rejected"),
        (&["remove", "99"], 1, "there is no rule 99"),
        (&["remove", of_file], 1, "rules.sub: remove it there"),
    ] {
        let before = service.list();
        let done = service.tell(arguments);
        assert_eq!(done.code, Some(code), "{done:?}");
        assert!(done.stderr.contains(said), "`{said}` is missing: {done:?}");
        assert_eq!(service.list(), before);
    }
    assert!(service.tell(&["remove", "3"]).ok().stdout.is_empty());
    let nobody = run(&mut triplane(&["subscribe", "list", "--service", &reserved_address().to_string()]));
    assert!(nobody.code == Some(3) && nobody.stderr.contains("subscribe serve"), "{nobody:?}");
    service.running.signal("TERM");
    assert!(service.running.wait().ok().stderr.contains("keeps its current rules"));
}

/// The rules of a file, in ascending order, as the service lists them.
fn listed(service: &Service) -> Vec<String> {
    let listed = service.tell(&["list", "--json"]).ok().json();
    let texts = listed.as_array().expect("a list").iter();
    let mut texts: Vec<String> = texts.map(|rule| rule["rule"].as_str().expect("text").to_owned()).collect();
    texts.sort_unstable();
    texts
}

#[test]
fn changes_of_a_large_file_are_those_of_its_lines_and_a_restart_writes_nothing() {
    let directory = Directory::new();
    let line = |number: usize| {
        format!("stock == \"S{:04}\" and price > {} : fwd({})", number % 500, number * 37 % 9_999, 1 + number % 7)
    };
    let mut lines: Vec<String> = (0..5_000).map(line).collect();
    let write = |lines: &[String]| directory.write("new", lines.join("\n") + "\n");
    let rules = directory.path("rules.sub");
    std::fs::rename(write(&lines), &rules).unwrap();
    let address = reserved_address();
    let _rig = Rig::new(8, address);
    let mut service = Service::start(&rules, address, &[]);
    service.running.wait_for("the switch applies 5000 rules: program loaded");
    let mut change = |lines: &[String], said: &str| {
        std::fs::rename(write(lines), &rules).unwrap();
        service.running.wait_for(said);
    };
    lines[2_500] = "stock == \"NEW\" : fwd(3)".to_owned();
    change(&lines, "1 rule added, 1 removed");
    // The rule before goes on in the new line, and a comment hides others.
    lines[2_501] = "; fwd(4)".to_owned();
    change(&lines, "1 rule added, 2 removed");
    lines[10] = "/*".to_owned();
    lines[20] = "*/".to_owned();
    change(&lines, "0 rules added, 11 removed");
    lines[30] = "stok == 1 : fwd(1)".to_owned();
    change(&lines, "rules.sub:31:1");
    lines[30] = "rule named: price == 7 : fwd(1)".to_owned();
    lines[4_000] = "rule named: price == 8 : fwd(1)".to_owned();
    change(&lines, "two rules have the name `named`");
    lines[4_000] = "rule other: price == 8 : fwd(1)".to_owned();
    change(&lines, "2 rules added, 2 removed");
    lines.splice(100..3_000, (0..3_000).map(|number| line(number + 9_000)));
    change(&lines, " rules added, ");
    let text = lines.join("\n");
    let mut expected: Vec<String> =
        text.split("/*").map(|part| part.split("*/").last().unwrap_or_default().to_owned()).collect();
    expected =
        expected.iter().flat_map(|part| part.lines().map(str::to_owned)).filter(|line| !line.is_empty()).collect();
    expected.sort_unstable();
    let got = listed(&service);
    assert_eq!((got.len(), got == expected), (expected.len(), true));
    drop(service);
    // The new process numbers the same tables in another order, but takes over the switch's numbers.
    let mut again = Service::start(&rules, address, &[]);
    let line = again.running.wait_for("the switch applies ");
    assert!(line.contains(": 0 writes"), "{line}");
    // Changes go on from there.
    lines[1_000] = "stock == \"LAST\" : fwd(2)".to_owned();
    std::fs::rename(write(&lines), &rules).unwrap();
    again.running.wait_for("1 rule added, 1 removed");
    assert!(listed(&again).contains(&lines[1_000]));
    drop(again);
    let mut third = Service::start(&rules, address, &[]);
    let line = third.running.wait_for("the switch applies ");
    assert!(line.contains(": 0 writes"), "{line}");
}

#[test]
fn tables_and_groups_of_the_formats_own_controls_are_left_alone() {
    const BRIDGE: &str = "
@query_fallback
control Bridge(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action send(bit<9> port) { standard_metadata.egress_spec = port; }
    action flood(bit<16> group) { standard_metadata.mcast_grp = group; }
    table stations {
        key = { hdr.ethernet.dst: exact; }
        actions = { send; flood; NoAction; }
        default_action = NoAction;
    }
    apply { stations.apply(); }
}
";
    let directory = Directory::new();
    let format = std::fs::read_to_string(support::root().join(FORMAT)).unwrap();
    let format = directory.write("feed.p4", format + BRIDGE);
    let rules = directory.write("rules.sub", "stock == \"GOOGL\" : fwd(2, 3)\n");
    let address = reserved_address();
    let _rig = Rig::new(8, address);
    let mut first = Service::of(&format, &rules, address, &[]);
    first.running.wait_for("the switch applies 1 rule: program loaded");
    drop(first);
    let (addr, id) = (address.to_string(), "--election-id=99");
    let ctl = |words: &[&str]| run(&mut triplane(&[&["ctl", "--addr", &addr][..], words].concat())).ok().stdout;
    ctl(&["insert", id, "stations", "hdr.ethernet.dst=02:00:00:00:00:07 -> send(port=7)"]);
    ctl(&["insert", id, "multicast", "77 -> 4, 5"]);
    let told = |ctl: &dyn Fn(&[&str]) -> String| ctl(&["entries", "stations"]) + &ctl(&["sessions"]);
    let before = told(&ctl);
    assert!(before.contains("send") && before.contains("77"), "{before}");
    let mut second = Service::of(&format, &rules, address, &[]);
    let line = second.running.wait_for("the switch applies 1 rule: ");
    assert!(line.contains(": 0 writes"), "{line}");
    assert_eq!(told(&ctl), before);
    second.add("price > 5 : fwd(4)");
    let after = told(&ctl);
    for own in ["00:07 -> Subscriptions.Bridge.send(port=7)", "multicast 77 -> 4, 5"] {
        assert!(before.contains(own) && after.contains(own), "{after}");
    }
}

#[test]
fn switches_come_back_and_rules_that_were_added_are_kept() {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", "stock == \"GOOGL\" : fwd(2)\n");
    let kept = directory.path("added.sub");
    let address = reserved_address();
    // The service can start before the switch.
    let mut service = Service::start(&rules, address, &["--keep", &kept]);
    service.running.wait_for("cannot be reached");
    let done = service.tell(&["add", "price > 5 : fwd(4)"]);
    assert!(done.code == Some(3) && done.stderr.contains("cannot be reached"), "{done:?}");
    let rig = Rig::new(8, address);
    service.running.wait_for("the switch applies 1 rule");
    let (first, second) = (service.add("price > 5 : fwd(3)"), service.add("price > 6 : fwd(4)"));
    service.tell(&["remove", &first]).ok();
    let format = "examples/market-data/feed.p4";
    let second_of = |more: &[&str]| run(triplane(&["subscribe", "serve", format, &rules, "--keep"]).args(more));
    let done = second_of(&[&kept, "--listen", "0"]);
    assert!(done.stderr.contains("in use by another service"), "{done:?}");
    let before = std::fs::read_to_string(&rules).unwrap();
    let done = second_of(&[&rules, "--listen", "0"]);
    assert!(done.stderr.contains("use another file for --keep"), "{done:?}");
    assert_eq!(std::fs::read_to_string(&rules).unwrap(), before);

    drop(rig);
    service.running.wait_for("the connection to the switch was lost");
    let rig = Rig::new(8, address);
    service.running.wait_for("the switch applies 2 rules: program loaded");
    let listed = service.list();
    let mut feed = Feed::new(spec());
    let mut left = 50_u64;
    rig.feed(Box::new(move || {
        left = left.saturating_sub(1);
        (left > 0).then(|| Frame { port: PortId(1), data: frame(&feed.datagram(left)) })
    }));
    eventually("a delivery", || rig.left().contains_key(&2) && rig.left().contains_key(&4));

    // A restarted service finds the switch in its intended state.
    service.running.signal("TERM");
    service.running.wait().ok();
    let mut service = Service::start(&rules, address, &["--keep", &kept]);
    service.running.wait_for("the switch applies 2 rules: ");
    assert_eq!(service.list().lines().count(), listed.lines().count());
    assert!(service.list().contains(&format!("{second}  added  price > 6")), "{}", service.list());
    assert!(!service.list().contains("price > 5"), "{}", service.list());
    let third: u64 = service.add("price > 7 : fwd(4)").parse().unwrap();
    assert!(third > second.parse().unwrap(), "an id is never given again");
    // A rule that cannot be persisted is not acknowledged, and it exists neither here nor on the switch.
    std::fs::remove_file(&kept).unwrap();
    let entries = || run(&mut triplane(&["ctl", "entries", "--addr", &address.to_string()])).ok().stdout;
    let (listed, held) = (service.list(), entries());
    assert!(held.contains("Subscriptions."), "{held}");
    let done = service.tell(&["add", "price > 4 and side == \"B\" : fwd(5)"]);
    assert!(done.code != Some(0) && done.stderr.contains("cannot be stored in the journal of added rules"), "{done:?}");
    let done = service.tell(&["remove", &second]);
    assert!(done.code != Some(0) && done.stderr.contains("cannot be stored in the journal of added rules"), "{done:?}");
    assert_eq!((service.list(), entries()), (listed, held));
}

#[test]
fn another_controller_may_take_the_switch_for_a_while() {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", "stock == \"GOOGL\" : fwd(2); to_controller\n");
    let address = reserved_address();
    let _rig = Rig::new(8, address);
    let mut service = Service::start(&rules, address, &[]);
    service.running.wait_for("the switch applies 1 rule");
    let to = address.to_string();
    // Another controller stays primary while it watches, and an entry of a leaf that does more than deliver is deleted.
    let table = "Subscriptions.leaf";
    let entries = run(&mut triplane(&["ctl", "entries", table, "--addr", &to])).ok().stdout;
    let state =
        entries.split("state=").nth(1).and_then(|rest| rest.split([' ', ',']).next()).expect("a leaf").to_owned();
    let other = Running::start(&mut triplane(&["ctl", "watch", "--addr", &to, "--election-id", "100"]));
    service.running.wait_for("another controller is primary");
    let done = service.tell(&["add", "price > 5 : fwd(4)"]);
    assert!(done.code == Some(3) && done.stderr.contains("another controller"), "{done:?}");
    other.signal("INT");
    other.wait();
    service.running.wait_for("the switch applies 1 rule: 0 writes");
    let delete = ["ctl", "--addr", &to, "--election-id", "200", "delete", table, &format!("state={state}")];
    run(&mut triplane(&delete)).ok();
    service.running.wait_for("the switch applies 1 rule: 1 write");
    service.add("price > 5 : fwd(4)");
    let done = run(&mut triplane(&["subscribe", "list", "--service", &to]));
    assert!(done.stderr.contains("is not `triplane subscribe serve`"), "{done:?}");
    // The first service takes over with the second one's election id; the second one takes the primary role back.
    for through in [|address| address, plain::plain] {
        let mut second = Service::start(&rules, through(address), &["--election-id", "1000"]);
        second.running.wait_for("the switch applies 1 rule");
        service.running.wait_for("another controller is primary");
        second.running.signal("TERM");
        second.running.wait().ok();
        service.running.wait_for("the switch applies 2 rules");
    }
}

#[test]
fn idle_connections_do_not_block_others() {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", "stock == \"A\" : fwd(1)\n");
    let service = Service::start(&rules, reserved_address(), &[]);
    let connect = |_| std::net::TcpStream::connect(&service.address).unwrap();
    let _silent: Vec<_> = (0..70).map(connect).collect();
    assert!(service.list().contains("fwd(1)"));
    // Watching clients keep calls open indefinitely: capacity remains for other clients.
    let arguments = ["subscribe", "watch", "--service", &service.address];
    let _watching: Vec<Running> = (0..40).map(|_| Running::start(&mut triplane(&arguments))).collect();
    let _silent: Vec<_> = (0..70).map(connect).collect();
    eventually("watchers do not take all places", || service.tell(&["list"]).code == Some(0));
    assert!(service.list().contains("fwd(1)"));
}

#[test]
fn control_characters_of_rules_do_not_reach_the_terminal() {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", "stock == \"A\u{1b}[2J\" : fwd(1)\n");
    let service = Service::start(&rules, reserved_address(), &[]);
    let listed = service.list();
    assert!(listed.contains("\"A␛[2J\"") && !listed.contains('\u{1b}'), "{listed:?}");
    assert!(service.tell(&["list", "--json"]).ok().stdout.contains("A\\u001b[2J"));
}
