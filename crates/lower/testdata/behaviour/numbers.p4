// Arithmetic of either sign, at the edges.
#include <core.p4>
#include <v1model.p4>

// What comes in: four arguments, and four bytes for results.
header h_t {
    bit<8> a; bit<8> b; bit<8> c; bit<8> d;
    bit<8> r; bit<8> s; bit<8> t; bit<8> u;
}

struct headers { h_t h; }
struct metadata { bit<8> m; }

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        int<8> a = (int<8>) hdr.h.a;
        int<8> b = (int<8>) hdr.h.b;
        hdr.h.r = (bit<8>) (a |+| b);
        hdr.h.s = (bit<8>) (a >> 1);
        hdr.h.t = (a < b ? 8w1 : 0) | (hdr.h.a < hdr.h.b ? 8w2 : 0) | (a <= -1 ? 8w4 : 0) | (b >= 0 ? 8w8 : 0);
        int<16> wide = (int<16>) a;
        hdr.h.u = ((bit<16>) wide)[15:8];
        hdr.h.c = hdr.h.c |-| hdr.h.d;
        hdr.h.d[7:4] = hdr.h.d[3:0];
        hdr.h.d = -hdr.h.d;
        hdr.h.a = hdr.h.a << hdr.h.b;
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
