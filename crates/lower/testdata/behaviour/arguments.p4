// Copying in and out, where it can be told from passing by reference.
#include <core.p4>
#include <v1model.p4>

// What comes in: four arguments, and four bytes for results.
header h_t {
    bit<8> a; bit<8> b; bit<8> c; bit<8> d;
    bit<8> r; bit<8> s; bit<8> t; bit<8> u;
}

void set_both(inout bit<8> x, inout bit<8> y) { x = 1; y = y + 5; }
void crossed(in bit<8> x, out bit<8> y, out bit<8> z) { y = x + 1; z = x + 2; }
bit<8> untouched(out bit<8> x) { return 7; }
bit<8> bumped(inout bit<8> x) { x = x + 1; return x; }

struct headers { h_t h; }
struct metadata { bit<8> m; }

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        // Both parameters begin as 0x10; the copy out of the second comes last: 0x15.
        hdr.h.r = hdr.h.a;
        set_both(hdr.h.r, hdr.h.r);
        // The old value of b is read before b is written: c = b + 2, b = b + 1.
        crossed(hdr.h.b, hdr.h.b, hdr.h.c);
        // An out parameter begins as 0, and that is what comes back.
        hdr.h.s = 0xff;
        hdr.h.t = untouched(hdr.h.s);
        // From left to right: d + (d + 1) + (d + 2), each side as it was when evaluated.
        hdr.h.u = hdr.h.d + bumped(hdr.h.d) + bumped(hdr.h.d);
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
