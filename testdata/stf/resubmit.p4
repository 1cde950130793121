/* A packet starts ingress again as it came in; metadata of the field list keeps its value. */
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> value; bit<8> passes; bit<8> type; bit<8> lost; }
struct headers { h_t h; }
struct metadata {
    @field_list(3) bit<8> passes;
    bit<8> lost;
}

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
        hdr.h.lost = meta.lost;
        meta.lost = 0xff;
        // Forgotten where the packet starts again.
        hdr.h.value = hdr.h.value + 1;
        meta.passes = meta.passes + 1;
        if (meta.passes < 3) {
            resubmit_preserving_field_list(3);
        }
        hdr.h.passes = meta.passes;
        hdr.h.type = (bit<8>) std.instance_type;
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), MyDeparser()) main;
