/* Arithmetic without width at compile time, nested slices, `...`, and signed enums. */
#include "common/bench.p4"
const int HUGE = (1 << 200) - 1;
const bit<8> L = (bit<8>) (HUGE >> 195 & 0x1f);
const int M = 7 / 2 + 7 % 4 - 6;
typedef bit<8> T8;
type bit<8> N8;
enum E { X, Y }
enum int<8> S { NEG = -1, POS = 5 }
struct t2 { bit<8> a; tuple<bit<8>, bool> b; }
control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        hdr.h.a = L + (bit<8>) M;
        hdr.h.b[7:4] = hdr.h.op[3:0];
        hdr.h.b[3:0] = 4w3 |+| 4w14;
        N8 n = (N8) hdr.h.op;
        t2 v = { a = (bit<8>) n, ... };
        hdr.h.c = v.a + (v.b[1] ? 8w1 : 8w0);
        S s = S.NEG;
        hdr.h.x = (bit<16>) (int<16>) (int<8>) s;
        int<16> q = -16s3 - 4;
        hdr.h.y = (bit<16>) (q >> 1);
        E e; e = E.Y;
        hdr.h.r = (e == E.Y && {1, 2} == {1, 2}) ? 32w0xf_f : 32s5 == 5 ? 1 : 2;
        hdr.h.r = hdr.h.r | (bit<32>) (8w255 ++ -8s1);
    }
}
BENCH(MyIngress);
