/* Casts: truncation, extension by zeros or by the sign, changes of the sign, booleans. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        hdr.h.x = (bit<16>) (int<16>) (int<8>) hdr.h.a;
        hdr.h.y = (bit<16>) hdr.h.a;
        hdr.h.c = (bit<8>) hdr.h.r;
        bool flag = (bool) hdr.h.b[0:0];
        hdr.h.r = 31w0 ++ (bit<1>) !flag;
        // An integer takes the type of what it meets.
        hdr.h.op = hdr.h.op + 255;
    }
}

BENCH(MyIngress);
