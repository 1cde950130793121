/* Loops with a header and over ranges and stacks, with break and continue, one inside another. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        // 0 + 1 + ... + (a - 1)
        bit<16> sum = 0;
        for (bit<8> i = 0, bit<8> step = 1; i < hdr.h.a; i = i + step) {
            sum = sum + (bit<16>) i;
        }
        hdr.h.x = sum;
        // The odd numbers of 1 .. b, to 9 at the most.
        bit<16> odd = 0;
        for (bit<8> i in 1 .. 100) {
            if (i > hdr.h.b || i > 9) {
                break;
            }
            if (i[0:0] == 0) {
                continue;
            }
            odd = odd + (bit<16>) i;
        }
        hdr.h.y = odd;
        // A break ends the inner loop only.
        for (bit<32> i in 1 .. 3) {
            for (bit<32> j = 0; j < 10; j = j + 1) {
                if (j == i) {
                    break;
                }
                hdr.h.r = hdr.h.r + 1;
            }
            hdr.h.r = hdr.h.r + 0x100;
        }
    }
}

BENCH(MyIngress);
