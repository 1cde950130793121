/* Structures and headers from lists, by name, and with what is left over at its default; invalid headers. */
#include "common/bench.p4"

struct point_t {
    bit<8> x;
    bit<8> y;
}
struct box_t {
    point_t low;
    point_t high;
    bool filled;
}

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        point_t p = { hdr.h.a, hdr.h.b };
        box_t box = { high = { y = 3, x = 4 }, low = p, filled = hdr.h.c == 1 };
        box_t half = { low = { x = 7, ... }, ... };
        box_t none = ...;
        data_t made = { op = 0x99, a = box.low.y, b = box.high.x, c = half.low.x + half.low.y + half.high.x, ... };
        if (box.filled && !half.filled && !none.filled) {
            hdr.h = made;
        } else if (hdr.h.c == 2) {
            hdr.h = {#};
        } else {
            hdr.h = { 1, 2, 3, 4, 5, 6, 7 };
        }
    }
}

BENCH(MyIngress);
