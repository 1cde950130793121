/* A program's entries: in order where nothing is said, by priority where it is, small or large first. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    action set(inout bit<8> where, bit<8> value) { where = value; }
    table first {
        key = { hdr.h.x: ternary; }
        actions = { set(hdr.h.a); }
        const entries = {
            0x1200 &&& 0xff00: set(hdr.h.a, 1);
            0x1234: set(hdr.h.a, 2);
            _: set(hdr.h.a, 3);
        }
        const default_action = set(hdr.h.a, 9);
    }
    table large {
        key = { hdr.h.x: ternary; }
        actions = { set(hdr.h.b); NoAction; }
        entries = {
            priority = 10: 0x1200 &&& 0xff00: set(hdr.h.b, 1);
            priority = 20: 0x1234: set(hdr.h.b, 2);
            const priority = 5: _: set(hdr.h.b, 3);
        }
        largest_priority_wins = true;
    }
    table small {
        key = { hdr.h.x: ternary; }
        actions = { set(hdr.h.c); NoAction; }
        largest_priority_wins = false;
        priority_delta = 10;
        entries = {
            priority = 10: 0x1200 &&& 0xff00: set(hdr.h.c, 1);
            0x1234: set(hdr.h.c, 2);
            priority = 5: 0x12ff: set(hdr.h.c, 3);
        }
    }
    apply {
        std.egress_spec = 1;
        first.apply();
        large.apply();
        small.apply();
    }
}

BENCH(MyIngress);
