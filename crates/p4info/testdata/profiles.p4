/* Action profiles and selectors, shared, declared and constructed in place. */

#include <core.p4>
#include <v1model.p4>


struct headers_t {}
struct meta_t {
    bit<8> a;
    bit<8> b;
    bit<8> c;
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
    @max_group_size(8) @selector_size_semantics("sum_of_members") @max_member_weight(100)
    action_selector(HashAlgorithm.crc16, 64, 14) members;
    @selector_size_semantics("sum_of_weights") @weights_disallowed @owner("routing")
    action_selector(HashAlgorithm.identity, 32, 10) weights;
    action_profile(16) shared;
    action set(bit<9> port) {
        standard.egress_spec = port;
    }
    table by_members {
        key = { meta.a: exact; meta.b: selector; meta.c: exact; }
        actions = { set; }
        implementation = members;
    }
    table by_weights {
        key = { meta.a: exact; meta.c: selector; }
        actions = { set; }
        implementation = weights;
    }
    table zebra {
        key = { meta.a: exact; }
        actions = { set; }
        implementation = shared;
    }
    table aardvark {
        key = { meta.b: exact; }
        actions = { set; }
        implementation = shared;
    }
    table in_place {
        key = { meta.a: exact; }
        actions = { set; }
        @name("mine") implementation = action_profile(5);
    }
    table nameless {
        key = { meta.a: exact; }
        actions = { set; }
        implementation = action_profile(6);
    }
    apply {
        by_members.apply();
        by_weights.apply();
        zebra.apply();
        aardvark.apply();
        in_place.apply();
        nameless.apply();
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {}
}

control D(packet_out packet, in headers_t hdr) {
    apply {}
}

V1Switch(P(), Nothing(), C(), E(), Nothing(), D()) main;
