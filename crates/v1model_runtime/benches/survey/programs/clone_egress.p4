// Forwards frames and sends a copy of each, as it leaves, to a monitor, marked by its type.
#include "common.p4"
struct headers_t { ethernet_h ethernet; }
control Nothing(inout headers_t hdr, inout metadata_t meta) { apply {} }
EMITS(Emit, headers_t)

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control MainIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 2;
        hdr.ethernet.src = 0x020000000001;
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (standard.instance_type == 2) { hdr.ethernet.type = 0x88b5; } else { clone(CloneType.E2E, 1); }
    }
}

V1Switch(P(), Nothing(), MainIngress(), MainEgress(), Nothing(), Emit()) main;
