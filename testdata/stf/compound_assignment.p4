/* `+=` and its kin read and write the left side once. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        hdr.h.a += 1;
        hdr.h.b -= hdr.h.c;
        hdr.h.c |+|= 0xf0;
        hdr.h.x <<= 4;
        hdr.h.y >>= 4;
        hdr.h.r[15:0] |= 0x00ff;
        hdr.h.r[31:16] ^= 0xffff;
        hdr.h.op &= 0x0f;
    }
}

BENCH(MyIngress);
