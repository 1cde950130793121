/* Functions: results, out and inout parameters, early returns, calls in calls, and generic ones. */
#include "common/bench.p4"

bit<8> larger(in bit<8> a, in bit<8> b) {
    if (a > b) {
        return a;
    }
    return b;
}

void split(in bit<16> whole, out bit<8> high, out bit<8> low) {
    high = whole[15:8];
    low = whole[7:0];
}

bool take(inout bit<8> stock, in bit<8> wanted) {
    if (stock < wanted) {
        return false;
    }
    stock = stock - wanted;
    return true;
}

T second<T>(in T first, in T other) {
    return other;
}

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        hdr.h.op = larger(larger(hdr.h.a, hdr.h.b), hdr.h.c);
        split(low = hdr.h.a, whole = hdr.h.x, high = hdr.h.b);
        if (take(hdr.h.c, 5) && take(hdr.h.c, 5)) {
            hdr.h.y = second(hdr.h.x, hdr.h.y + 1);
        } else {
            hdr.h.y = second<bit<16>>(1, 2);
        }
    }
}

BENCH(MyIngress);
