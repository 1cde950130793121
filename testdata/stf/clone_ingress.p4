/* Clones of the packet as it came in: egress sees which they are, and the metadata that the field list keeps. */
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> value; bit<8> type; bit<8> kept; bit<8> lost; }
struct headers { h_t h; }
struct metadata {
    @field_list(1, 2) bit<8> kept;
    bit<8> lost;
}

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control NoVerify(inout headers hdr, inout metadata meta) { apply { } }
control NoCompute(inout headers hdr, inout metadata meta) { apply { } }

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        meta.kept = 0x11;
        meta.lost = 0x22;
        if (hdr.h.value == 1) {
            clone_preserving_field_list(CloneType.I2E, 5, 1);
        } else if (hdr.h.value == 2) {
            clone(CloneType.I2E, 6);
        }
        // The clone does not see this: it is the packet as it came in.
        hdr.h.value = 0x99;
        // But metadata has the value it has at the end of ingress.
        meta.kept = 0x33;
    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        hdr.h.type = (bit<8>) std.instance_type;
        hdr.h.kept = meta.kept;
        hdr.h.lost = meta.lost;
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), MyEgress(), NoCompute(), MyDeparser()) main;
