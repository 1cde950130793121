/* Arithmetic on values wider than any machine's words. */
#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<200> a;
    bit<200> b;
    bit<8> flags;
}
struct headers { h_t h; }
struct metadata { }

#include "common/empty.p4"

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        bit<200> sum = hdr.h.a + hdr.h.b;
        hdr.h.flags = (sum < hdr.h.a ? 8w1 : 0) | (hdr.h.a > hdr.h.b ? 8w2 : 0);
        hdr.h.b = (hdr.h.a << 100) | (hdr.h.b >> 192);
        hdr.h.a = sum;
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), MyDeparser()) main;
