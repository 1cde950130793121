//! `examples/cache`.

use super::{Example, Host, frames};
use crate::support::Directory;

const EXAMPLE: Example = Example { name: "cache", format: "cache.p4", rules: "keys.sub" };

const CLIENT: Host = Host { mac: [2, 0, 0, 0, 0, 1], ip: [10, 0, 0, 1], port: 40_001 };
const SERVER: Host = Host { mac: [2, 0, 0, 0, 0, 2], ip: [10, 0, 0, 2], port: 9700 };

/// A request or a response, as the payload of a datagram.
fn message(op: u8, request: u32, key: &str, value: Option<u64>) -> Vec<u8> {
    let mut message = [&[op][..], &request.to_be_bytes(), format!("{key:16}").as_bytes()].concat();
    message.extend(value.iter().flat_map(|value| value.to_be_bytes()));
    message
}

fn get(request: u32, key: &str) -> Vec<u8> {
    CLIENT.datagram(SERVER, &message(b'G', request, key, None))
}

fn put(request: u32, key: &str, value: u64) -> Vec<u8> {
    CLIENT.datagram(SERVER, &message(b'P', request, key, Some(value)))
}

fn answer(request: u32, key: &str, value: u64) -> Vec<u8> {
    SERVER.datagram(CLIENT, &message(b'V', request, key, Some(value)))
}

#[test]
fn the_switch_answers_for_the_keys_of_rules_and_the_server_for_all_others() {
    let all = [
        get(1, "stock:apples"),
        get(2, "stock:plums"),
        get(3, "stock:pears"),
        put(4, "stock:pears", 84),
        put(5, "stock:plums", 31),
        get(6, "stock:apples2"),
    ];
    EXAMPLE.has_capture("clients.pcap", 0, &all);
    EXAMPLE.has_capture("server.pcap", 150, &[answer(2, "stock:plums", 32)]);
    let (directory, _) = EXAMPLE.run_readme();
    let to_clients = frames(&directory.path("to-clients.pcap"));
    // Addresses, ports, lengths and both checksums are those that a server would send.
    let expected = [answer(1, "stock:apples", 1200), answer(2, "stock:plums", 32), answer(3, "stock:pears", 85)];
    assert_eq!(to_clients, expected);
    let to_server = [1, 3, 4, 5].map(|number| all[number].clone());
    assert_eq!(frames(&directory.path("to-server.pcap")), to_server);
    let told = std::fs::read_to_string(directory.path("controller.jsonl")).unwrap();
    let told: Vec<&str> = told.lines().collect();
    let hex: String = all[3].iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(told.len() == 1 && told[0].contains(&hex), "{told:?}");
}

#[test]
fn padding_is_cut_off_and_what_is_no_request_is_dropped_or_passes_as_it_is() {
    let mut padded = get(1, "stock:apples");
    padded.extend([0xaa; 5]);
    let mut long = get(1, "stock:apples");
    long[14 + 20 + 5] += 1;
    long.push(0);
    let mut unknown = get(1, "stock:apples");
    unknown[14 + 20 + 8] = b'X';
    let mut cut = get(1, "stock:apples");
    cut.truncate(cut.len() - 1);
    let mut fragment = get(1, "stock:apples");
    fragment[14 + 6] = 0x20;
    // The checksum is wrong and stays wrong, so that the receiver detects the damage.
    let mut damaged = put(7, "stock:plums", 9);
    *damaged.last_mut().unwrap() ^= 1;
    let sent = [padded, long, unknown, cut, fragment, damaged.clone()];
    let got = EXAMPLE.send(&[(1, &sent)], 2);
    assert_eq!(got, [vec![answer(1, "stock:apples", 1200)], vec![damaged]]);
}

#[test]
fn an_answer_returns_to_its_sender_even_if_other_rules_match() {
    let directory = Directory::new();
    let answer_to = |port: &str| format!("op == \"G\" and key == \"{port}\" : answer(7); {port}\n");
    // Rules that deliver to no port, to one port, to several ports, and also to the controller.
    let others = ["drop", "fwd(2)", "fwd(2, 3)", "to_controller"];
    let rules = others.map(answer_to).concat() + "op == \"G\" and key == \"none\" : answer(7)\n";
    let rules = directory.write("rules.sub", rules);
    let keys = [&others[..], &["none"]].concat();
    let sent: Vec<Vec<u8>> = keys.iter().map(|key| get(1, key)).collect();
    let expected: Vec<Vec<u8>> = keys.iter().map(|key| answer(1, key, 7)).collect();
    assert_eq!(EXAMPLE.send_by(&rules, &[(1, &sent)], 3), [expected, vec![], vec![]]);
}
