/* Shifts right keep the sign of signed numbers; shifting by the width or more leaves zeros, or the sign. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        int<8> a = (int<8>) hdr.h.a;
        hdr.h.r = (hdr.h.a >> hdr.h.b) ++ (hdr.h.a << hdr.h.b) ++ (bit<8>) (a >> hdr.h.b) ++ (bit<8>) (a << hdr.h.b);
        // The width of the left operand is that of the result.
        hdr.h.x = hdr.h.x << 4;
        hdr.h.y = (bit<16>) ((int<16>) hdr.h.y >> 15);
    }
}

BENCH(MyIngress);
