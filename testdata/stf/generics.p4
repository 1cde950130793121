/* Generic functions, structures with several parameters, types inferred from arguments and from results. */
#include "common/bench.p4"

struct both_t<A, B> {
    A first;
    B second;
}

T keep<T>(in T value) {
    return value;
}

both_t<A, B> pair<A, B>(in A a, in B b) {
    return { a, b };
}

void swap<T>(inout T a, inout T b) {
    T kept = a;
    a = b;
    b = kept;
}

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        swap(hdr.h.a, hdr.h.b);
        swap<bit<16>>(hdr.h.x, hdr.h.y);
        both_t<bit<8>, bit<16>> p = pair(keep(hdr.h.a), hdr.h.x);
        both_t<bit<16>, bit<8>> q = pair<bit<16>, bit<8>>(7, 9);
        hdr.h.c = p.first + q.second;
        hdr.h.r = p.second ++ q.first;
    }
}

BENCH(MyIngress);
