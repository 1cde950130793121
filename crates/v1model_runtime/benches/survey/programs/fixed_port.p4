// One header, and one port for all frames.
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
    apply { standard.egress_spec = 2; }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply {} }

V1Switch(P(), Nothing(), MainIngress(), MainEgress(), Nothing(), Emit()) main;
