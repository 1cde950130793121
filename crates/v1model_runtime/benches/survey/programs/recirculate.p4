// Sends each frame through the pipeline twice. Each pass writes to the header.
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
        hdr.ethernet.src = hdr.ethernet.src + 1;
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (meta.turns == 0) {
            meta.turns = 1;
            recirculate_preserving_field_list(1);
        }
    }
}

V1Switch(P(), Nothing(), MainIngress(), MainEgress(), Nothing(), Emit()) main;
