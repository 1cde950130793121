/* Types with names: translated, chained, and enums. */

#include <core.p4>
#include <v1model.p4>

@p4runtime_translation("example.org/mac", bit<64>)
type bit<48> mac_t;
@p4runtime_translation("example.org/name", string) @kept("here")
type bit<12> name_t;
type bit<8> small_t;
type small_t smaller_t;
enum bit<4> level_t { low = 1, @name("highest") high = 14 }
enum colour_t { red, green }
typedef mac_t address_t;

struct headers_t {}
struct meta_t {
    mac_t mac;
    name_t name;
    smaller_t small;
    level_t level;
    address_t address;
}

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        transition accept;
    }
}

control Nothing(inout headers_t hdr, inout meta_t meta) {
    apply {}
}

control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    action set(mac_t mac, name_t name, smaller_t small, level_t level) {
        meta.mac = mac;
    }
    table t {
        key = {
            meta.mac: exact;
            meta.name: ternary;
            meta.small: exact;
            meta.level: exact;
            meta.address: exact;
            standard.parser_error: exact;
        }
        actions = { set; }
        default_action = set(1, 5, (smaller_t)(small_t)7, level_t.high);
    }
    action paint(colour_t colour, int<7> number) {}
    table painted {
        actions = { paint; NoAction; }
        default_action = NoAction;
    }
    apply {
        painted.apply();
        t.apply();
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {}
}

control D(packet_out packet, in headers_t hdr) {
    apply {}
}

V1Switch(P(), Nothing(), C(), E(), Nothing(), D()) main;
