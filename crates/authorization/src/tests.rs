//! Tests of users, and of the diagnostics about files.

use diagnostics::{Diagnostics, SourceMap};

use super::*;

fn parse(text: &str) -> Result<Policy, String> {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let file = map.add("users.toml", text);
    let policy = Policy::parse(file, text, &mut diagnostics);
    assert_eq!(policy.is_none(), diagnostics.has_errors());
    policy.ok_or_else(|| diagnostics.render(&map, false))
}

fn user(policy: &Policy, name: &str) -> Option<User> {
    policy.user(&[CertificateName::other(name)]).ok()
}

const USERS: &str = r#"
[[user]]
name = "ops"
roles = ["*"]
read = ["*"]
write = ["*"]
pipeline = true
packets = true
rules = { ports = ["*"], actions = ["*"], remove = "all", list = "all" }

[[user]]
name = "routing"
roles = ["", "routing*"]
read = ["MyIngress.*"]
write = ["MyIngress.ipv4_*", "multicast"]

[[user]]
name = "spiffe://example/*"
read = ["*"]
rules = { ports = [1, "4-7"], actions = ["to_controller"] }
"#;

#[test]
fn a_user_has_the_rights_of_its_entry_and_no_others() {
    let policy = parse(USERS).unwrap();
    let ops = user(&policy, "ops").unwrap();
    assert!(ops.may_read("x") && ops.may_write(CLONE) && ops.may_hold("any") && ops.may_set_pipeline());
    assert!(ops.has_packets() && ops.rules().is_some_and(|rules| rules.may_forward_to(u32::MAX)));
    let routing = user(&policy, "routing").unwrap();
    assert!(routing.may_hold("") && routing.may_hold("routing2") && !routing.may_hold("acl"));
    assert!(routing.may_read("MyIngress.acl") && !routing.may_read("MyEgress.acl") && !routing.may_read(MULTICAST));
    assert!(routing.may_write("MyIngress.ipv4_lpm") && !routing.may_write("MyIngress.acl"));
    assert!(routing.may_write(MULTICAST) && !routing.may_write(CLONE));
    assert!(!routing.may_set_pipeline() && !routing.has_packets() && routing.rules().is_none());
    assert_eq!(routing.denial("write table `t`"), "user `routing` may not write table `t`");
    let feed = user(&policy, "spiffe://example/feed").unwrap();
    let rules = feed.rules().unwrap();
    assert!([1, 4, 7].iter().all(|port| rules.may_forward_to(*port)) && !rules.may_forward_to(8));
    assert!(rules.may_call("to_controller") && !rules.may_call("mark") && rules.may_add());
    assert_eq!((rules.remove(), rules.list()), (RuleScope::Own, RuleScope::Own));
    assert!(!feed.may_hold("") && !feed.may_write("MyIngress.acl"));
}

#[test]
fn a_client_is_the_first_of_its_names_that_is_listed() {
    let policy = parse(USERS).unwrap();
    let names = ["stranger", "routing", "ops"].map(CertificateName::other);
    assert_eq!(&**policy.user(&names).unwrap().name(), "routing");
    let stranger = policy.user(&names[..1]).unwrap_err();
    assert_eq!(stranger.to_string(), "the authorization file has no user `stranger`");
    assert!(policy.user(&[]).unwrap_err().to_string().starts_with("the client certificate has no name"));
    assert!(user(&policy, "OPS").is_none() && user(&policy, "").is_none());
    let many: Vec<_> = (0..5000).map(|number: u32| CertificateName::other(&number.to_string().repeat(500))).collect();
    assert!(policy.user(&many).unwrap_err().to_string().len() < 2048);
}

#[test]
fn the_case_of_dns_names_does_not_count() {
    let policy = parse("[[user]]\nname = \"*.Example\"\nread = [\"dns\"]\n").unwrap();
    let found = |name: CertificateName| policy.user(&[name]).map(|user| user.name().to_string());
    assert_eq!(found(CertificateName::dns("OPS.example")), Ok("ops.example".to_owned()));
    assert_eq!(found(CertificateName::other("OPS.Example")), Ok("OPS.Example".to_owned()));
    assert!(found(CertificateName::other("ops.example")).is_err());
}

