/* A field whose length the packet says: extract with two arguments, emit, and copies. */
#include <core.p4>
#include <v1model.p4>

header base_t {
    bit<8> length;
    varbit<64> options;
}
header after_t { bit<8> value; }
struct headers {
    base_t base;
    base_t copy;
    after_t after;
}
struct metadata { }

#include "common/empty.p4"

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.base, (bit<32>) packet.lookahead<bit<8>>() << 3);
        packet.extract(hdr.after);
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        if (std.parser_error == error.HeaderTooShort) {
            std.egress_spec = 2;
        } else if (hdr.after.value == 0xcc) {
            hdr.copy = hdr.base;
        }
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), MyDeparser()) main;
