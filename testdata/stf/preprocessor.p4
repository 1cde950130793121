/* Macros with arguments, conditions, joined tokens, line continuations, included text, and pragmas nobody knows. */
#define WIDTH 16
#define SUM(A, B) ((A) + (B))
#define FIELD(NAME) hdr.h.NAME
#define JOIN(A, B) A ## B
#define TWO_LINES(A) \
    FIELD(A) = SUM(FIELD(A), 1); \
    FIELD(b) = 2

#include "common/bench.p4"

#if WIDTH > 8 && defined(SUM) && !defined(NOTHING)
#define RESULT 0x5555
#elif WIDTH
#error not here
#else
#define RESULT 0
#endif

#undef WIDTH
#ifndef WIDTH
const bit<8> three = 3;
#endif

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.JOIN(egress, _spec) = 1;
        TWO_LINES(a);
        FIELD(c) = three;
        FIELD(x) = RESULT;
        hdr.h.y = __LINE__;
    }
}

#pragma once_upon a (time
BENCH(MyIngress);
