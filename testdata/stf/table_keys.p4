/* Keys are expressions: sums, slices, validity, booleans, enumerations, errors; prefixes beside exact values. */
#include "common/bench.p4"

enum bit<8> Op { One = 1, Two = 2 }

control MyIngress(INGRESS_PARAMS) {
    action set(bit<8> value) { hdr.h.c = value; }
    table t {
        key = {
            hdr.h.a + 1: exact @name("sum");
            hdr.h.x[11:4]: ternary @name("middle");
            hdr.h.isValid(): exact;
            hdr.h.b == 3: exact @name("three");
            (Op) hdr.h.op: exact @name("op");
            std.ingress_port: exact;
        }
        actions = { set; NoAction; }
        default_action = NoAction;
        const entries = {
            (8, 0x23, true, true, Op.One, 0): set(1);
            (8, 0x20 &&& 0xf0, true, true, Op.Two, 0): set(2);
            (8, default, true, false, Op.Two, 5): set(3);
        }
    }
    table p {
        key = {
            hdr.h.a: exact;
            hdr.h.y: lpm;
        }
        actions = { set; NoAction; }
        default_action = NoAction;
    }
    apply {
        std.egress_spec = 1;
        t.apply();
        p.apply();
    }
}

BENCH(MyIngress);
