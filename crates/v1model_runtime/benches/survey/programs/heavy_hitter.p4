// Counts the packets of each flow in two rows of a count-min sketch, and marks those of large flows.
#include "common.p4"
IPV4_HEADERS
IPV4_PARSER
IPV4_REST

control MainIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<32>>(4096) first;
    register<bit<32>>(4096) second;
    apply {
        standard.egress_spec = 2;
        if (hdr.udp.isValid()) {
            bit<32> a;
            bit<32> b;
            hash(a, HashAlgorithm.crc32, 32w0, { hdr.ipv4.src, hdr.ipv4.dst, hdr.udp.src, hdr.udp.dst }, 32w4096);
            hash(b, HashAlgorithm.crc16, 32w0, { hdr.ipv4.src, hdr.ipv4.dst, hdr.udp.src, hdr.udp.dst }, 32w4096);
            bit<32> one;
            bit<32> two;
            first.read(one, a);
            second.read(two, b);
            first.write(a, one + 1);
            second.write(b, two + 1);
            if (one > 100000 && two > 100000) { hdr.ipv4.dscp = 46; }
        }
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply {} }

IPV4_SWITCH
