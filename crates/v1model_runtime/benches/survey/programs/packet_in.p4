// Sends frames of unknown stations to the controller, with a header that names the port.
#include "common.p4"

@controller_header("packet_in")
header port_h { bit<9> port; bit<7> unused; }
struct headers_t { port_h told; ethernet_h ethernet; }
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
        standard.egress_spec = 510;
        hdr.told.setValid();
        hdr.told.port = standard.ingress_port;
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply {} }

V1Switch(P(), Nothing(), MainIngress(), MainEgress(), Nothing(), Emit()) main;
