/* Random numbers lie between their bounds, both included, and are not always the same. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        bit<8> same;
        random(same, hdr.h.a, hdr.h.a);
        hdr.h.b = same;
        bit<16> low = 0xffff;
        bit<16> high = 0;
        bool outside = false;
        for (bit<8> i in 0 .. 99) {
            bit<16> value;
            random(value, 16w10, 16w13);
            outside = outside || value < 10 || value > 13;
            if (value < low) { low = value; }
            if (value > high) { high = value; }
        }
        hdr.h.x = low;
        hdr.h.y = high;
        hdr.h.c = outside ? 8w1 : 0;
        bit<32> one;
        bit<32> two;
        random(one, 32w0, 32w0xffffffff);
        random(two, 32w0, 32w0xffffffff);
        hdr.h.r = one == two ? 32w1 : 0;
    }
}

BENCH(MyIngress);
