/* An architecture of one's own, with packages inside a package: everything is seen once. */

#include <core.p4>

control Stage<M>(inout M meta);
package Pipe<M>(Stage<M> first, @optional Stage<M> second);
package Device<M>(Pipe<M> one, Pipe<M> two);

match_kind {
    closest
}

struct meta_t {
    bit<8> a;
}

control A(inout meta_t meta) {
    table t {
        key = { meta.a: closest; }
        actions = { NoAction; }
    }
    apply {
        t.apply();
    }
}

control B(inout meta_t meta) {
    table t {
        actions = { NoAction; }
    }
    apply {
        t.apply();
    }
}

control C(inout meta_t meta) {
    table t {
        actions = { NoAction; }
    }
    apply {
        t.apply();
    }
}

Pipe(A(), B()) pipe;
Device(pipe, Pipe(C())) main;
