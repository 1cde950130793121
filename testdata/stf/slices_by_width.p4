/* Slices by low end and width, whose low end may be known at run time only. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        hdr.h.a = hdr.h.x[4 +: 8];
        hdr.h.b = hdr.h.x[hdr.h.op +: 8];
        hdr.h.y[hdr.h.op +: 4] = 0xa;
        hdr.h.r[hdr.h.op +: 4] += 1;
    }
}

BENCH(MyIngress);
