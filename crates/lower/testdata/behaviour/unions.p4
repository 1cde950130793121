// Header unions: one member is valid at most, whatever makes it so; stacks of unions at run-time indices.
#include <core.p4>
#include <v1model.p4>

// What comes in: four arguments, and four bytes for results.
header h_t {
    bit<8> a; bit<8> b; bit<8> c; bit<8> d;
    bit<8> r; bit<8> s; bit<8> t; bit<8> u;
}
header e_t { bit<8> k; bit<8> v; }
header f_t { bit<8> k; bit<16> w; }
header_union u_t { e_t e; f_t f; }

struct headers { h_t h; u_t u; u_t[2] us; }
struct metadata { bit<8> m; }

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.a) { 1: one; 2: two; default: many; }
    }
    state one { packet.extract(hdr.u.e); transition accept; }
    state two { packet.extract(hdr.u.f); transition accept; }
    state many {
        packet.extract(hdr.us.next.f);
        transition select(hdr.us.last.f.k) { 0: accept; default: many; }
    }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        if (hdr.h.b == 1) { hdr.u.f = { 0xf0, 0xf1f2 }; }
        if (hdr.h.b == 2) { hdr.u.e.setValid(); hdr.u.e.k = 0xe0; hdr.u.e.v = 0xe1; }
        if (hdr.h.b == 3) { hdr.u.f.setInvalid(); }
        if (hdr.h.b == 4) { hdr.us[hdr.h.c].e = { 0x40, 0x41 }; }
        if (hdr.h.b == 5) { hdr.u = hdr.us[hdr.h.c]; }
        hdr.h.r = (hdr.u.isValid() ? 8w1 : 0) | (hdr.u.e.isValid() ? 8w2 : 0) | (hdr.u.f.isValid() ? 8w4 : 0);
        hdr.h.s = hdr.us[hdr.h.c].f.isValid() ? 8w1 : 0;
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
