// The tutorials' multicast exercise: unknown stations are flooded; each copy has its port's address as source.
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
    action flood() { standard.mcast_grp = 1; }
    action forward(bit<9> port) { standard.egress_spec = port; }
    table stations {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; flood; }
        default_action = flood();
    }
    apply { stations.apply(); }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (standard.egress_port == standard.ingress_port) {
            mark_to_drop(standard);
        } else {
            hdr.ethernet.src = 40w0x02aabbccdd ++ (bit<8>) standard.egress_port;
        }
    }
}

V1Switch(P(), Nothing(), MainIngress(), MainEgress(), Nothing(), Emit()) main;
