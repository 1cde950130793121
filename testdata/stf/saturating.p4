/* `|+|` and `|-|` stop at the ends of their type, signed and unsigned. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        bit<8> up = hdr.h.a |+| hdr.h.b;
        bit<8> down = hdr.h.a |-| hdr.h.b;
        int<8> a = (int<8>) hdr.h.a;
        int<8> b = (int<8>) hdr.h.b;
        hdr.h.r = up ++ down ++ (bit<8>) (a |+| b) ++ (bit<8>) (a |-| b);
    }
}

BENCH(MyIngress);
