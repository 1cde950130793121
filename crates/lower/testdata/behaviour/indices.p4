// L-values with computed indices: evaluated once, before the assignment or call (sections 6.8 and 12.1).
#include <core.p4>
#include <v1model.p4>

// What comes in: two arguments, and four bytes for results.
header h_t { bit<8> i; bit<8> j; bit<8> r; bit<8> s; bit<8> t; bit<8> u; }
header e_t { bit<8> k; bit<8> v; }
header_union u_t { e_t e; h_t h; }

struct headers { h_t h; e_t[2] s; u_t[2] us; }
struct metadata { }

bit<8> poke(inout bit<8> x) { x = 0x55; return 3; }
void add(inout bit<8> x, in bit<8> y) { x = x + y; }
bit<8> swap(inout bit<8> x, in bit<8> y) { bit<8> old = x; x = y; return old; }
bit<8> nine(in bit<8> x) { return 9; }

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        // The copy-out of one field keeps what the call wrote to another one of the same element.
        hdr.us[0].e.setValid();
        hdr.us[0].e = { 1, 2 };
        add(hdr.us[hdr.h.i].e.k, poke(hdr.us[hdr.h.i].e.v));
        hdr.h.r = hdr.us[0].e.k;
        hdr.h.s = hdr.us[0].e.v;
        // The first part that is assigned is what the index was computed from.
        hdr.s[1].setValid();
        hdr.s[1] = { hdr.h.j, 0 };
        hdr.s[hdr.s[1].k] = { 0, 0x66 };
        hdr.h.t = hdr.s[1].v;
        // An element beyond the end is zero in each iteration.
        for (bit<8> i in 1 .. 2) {
            hdr.h.u = swap(hdr.us[nine(i)].e.k, 7);
        }
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
