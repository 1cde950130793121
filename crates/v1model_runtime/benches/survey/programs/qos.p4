// The tutorials' exercise on differentiated services: classes of traffic get a DSCP and a queue.
#include "common.p4"
IPV4_HEADERS
IPV4_PARSER
IPV4_REST

control MainIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action drop() { mark_to_drop(standard); }
    action forward(bit<9> port) {
        standard.egress_spec = port;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }
    action class(bit<6> dscp, bit<3> priority) {
        hdr.ipv4.dscp = dscp;
        standard.priority = priority;
    }
    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; drop; }
        default_action = drop();
    }
    table classes {
        key = { hdr.ipv4.protocol: ternary; hdr.udp.dst: range; }
        actions = { class; NoAction; }
        default_action = NoAction();
    }
    apply {
        if (hdr.ipv4.isValid()) {
            classes.apply();
            routes.apply();
        }
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply {} }

IPV4_SWITCH
