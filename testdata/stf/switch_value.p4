/* switch on values: constants, enum members, fall-through labels, default; and no case at all. */
#include "common/bench.p4"

enum bit<8> Op { Add = 1, Sub = 2 }
enum Colour { Red, Green }

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        switch (hdr.h.op) {
            1: { hdr.h.c = hdr.h.a + hdr.h.b; }
            2:
            3: { hdr.h.c = hdr.h.a - hdr.h.b; }
            4: { }
            default: { hdr.h.c = 0xff; }
        }
        switch ((Op) hdr.h.op) {
            Op.Add: { hdr.h.x = 1; }
            Op.Sub: { hdr.h.x = 2; }
        }
        Colour colour = Colour.Red;
        if (hdr.h.op == 4) {
            colour = Colour.Green;
        }
        switch (colour) {
            Colour.Green: { hdr.h.y = 9; }
            default: { hdr.h.y = 8; }
        }
    }
}

BENCH(MyIngress);
