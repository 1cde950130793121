/* Parameters are copied in from left to right, and out from left to right when the call returns: what is written to
 * one is not seen through another, and the last copy out stays. */
#include "common/bench.p4"

bit<8> next(inout bit<8> counter) {
    counter = counter + 1;
    return counter;
}

control MyIngress(INGRESS_PARAMS) {
    action both(inout bit<8> first, inout bit<8> second) {
        first = first + 1;
        // Another storage than `first`, though the argument is the same.
        second = second + 0x10;
        // And another one than the argument.
        hdr.h.b = hdr.h.a;
    }
    action three(in bit<8> one, in bit<8> two, out bit<8> result) {
        result = one - two;
    }
    apply {
        std.egress_spec = 1;
        both(hdr.h.a, hdr.h.a);
        // Arguments are evaluated in order: 1 more, then 2 more.
        bit<8> counter = hdr.h.c;
        three(next(counter), next(counter), hdr.h.c);
        // An index is evaluated before the call, once.
        three(hdr.h.x[15:8], hdr.h.x[7:0], hdr.h.x[7:0]);
    }
}

BENCH(MyIngress);
