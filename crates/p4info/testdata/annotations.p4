/* Annotations: kept as they are written, unless P4Info tells them elsewhere. */

#include <core.p4>
#include <v1model.p4>

#define LIMIT 0x10

struct headers_t {}
struct meta_t {
    bit<32> a;
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
    @brief("one line") @description("two \
lines")
    @plain @text(a + b, "quoted \"text\"", 0x0F, LIMIT) @empty()
    @list[1, "two", 1 == 1, 2 + 3] @pairs[number = 7, text = "x", truth = false] @nothing[]
    table t {
        key = {
            meta.a: exact @format(ipv4) @name("first") @list[4];
        }
        actions = { @why("because") NoAction; }
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
