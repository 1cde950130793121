/* advance skips bits that nobody takes; they are gone. extract(_) does the same by the length of a header. */
#include <core.p4>
#include <v1model.p4>

header one_t { bit<8> a; }
header two_t { bit<16> a; }
struct headers { one_t one; one_t last; }
struct metadata { }

#include "common/empty.p4"

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.one);
        packet.advance((bit<32>) hdr.one.a * 8);
        packet.extract<two_t>(_);
        packet.extract(hdr.last);
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        if (std.parser_error != error.NoError) {
            std.egress_spec = 2;
        }
        hdr.one.a = (bit<8>) std.packet_length;
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), MyDeparser()) main;
