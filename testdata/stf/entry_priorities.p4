/* Priorities of the program's own entries: given, counted on by priority_delta, smallest first; one table applied in two places. */
#include "common/bench.p4"
control MyIngress(INGRESS_PARAMS) {
    direct_counter(CounterType.packets) dc;
    action add(bit<8> n) { hdr.h.b = hdr.h.b + n; dc.count(); }
    action nop() {}
    table t { key = { hdr.h.a : ternary @name("k"); } actions = { add; nop; @defaultonly NoAction; } size = 3; counters = dc;
      largest_priority_wins = false; priority_delta = 10;
      entries = { const priority = 10 : 1 &&& 1 : add(1); priority = 5: 3 &&& 3 : add(2); _ : add(7); }
      const default_action = NoAction(); }
    apply {
        std.egress_spec = 1;
        if (hdr.h.op == 0) { t.apply(); }
        else { switch (t.apply().action_run) { add: { hdr.h.c = 1; } nop: {hdr.h.c = 2;} default: { hdr.h.c = 3; } } }
        hdr.h.a = hdr.h.a >> 1;
        if (!t.apply().hit) hdr.h.c = 9;
    }
}
BENCH(MyIngress);
