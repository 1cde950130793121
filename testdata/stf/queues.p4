/* Queues of a port by priority: a packet that waits does not hold up those of another queue; full queues drop. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        std.priority = (bit<3>) hdr.h.a;
    }
}

BENCH(MyIngress);
