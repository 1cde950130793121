/* Ids that do not fit. */

#include <core.p4>
#include <v1model.p4>


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
    @id(0x02000001) action wrong_kind() {}
    @id(7) action seven() {}
    @id(7) action seven_again() {}
    @id("text") action text() {}
    action data(@id(0) bit<1> zero, @id(2) bit<1> a, @id(2) bit<1> b) {}
    table t {
        actions = { wrong_kind; seven; seven_again; text; data; }
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
