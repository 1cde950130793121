/* A table without a key runs its default; the same table applied at several places; defaults with arguments. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    action add(bit<8> value) { hdr.h.a = hdr.h.a + value; }
    action twice(bit<8> value, bit<8> more) { hdr.h.a = hdr.h.a + value * 2 + more; }
    table always {
        actions = { add; twice; }
        default_action = twice(3, 1);
    }
    table none {
        key = { }
        actions = { add; @defaultonly NoAction; }
    }
    apply {
        std.egress_spec = 1;
        always.apply();
        if (hdr.h.op == 1) {
            always.apply();
            hdr.h.b = hdr.h.a;
            always.apply();
        }
        none.apply();
    }
}

BENCH(MyIngress);
