/* Headers are equal if both are invalid, or both are valid with the same fields; structures field by field. */
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> value; }
struct pair_t { bit<8> a; bit<8> b; }
struct headers { h_t first; h_t second; h_t third; }
struct metadata { }

#include "common/empty.p4"

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.first);
        packet.extract(hdr.second);
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        bit<8> result = 0;
        if (hdr.first == hdr.second) { result[0:0] = 1; }
        hdr.third.value = hdr.first.value;
        if (hdr.first == hdr.third) { result[1:1] = 1; }
        h_t other;
        other.setInvalid();
        if (hdr.third == other) { result[2:2] = 1; }
        pair_t p = { hdr.first.value, hdr.second.value };
        pair_t q = { hdr.second.value, hdr.first.value };
        if (p == q) { result[3:3] = 1; }
        if (hdr.first != { 5 }) { result[4:4] = 1; }
        hdr.third = { result };
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), MyDeparser()) main;
