#include <core.p4>

control C(inout bit<8> x, inout bit<16> y, inout int<4> z) {
    action a(bit<8> v) { x = v; }
    table t {
        key = { x: ternary; y: exact; }
        actions = { a; NoAction; }
        const default_action = NoAction();
        const entries = {
            (0x10 &&& 0xf0, 1): a(1);
            (0x12, 2): a(2);
            (0x12, 1): a(3);
            (_, 2): a(4);
            (0x34, 2): a(5);
        }
    }
    apply {
        t.apply();
        if (x < 0) { x = 1; }
        if (x >= 0) { x = 1; }
        if (x <= 255) { x = 1; }
        if (x < 255) { x = 1; }
        if ((bit<16>) x > 255) { x = 1; }
        if ((y & 0xff) == 0x100) { x = 1; }
        if (z >= -8) { x = 1; }
        if (x == x) { x = 1; }
        if (x + 1 != x) { x = 1; }
    }
}

control Cs(inout bit<8> x, inout bit<16> y, inout int<4> z);
package top(Cs c);
top(C()) main;
