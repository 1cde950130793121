/* The custom CRCs compute what the control plane says, with the whole result or a part of it. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        tuple<bit<16>, bit<16>> data = { hdr.h.x, hdr.h.y };
        hash(hdr.h.r, HashAlgorithm.crc32_custom, 32w0, data, 64w0x1_0000_0000);
        bit<16> custom16;
        hash(custom16, HashAlgorithm.crc16_custom, 16w0, data, 32w0x1_0000);
        hdr.h.a = custom16[15:8];
        hdr.h.b = custom16[7:0];
    }
}

BENCH(MyIngress);
