/* Value sets of numbers, structs and enums; only those that are used. */

#include <core.p4>
#include <v1model.p4>

enum bit<16> kind_t { ip = 0x0800, arp = 0x0806 }
struct pattern_t {
    @match(ternary) @id(3) bit<16> kind;
    bit<8> version;
    @match(lpm) @brief("network") bit<32> network;
}
header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> kind;
}

struct headers_t {
    ethernet_t ethernet;
}
struct meta_t {}

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    @id(9) value_set<bit<16>>(4) kinds;
    value_set<pattern_t>(8) patterns;
    value_set<kind_t>(2) enums;
    value_set<bit<8>>(2) unused;
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.kind) {
            kinds: more;
            default: accept;
        }
    }
    state more {
        transition select(hdr.ethernet.kind, 8w4, 32w1) {
            patterns: also;
            default: accept;
        }
    }
    state also {
        transition select((kind_t)hdr.ethernet.kind) {
            enums: accept;
            default: reject;
        }
    }
}

control Nothing(inout headers_t hdr, inout meta_t meta) {
    apply {}
}

control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {}
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {}
}

control D(packet_out packet, in headers_t hdr) {
    apply {}
}

V1Switch(P(), Nothing(), C(), E(), Nothing(), D()) main;
