// Copy-in and copy-out of arguments (section 6.8), and unions whose members become invalid (section 8.19).
#include <core.p4>
#include <v1model.p4>

// What comes in: four arguments, and six bytes for results.
header h_t {
    bit<8> a; bit<8> b; bit<8> c; bit<8> d;
    bit<8> r; bit<8> s; bit<8> t; bit<8> u; bit<8> v; bit<8> w;
}
header x_t { bit<8> v; }
header_union u_t { h_t h; x_t x; }

// Changes its argument while the caller's other arguments are evaluated.
bit<8> g(inout bit<8> z) { z = 0xf0; return 1; }
void add(inout bit<8> x, in bit<8> y) { x = x + y; }
void add4(inout bit<4> x, in bit<8> y) { x = x + y[3:0]; }
bit<8> first(in bit<8> x, in bit<8> y) { return x; }
void both(inout bit<8> x, inout bit<8> y) { x = 1; y = 2; }
bit<8> same(inout bit<8> x) { return x; }
bit<8> put(inout bit<8> x) { x = 7; return x; }
void touch(inout x_t x) { x.v = 9; }
void fill(out x_t x) { x.setValid(); x.v = 3; }

struct headers { h_t h; h_t[2] s; u_t u; u_t[2] us; x_t none; }
struct metadata { bit<8> index; }

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        // The inout argument is copied before the second one is evaluated.
        add(hdr.h.a, g(hdr.h.a));
        // So is a slice; what g writes to the other bits stays.
        add4(hdr.h.b[3:0], g(hdr.h.b));
        // Named arguments are evaluated in the order of the call.
        hdr.h.r = first(y = g(hdr.h.c), x = hdr.h.c);
        // They are copied back in that order, too: the last one is x.
        both(y = hdr.h.d, x = hdr.h.d);
        // The element does not exist, but the parameter does.
        meta.index = hdr.h.s;
        hdr.h.s = put(hdr.s[meta.index].a);
        // A loop's items are those before its first iteration (section 12.8).
        hdr.s[0].a = 1;
        hdr.s[1].a = 2;
        hdr.h.c = 0;
        for (h_t item in hdr.s) {
            hdr.h.c = hdr.h.c + item.a;
            hdr.s[1].a = 0x50;
        }
        // The second round reads an element beyond the end: zeros, and nothing of the first round.
        hdr.us[0].x.setValid();
        hdr.us[0].x.v = 0x44;
        for (bit<8> i in 0 .. 1) {
            hdr.h.v = same(hdr.us[i * 9].x.v);
        }
        hdr.u.h.setValid();
        hdr.u.x.setInvalid();
        hdr.h.t = hdr.u.isValid() ? 8w0x11 : 0x10;
        hdr.u.h.setValid();
        hdr.u.x = hdr.none;
        hdr.h.u = hdr.u.isValid() ? 8w0x21 : 0x20;
        // Copying out an invalid member invalidates the union.
        hdr.u.h.setValid();
        touch(hdr.u.x);
        hdr.h.w = hdr.u.isValid() ? 8w0x31 : 0x30;
        // Copying out a valid member invalidates the others.
        hdr.u.h.setValid();
        fill(hdr.u.x);
        hdr.h.w = hdr.h.w | (hdr.u.h.isValid() ? 8w4 : 0) | (hdr.u.x.isValid() ? 8w2 : 0);
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
