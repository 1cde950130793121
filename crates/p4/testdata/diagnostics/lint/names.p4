#include <core.p4>

extern counter { counter(bit<32> size); void count(in bit<32> index); }

@deprecated("Use something else.")
extern void old(in bit<8> x);

const bit<8> LIMIT = 3;
bit<8> twice(in bit<8> x, in bit<8> ignored) { return x + x; }
bit<8> thrice(in bit<8> x) { return 3 * x; }
action nothing() { }

control Unused(inout bit<8> x) { apply { x = 0; } }

control C(inout bit<8> x) {
    counter(16) hits;
    counter(16) misses;
    bit<8> LIMIT = 4;
    bit<8> _quiet = 5;
    action set(bit<8> value, bit<8> other) { x = value; }
    action unset() { x = 0; }
    @noWarn("unused") action kept() { }
    table t {
        key = { x: exact; }
        actions = { set; NoAction; }
        const default_action = NoAction();
    }
    table alone { actions = { NoAction; } const default_action = NoAction(); }
    apply {
        bit<8> y = twice(x, 1);
        { bit<8> y = 3; x = y; }
        hits.count((bit<32>) y);
        old(y);
        t.apply();
        return;
        x = 1;
    }
}

control Cs(inout bit<8> x);
package top(Cs c);
top(C()) main;
