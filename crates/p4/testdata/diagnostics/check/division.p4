#include <core.p4>

header h_t {
    bit<8> a;
    bit<8> b;
    bit<8> c;
    bit<8> d;
}

struct headers {
    h_t h;
}

parser P(packet_in p, out headers hdr);
control C(inout headers hdr, inout bit<8> given);
package S(P p, C c);

bit<8> half(in bit<8> whole, in bit<8> parts) {
    return whole / parts;
}

const bool DEBUG = false;

parser Parse(packet_in p, out headers hdr) {
    state start {
        p.extract(hdr.h);
        transition select(hdr.h.a % 3) {
            0: accept;
            default: reject;
        }
    }
}

control Ingress(inout headers hdr, inout bit<8> given) {
    bit<8> fixed = 60;
    bit<8> scaled = given;

    action by_table(bit<8> count) {
        fixed = 60 / count;
    }
    action never_used() {
        hdr.h.b = hdr.h.a / 5;
    }
    table t {
        key = { hdr.h.a / 10 : exact @name("tenth"); }
        actions = { by_table; }
        const default_action = by_table(1);
    }
    apply {
        t.apply();
        given = given / 3;
        scaled = (bit<8>) hdr.h.a[7:4] % hdr.h.b;
        // These are accepted.
        scaled /= 7;
        bit<8> known = 12;
        known = known / 5;
        hdr.h.c = hdr.h.a / 8;
        hdr.h.c = hdr.h.a % 16;
        hdr.h.c = 0 / hdr.h.a;
        hdr.h.d = 9;
        hdr.h.d = hdr.h.d / 3;
        hdr.h.d = half(9, 3);
        if (DEBUG) {
            hdr.h.d = hdr.h.a / 3;
        }
    }
}

S(Parse(), Ingress()) main;
