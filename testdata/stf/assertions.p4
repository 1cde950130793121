/* assert and assume drop a packet for which they do not hold; log_msg changes nothing. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        log_msg("seen");
        log_msg("a is {}, x is {}", { hdr.h.a, hdr.h.x });
        assert(hdr.h.a != 1);
        assume(hdr.h.b != 1);
        hdr.h.c = 0x77;
    }
}

BENCH(MyIngress);
