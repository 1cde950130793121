//! Full names of fields that several headers share.

use crate::subscribe::FORMAT;
use crate::support::{Directory, run, triplane};

#[test]
fn a_full_name_is_the_field_in_one_header() {
    let directory = Directory::new();
    let same = |one: &str, other: &str| {
        let [a, b] = [("a.sub", one), ("b.sub", other)].map(|(name, rules)| directory.write(name, rules));
        let done = run(&mut triplane(&["subscribe", "diff", FORMAT, &a, &b]));
        assert_eq!(done.code, Some(0), "{one} and {other}: {done:?}");
    };
    same("add_order.price > 5 : fwd(1)", "valid(add_order) and price > 5 : fwd(1)");
    same("5 < add_order.price : fwd(1)", "valid(add_order) and price > 5 : fwd(1)");
    same("add_order.stock != GOOGL : fwd(1)", "valid(add_order) and stock != GOOGL : fwd(1)");
    same("not (add_order.stock == GOOGL) : fwd(1)", "not valid(add_order) or stock != GOOGL : fwd(1)");
    // A field of one header has its path as a second name.
    same("attributed.attribution == AB : fwd(1)", "attribution == AB : fwd(1)");
}

/// Two headers with a field `port`, which a packet may both have or not.
fn format(directory: &Directory, behind: &str) -> String {
    let text = "#include <v1model.p4>
header one_t { bit<8> next; @query_field(\"port\") bit<16> port; }
header two_t { @query_field(\"port\") bit<16> number; }
struct headers_t { one_t one; two_t two; }
struct metadata_t { bit<1> unused; }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start { transition select(packet.lookahead<bit<8>>()) { 1: one; 2: two; default: accept; } }
    state one { packet.extract(hdr.one); transition BEHIND; }
    state two { packet.extract(hdr.two); transition accept; }
}
";
    directory.write("format.p4", text.replace("BEHIND", behind))
}

#[test]
fn a_field_of_two_headers_of_one_packet_gets_a_warning() {
    let directory = Directory::new();
    let check = |behind: &str, rule: &str| {
        let rules = directory.write("rules.sub", rule);
        run(&mut triplane(&["subscribe", "check", &format(&directory, behind), &rules]))
    };
    let apart = check("accept", "one.port == 5 : fwd(1)");
    assert!(apart.code == Some(0) && !apart.stderr.contains("query-shared"), "{apart:?}");
    let both = check("two", "port == 5 : fwd(1)");
    assert!(both.stderr.contains("`port` is a field of `one` and of `two`, and a packet can have both"), "{both:?}");
    assert!(both.stderr.contains("rules then test the field of `two`"), "{both:?}");
    let second = check("two", "two.number == 5 : fwd(1)");
    assert_eq!(second.code, Some(0), "{second:?}");
    // The value of the first one is not known if there is a second one.
    let first = check("two", "one.port == 5 : fwd(1)");
    assert!(first.stderr.contains("there is no field or counter `one.port`"), "{first:?}");
}

#[test]
fn a_path_that_is_no_field_of_its_own_is_explained_in_aggregates() {
    let directory = Directory::new();
    let rules = directory.write("rules.sub", "avg(add_order.price) > 5 : fwd(1)");
    let done = run(&mut triplane(&["subscribe", "check", FORMAT, &rules]));
    assert!(done.stderr.contains("write `price`, and `valid(add_order)` in the condition"), "{done:?}");
}
