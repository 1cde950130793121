// Sends the first 48 bytes of each frame to a collector.
#include "common.p4"
IPV4_HEADERS
IPV4_PARSER
IPV4_REST

control MainIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 2;
        truncate(48);
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply {} }

IPV4_SWITCH
