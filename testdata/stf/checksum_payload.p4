/* Checksums that cover what the parser left of the packet, of even and odd length. */
#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<16> a;
    bit<16> sum;
    bit<8> bad;
    bit<8> rest;
}
struct headers { h_t h; }
struct metadata { }

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control MyVerify(inout headers hdr, inout metadata meta) {
    apply {
        verify_checksum_with_payload(true, { hdr.h.a }, hdr.h.sum, HashAlgorithm.csum16);
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        hdr.h.bad = (bit<8>) std.checksum_error;
        hdr.h.a = hdr.h.a + 1;
    }
}

control NoEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply { } }

control MyCompute(inout headers hdr, inout metadata meta) {
    apply {
        update_checksum_with_payload(true, { hdr.h.a }, hdr.h.sum, HashAlgorithm.csum16);
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), MyVerify(), MyIngress(), NoEgress(), MyCompute(), MyDeparser()) main;