#[test]
fn patterns_without_an_object_are_warned_about_with_the_nearest_name() {
    let text = r#"
[[user]]
name = "a"
roles = [""]
read = ["*", "MyIngres.*", "MyIngress.ipv4_lmp", "MyEgress.*", "multicast", "In.ipv4_*"]
write = ["ipv4_lpm", "zzzzzz", "clone", "*.ipv4_lpm"]
"#;
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let file = map.add("users.toml", text);
    let policy = Policy::parse(file, text, &mut diagnostics).unwrap();
    policy.check_objects(&["MyIngress.ipv4_lpm", "MyIngress.acl"], &mut diagnostics);
    let report = diagnostics.render(&map, false);
    for (pattern, help) in [
        ("MyIngres.*", "did you mean `MyIngress.*`?"),
        ("MyIngress.ipv4_lmp", "did you mean `MyIngress.ipv4_lpm`?"),
        ("MyEgress.*", "did you mean `MyIngress.*`?"),
        ("ipv4_lpm", "did you mean `MyIngress.ipv4_lpm`?"),
        ("In.ipv4_*", "did you mean `MyIngress.ipv4_*`?"),
        ("zzzzzz", "the program has `MyIngress.ipv4_lpm`, `MyIngress.acl`, `multicast`, `clone`"),
    ] {
        assert!(report.contains(&format!("`{pattern}` matches no object of the program")), "{report}");
        assert!(report.contains(help), "no `{help}` in\n{report}");
    }
    assert_eq!(report.matches("matches no object").count(), 6, "{report}");
    assert!(!diagnostics.has_errors() && report.contains("users.toml:5:"), "{report}");
}

#[test]
fn own_rules_are_those_that_the_user_added() {
    assert!(RuleScope::Own.includes(Some("a"), "a") && !RuleScope::Own.includes(Some("b"), "a"));
    assert!(!RuleScope::Own.includes(None, "a") && RuleScope::All.includes(None, "a"));
    assert!(!RuleScope::None.includes(Some("a"), "a"));
}

#[test]
fn mistakes_have_a_place_and_a_remedy() {
    let text = r#"
[[user]]
nme = "a"
[[user]]
name = "b"
write = ["t"]
[[user]]
name = "c"
roles = "r"
read = [1]
pipeline = "yes"
rules = { ports = ["7-4", "x", -1], list = "mine", see = 1 }
[[user]]
name = "*"
[[user]]
name = "d"
[[user]]
name = "c"
[[user]]
name = ""
"#;
    let report = parse(text).unwrap_err();
    for expected in [
        "a user has no `nme`",
        "did you mean `name`?",
        "this user has no name",
        "`write` has no effect without a role",
        "add `roles = [\"\"]` for the default role",
        "`roles` must be a list of names",
        "`read` lists names, and this is none",
        "`pipeline` must be true or false",
        "`list` must be \"none\", \"own\" or \"all\"",
        "`rules` has no `see`",
        "this entry is never used, since `*` above matches `d` as well",
        "user `c` has two entries",
        "`name` must be a text that is not empty",
        "users.toml:12:",
    ] {
        assert!(report.contains(expected), "no `{expected}` in\n{report}");
    }
    assert_eq!(report.matches("this is no port number").count(), 3, "{report}");
    assert!(parse("").unwrap_err().contains("the file has no users"));
    assert!(parse("user = 1").unwrap_err().contains("write [[user]] before each user"));
    assert!(parse("user = [1]").unwrap_err().contains("a user must be a table"));
    assert!(parse("[[user]").unwrap_err().contains("users.toml:1:"));
    assert!(parse("[[users]]\nname = \"a\"").unwrap_err().contains("did you mean `user`?"));
}

#[test]
fn names_come_from_the_certificate() {
    let names = |der: &[u8]| certificate_names(der).into_iter().map(|name| name.text).collect::<Vec<_>>();
    let all = names(include_bytes!("../testdata/alternatives.der"));
    assert_eq!(all, ["ops.example", "Alice@example.com", "spiffe://example/switch"]);
    assert_eq!(names(include_bytes!("../testdata/common.der")), ["control äöü"]);
    assert_eq!(names(include_bytes!("../testdata/address-only.der")), ["common"]);
    assert!(names(include_bytes!("../testdata/nameless.der")).is_empty());
}

#[test]
fn damaged_certificates_have_no_names_or_others_and_never_panic() {
    let whole = include_bytes!("../testdata/alternatives.der");
    for length in 0..whole.len() {
        assert!(certificate_names(&whole[..length]).is_empty(), "cut to {length} bytes");
    }
    let mut changed = whole.to_vec();
    for at in 0..whole.len() {
        for bit in 0..8 {
            changed[at] ^= 1 << bit;
            let _ = certificate_names(&changed);
            changed[at] ^= 1 << bit;
        }
    }
}
