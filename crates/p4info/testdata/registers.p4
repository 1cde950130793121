/* Registers of every type that one can hold. */

#include <core.p4>
#include <v1model.p4>

enum bit<8> state_t { idle = 0, busy = 1 }
type bit<20> label_t;
struct pair_t {
    bit<8> first;
    int<8> second;
}

struct headers_t {}
struct meta_t {}

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        transition accept;
    }
}

control Nothing(inout headers_t hdr, inout meta_t meta) {
    apply {}
}

control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    register<bit<48>>(1024) bits;
    register<bool>(8) flags;
    register<state_t>(4) states;
    register<label_t>(4) labels;
    register<pair_t>(2) pairs;
    register<tuple<bit<1>, pair_t>>(2) tuples;
    apply {}
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {}
}

control D(packet_out packet, in headers_t hdr) {
    apply {}
}

V1Switch(P(), Nothing(), C(), E(), Nothing(), D()) main;
