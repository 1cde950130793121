/* Entries that no packet hits for as long as their timeout says are told to the control plane, which may let them be. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    action set(bit<8> value) { hdr.h.c = value; }
    table t {
        key = { hdr.h.a: exact; }
        actions = { set; NoAction; }
        default_action = NoAction;
        support_timeout = true;
    }
    apply {
        std.egress_spec = 1;
        t.apply();
    }
}

BENCH(MyIngress);
