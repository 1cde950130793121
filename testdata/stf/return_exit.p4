/* return leaves an action, a function or a control; exit leaves the whole block, from however deep. */
#include "common/bench.p4"

control Inner(inout headers hdr) {
    action leave() { exit; }
    table t {
        key = { hdr.h.op: exact; }
        actions = { leave; NoAction; }
        const entries = { 3: leave(); }
    }
    apply {
        hdr.h.b = 1;
        if (hdr.h.op == 2) {
            return;
        }
        t.apply();
        hdr.h.b = 2;
    }
}

control MyIngress(INGRESS_PARAMS) {
    Inner() inner;
    action change(inout bit<8> value) {
        value = 0x10;
        if (hdr.h.op == 1) {
            return;
        }
        value = 0x20;
    }
    apply {
        std.egress_spec = 1;
        change(hdr.h.a);
        inner.apply(hdr);
        hdr.h.c = 0x77;
        if (hdr.h.op == 4) {
            return;
        }
        hdr.h.x = 0x7777;
    }
}

BENCH(MyIngress);
