/* Unsigned and signed arithmetic wraps; signed comparisons know the sign; division and remainder by constants. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        bit<8> product = hdr.h.a * hdr.h.b;
        bit<8> difference = hdr.h.a - hdr.h.b;
        bit<8> negated = -hdr.h.a;
        int<8> a = (int<8>) hdr.h.a;
        int<8> b = (int<8>) hdr.h.b;
        bit<8> flags = 4w0
            ++ (hdr.h.a < hdr.h.b ? 1w1 : 0)
            ++ (a < b ? 1w1 : 0)
            ++ (hdr.h.a >= hdr.h.b ? 1w1 : 0)
            ++ (a != b ? 1w1 : 0);
        hdr.h.r = product ++ difference ++ negated ++ flags;
        hdr.h.x = (hdr.h.x & 0x0ff0) | (hdr.h.x ^ 0xffff) & 0x000f;
        hdr.h.y = ~hdr.h.y;
        const int big = 1 << 100;
        hdr.h.op = (bit<8>) ((big / 3) % 241);
    }
}

BENCH(MyIngress);
