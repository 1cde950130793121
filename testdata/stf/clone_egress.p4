/* Clones of the packet as it left egress, to a multicast group. */
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> value; bit<8> type; bit<8> kept; bit<8> rid; }
const int KEPT = 7;

struct headers { h_t h; }
struct metadata {
    @field_list(KEPT) bit<8> kept;
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
        meta.kept = 0x44;
    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        if (std.instance_type == 2) {
            hdr.h.type = 2;
            hdr.h.kept = meta.kept;
            hdr.h.rid = (bit<8>) std.egress_rid;
        } else {
            hdr.h.value = hdr.h.value + 1;
            clone_preserving_field_list(CloneType.E2E, 9, KEPT);
        }
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), MyEgress(), NoCompute(), MyDeparser()) main;
