/* Returns in a switch, several loop variables, continue with the step still taken, lists to walk over. */
#include "common/bench.p4"
enum bit<8> K { A = 1, B = 2, C = 250 }
bit<8> sw(in bit<8> k) {
    switch (k) { 1: 2: { return 10; } 3: { return 20; } default: { return 30; } }
}
bit<8> first(in bit<16> x) {
    bit<16> v = x; bit<8> n = 0;
    for (bit<8> i = 0, bit<8> j = 3; i < 16; i = i + 1, j = j + 2) {
        if (v[0:0] == 1) { n = j; break; }
        v = v >> 1;
        if (i == 4) continue;
        n = n + 1;
    }
    return n;
}
control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        hdr.h.a = sw(hdr.h.op);
        hdr.h.b = first(hdr.h.x);
        bit<8> t = 0;
        for (bit<8> e in (list<bit<8>>){ 1, 3, 5 }) { t = t + e; if (e == 3) { continue; } t = t + 1; }
        hdr.h.c = t;
        int<8> s = (int<8>) hdr.h.op;
        hdr.h.r = (bit<32>)(int<32>) (s >> 1);
    }
}
BENCH(MyIngress);
