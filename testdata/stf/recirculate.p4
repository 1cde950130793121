/* A packet starts again as it would have left; metadata of the field list keeps its value. */
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> value; bit<8> type; }
struct headers { h_t[5] h; }
struct metadata {
    @field_list(1) bit<8> passes;
    bit<8> type;
}

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.h.next);
        transition accept;
    }
}

control NoVerify(inout headers hdr, inout metadata meta) { apply { } }
control NoCompute(inout headers hdr, inout metadata meta) { apply { } }

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        meta.type = (bit<8>) std.instance_type;
    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        if (meta.passes < 3) {
            // Each time round another header is put in front.
            hdr.h.push_front(1);
            hdr.h[0] = { hdr.h[1].value + 1, meta.type };
            meta.passes = meta.passes + 1;
            recirculate_preserving_field_list(1);
        }
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr.h); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), MyEgress(), NoCompute(), MyDeparser()) main;
