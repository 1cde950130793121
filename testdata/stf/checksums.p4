/* Checksums over fields, verified on the way in and written on the way out, under conditions. */
#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> kind;
    bit<8> hops;
    bit<16> a;
    bit<16> b;
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
        verify_checksum(hdr.h.kind != 0xff, { hdr.h.kind, hdr.h.hops, hdr.h.a, hdr.h.b }, hdr.h.sum,
                        HashAlgorithm.csum16);
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        hdr.h.bad = (bit<8>) std.checksum_error;
        hdr.h.hops = hdr.h.hops - 1;
    }
}

control NoEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply { } }

control MyCompute(inout headers hdr, inout metadata meta) {
    apply {
        update_checksum(hdr.h.isValid() && hdr.h.kind != 0xfe, { hdr.h.kind, hdr.h.hops, hdr.h.a, hdr.h.b },
                        hdr.h.sum, HashAlgorithm.csum16);
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), MyVerify(), MyIngress(), NoEgress(), MyCompute(), MyDeparser()) main;
