/* Slices read and written, of variables, of slices, and with an offset known at run time. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        hdr.h.r[15:8] = hdr.h.a;
        hdr.h.r[3:0] = hdr.h.x[11:8];
        hdr.h.r[7:4] = hdr.h.x[11:4][3:0];
        hdr.h.r[31:31] = 1;
        // A slice is a value of its own width: 8 bits wrap.
        hdr.h.y[15:8] = hdr.h.y[15:8] + 1;
    }
}

BENCH(MyIngress);
