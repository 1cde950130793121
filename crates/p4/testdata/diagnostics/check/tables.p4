#include <core.p4>

header h_t { bit<8> a; bit<16> b; bit<8> c; }
control c(inout h_t h) {
    action bound(inout bit<8> x, bit<8> data) { x = data; }
    action plain(bit<8> data) { h.a = data; }
    action mixed(bit<8> data, in bit<8> late) { }
    action direct() { t1.apply(); }
    table t1 {
        key = { h.a : exactly; h.b : exact; h.a + h.c : exact; h : exact; }
        actions = { bound; bound(h.a, 1); plain(1); missing; NoAction; NoAction; }
        default_action = other(1);
    }
    table t2 {
        key = { h.a : exact; h.b : lpm; h.c : ternary; }
        actions = { bound(h.a); plain; @tableonly NoAction; }
        default_action = bound(h.c, 1);
        const entries = {
            (1, 2 &&& 0xff00, 3) : plain(1);
            (1 &&& 2, 2 &&& 0x00ff, 1 .. 2) : plain();
            (1, 2) : plain(1);
            (1, true, _) : direct();
        }
        size = h.a;
    }
    table t3 { key = { h.a : exact; } default_action = NoAction; }
    table t4 { actions = { plain; } default_action = plain(h.a); entries = { 1 : plain(1); } }
    apply {
        t1.apply(1);
        if (t2.apply()) { }
        if (t2.apply().hit) { }
        switch (t2.apply().action_run) { bound: { } plane: { } bound: { } }
        t2.aply();
        t1.hit();
        switch (h.a) { 1: { } default: { } 2: { } }
        switch (h.b) { 1: { } 1: { } true: { } }
    }
}
