/* Compile-time integers have no width; constants fold however large they get on the way. */
#include "common/bench.p4"

const int huge = 0xffff_ffff_ffff_ffff_ffff * 2;
const bit<16> folded = (bit<16>) (huge >> 72);
const int<8> negative = -1;
const bool checked = static_assert(huge / 2 == 0xffff_ffff_ffff_ffff_ffff, "no bit is lost");
const bool checked_too = static_assert(folded == 0x1ff);

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        hdr.h.x = folded;
        hdr.h.a = (bit<8>) negative;
        hdr.h.y = 0b1010_1010 + 0o17 + 10;
        hdr.h.r = -8s2 < 0 ? 32w0xdead_beef : 0;
    }
}

BENCH(MyIngress);
