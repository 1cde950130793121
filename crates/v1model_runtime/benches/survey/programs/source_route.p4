// The tutorials' source routing: each switch removes the first port of the list that the sender wrote.
#include "common.p4"
#define MOST_HOPS 9

header route_h { bit<1> is_last; bit<15> port; }
struct headers_t { ethernet_h ethernet; route_h[MOST_HOPS] routes; ipv4_h ipv4; }
VERIFIES(Verify, headers_t)
UPDATES(Update, headers_t)
EMITS(Emit, headers_t)

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x1234: route;
            default: accept;
        }
    }
    state route {
        packet.extract(hdr.routes.next);
        transition select(hdr.routes.last.is_last) {
            1: ipv4;
            default: route;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control MainIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (hdr.routes[0].isValid()) {
            if (hdr.routes[0].is_last == 1) { hdr.ethernet.type = 0x800; }
            standard.egress_spec = (bit<9>) hdr.routes[0].port;
            hdr.routes.pop_front(1);
            if (hdr.ipv4.isValid()) { hdr.ipv4.ttl = hdr.ipv4.ttl - 1; }
        } else {
            mark_to_drop(standard);
        }
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply {} }

IPV4_SWITCH
