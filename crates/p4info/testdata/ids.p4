/* Ids: given, hashed, and where hashes would collide. */

#include <core.p4>
#include <v1model.p4>


struct headers_t {}
struct meta_t {
    bit<1> a;
    bit<1> b;
    bit<1> c;
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
    @id(0x123456) action given() {}
    @id(0x01ABCDEF) action given_whole() {}
    action hashed() {}
    @id(21257015) action taken_from_no_action() {}
    table t {
        key = {
            meta.a: exact;
            meta.b: exact @id(1);
            meta.c: exact;
        }
        actions = { given; given_whole; hashed; taken_from_no_action; NoAction; }
    }
    apply {
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
