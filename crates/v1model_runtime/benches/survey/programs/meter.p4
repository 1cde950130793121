// A policer: packets of a flow above its rate are marked, or dropped if they are far above it.
#include "common.p4"
IPV4_HEADERS
IPV4_PARSER
IPV4_REST

control MainIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    meter(1024, MeterType.packets) rates;
    apply {
        standard.egress_spec = 2;
        bit<2> colour;
        rates.execute_meter((bit<32>) hdr.ipv4.src[9:0], colour);
        if (colour == 1) { hdr.ipv4.dscp = 8; }
        if (colour == 2) { mark_to_drop(standard); }
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply {} }

IPV4_SWITCH
