/* Only the first bytes of a packet leave; a packet that is shorter stays as it is. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        if (hdr.h.op == 1) {
            truncate((bit<32>) hdr.h.a);
        }
        if (hdr.h.op == 2) {
            hdr.h.setInvalid();
            truncate(3);
        }
    }
}

BENCH(MyIngress);
