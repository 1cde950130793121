//! Files of unusual forms: the stream reader reports what the reader of whole files does, or leaves them to it.

use rng::SplitMix64;

use crate::files::{check_same_as_whole, check_stream, program};

const ENTRY: &str = r#"{"table": "shared", "match": {"net": 1}, "member_id": 1}"#;
const MEMBERS: &str =
    r#""action_profile_members": [{"action_profile": "In.plain", "member_id": 1, "action_name": "drop"}]"#;

#[test]
fn members_named_table_entries_that_are_no_array_are_left_to_the_whole_reader() {
    let program = program();
    for value in [r#"{"table": "nothing"}"#, "null", "\"text\"", "7", "true", "[7]", "[[]]", "[null]"] {
        let text = format!("{{\"table_entries\": {value}}}");
        assert!(!check_same_as_whole(&program, "e.json", &text), "{text}");
    }
    for members in [
        format!(r#""table\u005fentries": [{ENTRY}]"#),
        format!(r#""\u0074able_entries": null, {MEMBERS}"#),
        format!(r#""table_entries": [], "table_entries": [{ENTRY}]"#),
        format!(r#""table_entries": [{ENTRY}], "table_entries": null"#),
        format!(r#""table_entries": {{}}, "table_entries": [{ENTRY}]"#),
        format!(r#""table_entries": [{ENTRY}], "table\u005fentries": [{ENTRY}]"#),
        format!(r#""table\u005fentries": [{ENTRY}], "table_entries": [{ENTRY}]"#),
    ] {
        let text = format!("{{{members}}}");
        assert!(!check_same_as_whole(&program, "e.json", &text), "{text}");
    }
    for usual in ["{}".to_owned(), format!("{{{MEMBERS}}}"), format!("{{{MEMBERS}, \"table_entries\": [{ENTRY}]}}")] {
        assert!(check_same_as_whole(&program, "e.json", &usual), "{usual}");
    }
}

#[test]
fn text_that_is_not_utf8_is_left_to_the_whole_reader() {
    let program = program();
    let good = format!("{{ {MEMBERS}, \"table_entries\": [ /*a*/ {ENTRY} /*b*/ , /*c*/ {ENTRY}, /*d*/ ] /*e*/ }}");
    for place in ["a", "b", "c", "d", "e", "net", "shared", "plain"] {
        let at = good.find(place).expect("it is there");
        for wrong in [&b"\xff"[..], b"\xc3", b"\xed\xa0\x80"] {
            let mut bytes = good.clone().into_bytes();
            bytes.splice(at..at + 1, wrong.iter().copied());
            assert!(check_stream(&program, &bytes).is_none(), "{}", String::from_utf8_lossy(&bytes));
        }
        let text = good.replacen(place, "\u{e9}\u{20ac}", 1);
        check_same_as_whole(&program, "e.json", &text);
    }
}

#[test]
fn more_mistakes_than_are_kept_are_counted_alike() {
    let wrong = vec![r#"{"table": "nothing"}"#; 500].join(",\n");
    assert!(check_same_as_whole(&program(), "e.json", &format!("{{\"table_entries\": [{wrong}]}}")));
    let twice =
        (0..400).map(|net| format!(r#"{{"table": "shared", "match": {{"net": {}}}, "member_id": 1}}"#, net % 200));
    let twice = twice.collect::<Vec<_>>().join(",");
    assert!(check_same_as_whole(&program(), "e.json", &format!("{{{MEMBERS}, \"table_entries\": [{twice}]}}")));
}

/// Draws one of some texts.
fn pick<'a>(random: &mut SplitMix64, texts: &[&'a str]) -> &'a str {
    texts[random.below(texts.len() as u64) as usize]
}

/// Writes a table entry, which often has no mistake.
fn element(random: &mut SplitMix64) -> String {
    let net = random.below(40);
    match random.below(24) {
        0 => pick(random, &["null", "7", "[]", "{}", "\"text\"", "", "{", "}"]).to_owned(),
        1 => r#"{"table": "routes", "default_action": true, "action_name": "drop"}"#.to_owned(),
        2 => r#"{"table": "routes", "match": {"dst": ["10.0.0.1", 8]}, "action_name": "drop"}"#.to_owned(),
        3 => r#"{"table": "nowhere", "match": {}}"#.to_owned(),
        4 => format!(r#"{{"table": "shared", "match": {{"net": {net}}}, "member_id": 2}}"#),
        5 => format!(r#"{{"t\u0061ble": "shared", /* {{ */ "match": {{"net": "0x{net}",}}, "member_id": 1}}"#),
        6 => format!(
            r#"{{"table": "acl", "match": {{"proto": {net}, "src": "1.2.3.0 &&& 255.255.255.0", "port": "5..9"}},
                "priority": {net}, "action_name": "drop"}}"#
        ),
        7 => format!(
            r#"{{"table": "aged", "match": {{"net": {net}}}, "action_name": "drop", "idle_timeout_ns": {net}}}"#
        ),
        8..16 => format!(
            r#"{{"table": "routes", "match": {{"dst": ["10.{net}.0.0", 16]}}, "action_name": "forward",
                "action_params": {{"mac": "02:00:00:00:00:01", "port": {net}}}}}"#
        ),
        _ => format!(r#"{{"table": "shared", "match": {{"net": {net}}}, "member_id": 1}}"#),
    }
}

/// Writes a member of a file.
fn file_member(random: &mut SplitMix64) -> String {
    const ODD: &[&str] = &["null", "{}", "[]", "\"text\"", "7", "[7]", "[{}]", "{\"a\": [1]}", "tru", ""];
    match random.below(10) {
        0 => format!("\"{}\": {}", pick(random, &["queue_entries", "target", "p4info", "nothing"]), pick(random, ODD)),
        1 => format!("\"{}\": {}", pick(random, &["table_entries", "table\\u005fentries"]), pick(random, ODD)),
        2..5 => MEMBERS.to_owned(),
        _ => {
            let name = pick(random, &["table_entries", "table_entries", "table_entries", "t\\u0061ble_entries"]);
            let mut text = format!("\"{name}\" : [");
            let count = random.below(6);
            for number in 0..count {
                text += &element(random);
                let is_last = number + 1 == count;
                text += if is_last == random.percent(3) { "," } else { "" };
                text += pick(random, &["\n", " ", "", "// ] comment \u{e9}\n", "/* \"{ */", "\r\n", "\t"]);
            }
            text + "]"
        }
    }
}

#[test]
fn both_readers_agree_on_generated_files() {
    let program = program();
    let mut random = SplitMix64::new(11);
    let (mut streamed, mut right) = (0, 0);
    for _ in 0..12_000 {
        let members: Vec<String> = (0..random.below(4)).map(|_| file_member(&mut random)).collect();
        let around = pick(&mut random, &["", " ", "\n", "// x\n", "/* y */"]);
        let mut bytes = format!("{around}{{{around}{}{around}}}{around}", members.join(", ")).into_bytes();
        if random.percent(30) {
            for _ in 0..1 + random.below(2) {
                let at = random.below(bytes.len() as u64) as usize;
                match random.below(3) {
                    0 => bytes[at] = b"{}[]\",:0/*\n\\\xff\xc3"[random.below(14) as usize],
                    1 => drop(bytes.remove(at)),
                    _ => bytes.insert(at, bytes[random.below(bytes.len() as u64) as usize]),
                }
            }
        }
        match std::str::from_utf8(&bytes) {
            Ok(text) => {
                streamed += u32::from(check_same_as_whole(&program, "e.json", text));
                right += u32::from(matches!(check_stream(&program, &bytes), Some((_, Some(_)))));
            }
            Err(_) => {
                let shown = String::from_utf8_lossy(&bytes);
                assert!(check_stream(&program, &bytes).is_none(), "only the whole reader refuses such text: {shown}");
            }
        }
    }
    assert!(streamed > 4000 && right > 1000, "{streamed} files were streamed, {right} of them without a mistake");
}
