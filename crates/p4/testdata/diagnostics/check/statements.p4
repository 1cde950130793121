#include <core.p4>

bit<8> f(in bool b) { exit; }
bit<8> g(in bool b) { if (b) { return 1; } else { return 2; } }
void h() { return 1; }
bit<8> i() { return; }
control c(inout bit<8> x) {
    apply {
        break;
        for (bit<8> i in 1 .. 4) { continue; }
        for (bit<8> i in { 1, true }) { }
        for (bit<8> i in x) { }
        for (bit<8> i = 0; i + 1; i = i + 1) { }
        const bit<8> k = x;
        x += true;
        x |+|= 4;
        return;
        x = 1;
    }
}
header asked_t { bit<8> a; }
control asks(inout asked_t h) {
    table t { actions = { NoAction; NoAction; } }
    apply { if (t.apply()) { } if (h) { } h.a = h.a[8:7]; h.a[0:1] = 1; }
}
