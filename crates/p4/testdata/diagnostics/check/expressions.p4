#include <core.p4>

header h_t { bit<8> a; int<8> s; }
struct m_t { bool flag; bit<4> nibble; }
enum E { A, B }

control c(inout h_t h, inout m_t m, in bit<8> ro) {
    h_t[4] stack;
    tuple<bit<8>, bool> t = { 1, true };
    apply {
        h.a = m.nibble;
        h.a = h.a + m.nibble;
        h.a = h.s;
        m.flag = h.a;
        if (h.a) { }
        h.a = ~1;
        h.a = h.a ++ 1;
        h.a = m.flag ? 1 : m.nibble;
        h.a = h.a[8:1];
        h.a = h.a[1:4];
        h.a = stack[4].a;
        h.a = h[1];
        h.a = t[2];
        h.a = 5 >> h.a;
        h.a = h.a << -1;
        h.a = h.a / 0;
        h.a = (bit<8>) m.nibble + 300;
        h.a = E.A;
        m.flag = E.A == 1;
        m.flag = !h.a;
        m = { true };
        m = { flag = true };
        m = { flag = true, nibbel = 1 };
        m = { ..., true };
        h.a = 1 << 100000000;
        ro = 1;
        h.a = stack.last.a;
        stack.push_front(h.a);
        m.setValid();
    }
}
