/* Controls applied by their types: each place is an instance of its own. */
#include "common/bench.p4"

control Count(inout bit<8> value) {
    register<bit<8>>(1) calls;
    apply {
        bit<8> count;
        calls.read(count, 0);
        calls.write(0, count + 1);
        value = count;
    }
}

control Double(inout bit<8> value) {
    apply {
        value = value + value;
    }
}

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        Count.apply(hdr.h.a);
        Double.apply(hdr.h.b);
        if (hdr.h.op == 1) {
            Double.apply(hdr.h.c);
        }
    }
}

BENCH(MyIngress);
