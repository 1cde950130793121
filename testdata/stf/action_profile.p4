/* Tables that take their actions from a profile, whose members several entries share. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    action_profile(8) profile;
    action set(bit<8> value) { hdr.h.c = value; }
    action clear() { hdr.h.x = 0; }
    table t {
        key = { hdr.h.a: exact; }
        actions = { set; clear; NoAction; }
        implementation = profile;
        default_action = NoAction;
    }
    apply {
        std.egress_spec = 1;
        t.apply();
    }
}

BENCH(MyIngress);
