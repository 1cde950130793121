/* Every hash algorithm; the result is base + hash % max. */
#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<16> a;
    bit<16> b;
    bit<32> crc32;
    bit<16> crc16;
    bit<16> csum16;
    bit<16> xor16;
    bit<32> identity;
    bit<8> limited;
    bit<8> flags;
}
struct headers { h_t h; }
struct metadata { }

#include "common/empty.p4"

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        bit<32> custom32;
        bit<16> custom16;
        tuple<bit<16>, bit<16>> data = { hdr.h.a, hdr.h.b };
        hash(hdr.h.crc32, HashAlgorithm.crc32, 32w0, data, 64w0x1_0000_0000);
        hash(hdr.h.crc16, HashAlgorithm.crc16, 16w0, data, 32w0x1_0000);
        hash(hdr.h.csum16, HashAlgorithm.csum16, 16w0, data, 32w0x1_0000);
        hash(hdr.h.xor16, HashAlgorithm.xor16, 16w0, data, 32w0x1_0000);
        hash(hdr.h.identity, HashAlgorithm.identity, 32w0, data, 64w0x1_0000_0000);
        hash(hdr.h.limited, HashAlgorithm.identity, 8w100, { hdr.h.b }, 16w10);
        hash(custom32, HashAlgorithm.crc32_custom, 32w0, data, 64w0x1_0000_0000);
        hash(custom16, HashAlgorithm.crc16_custom, 16w0, data, 32w0x1_0000);
        // Until someone sets other parameters, the custom ones are the usual ones.
        hdr.h.flags = (custom32 == hdr.h.crc32 ? 8w1 : 0) + (custom16 == hdr.h.crc16 ? 8w2 : 0);
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), MyDeparser()) main;
