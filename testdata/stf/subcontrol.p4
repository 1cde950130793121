/* Controls inside controls: two instances of one, each with its constructor's values and its own state. */
#include "common/bench.p4"

control Scale(inout bit<8> value, out bool large)(bit<8> factor, bit<8> limit) {
    register<bit<8>>(1) calls;
    apply {
        bit<8> count;
        calls.read(count, 0);
        count = count + 1;
        calls.write(0, count);
        value = value * factor + count;
        large = value > limit;
    }
}

control MyIngress(INGRESS_PARAMS) {
    Scale(2, 100) twice;
    Scale(limit = 20, factor = 3) thrice;
    apply {
        std.egress_spec = 1;
        bool large;
        twice.apply(hdr.h.a, large);
        hdr.h.x[15:15] = (bit<1>) large;
        thrice.apply(hdr.h.b, large);
        hdr.h.x[0:0] = (bit<1>) large;
        // The same instance once more, with its parameters named.
        thrice.apply(large = large, value = hdr.h.c);
        hdr.h.y[0:0] = (bit<1>) large;
    }
}

BENCH(MyIngress);
