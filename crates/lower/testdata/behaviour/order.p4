// Side effects from left to right, and only those that are due.
#include <core.p4>
#include <v1model.p4>

// What comes in: four arguments, and four bytes for results.
header h_t {
    bit<8> a; bit<8> b; bit<8> c; bit<8> d;
    bit<8> r; bit<8> s; bit<8> t; bit<8> u;
}

bit<8> bump(inout bit<8> x) { x = x + 1; return x; }
bool odd(inout bit<8> x) { x = x + 1; return x[0:0] == 1; }

struct headers { h_t h; h_t[4] s; }
struct metadata { bit<8> m; }

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        bit<8> i = hdr.h.a;
        // Only the first is due if it is false; both if it is true.
        hdr.h.r = (odd(hdr.h.b) && odd(hdr.h.c)) ? 8w1 : 2;
        hdr.h.s = (hdr.h.d == 0 || odd(hdr.h.d)) ? bump(hdr.h.d) : 0x55;
        // The index is evaluated before the right side changes it.
        hdr.s[0].a = 0x50;
        hdr.s[1].a = 0x51;
        hdr.s[i].a = bump(i) + 0x60;
        hdr.h.t = hdr.s[0].a;
        tuple<bit<8>, bit<8>, bit<8>> parts = { i, bump(i), i };
        hdr.h.u = parts[0] ++ parts[2] == 0x0102 ? parts[1] : 0xff;
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
