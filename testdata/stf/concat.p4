/* `++` joins bits, the left operand on top; signed and unsigned may meet. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        int<8> signed = (int<8>) hdr.h.b;
        hdr.h.r = hdr.h.a ++ (bit<8>) signed ++ hdr.h.x;
        hdr.h.y = 4w0xf ++ hdr.h.c ++ 0w0 ++ 4w1;
    }
}

BENCH(MyIngress);
