/* switch on the action that a table ran, entries and default alike, with fall-through labels. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    action one(bit<8> value) { hdr.h.b = value; }
    action two() { }
    action three() { }
    table t {
        key = { hdr.h.a: exact; }
        actions = { one; two; three; }
        default_action = three;
        const entries = {
            1: one(0x11);
            2: two();
        }
    }
    apply {
        std.egress_spec = 1;
        switch (t.apply().action_run) {
            one: { hdr.h.c = 1; }
            two:
            three: { hdr.h.c = 2; }
        }
        switch (t.apply().action_run) {
            two: { hdr.h.x = 2; }
            default: { hdr.h.x = 3; }
        }
    }
}

BENCH(MyIngress);
