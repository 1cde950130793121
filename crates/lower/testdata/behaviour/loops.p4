// Loops of every kind, with their ways out.
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
        bit<8> n = 0;
        for (bit<8> i = 0; i < hdr.h.a; i = i + 1) {
            if (i == 2) { continue; }
            if (i == 5) { break; }
            n = n + i;
        }
        hdr.h.r = n;
        // Both ends belong to a range, even if the last value is the largest there is.
        n = 0;
        for (bit<8> k in hdr.h.b .. 255) { n = n + 1; }
        hdr.h.s = n;
        n = 0;
        for (bit<8> v in (list<bit<8>>) { 1, hdr.h.c, 4 }) { hdr.h.c = 0; n = n + v; }
        hdr.h.t = n;
        for (bit<8> i in 1 .. 3) {
            for (bit<8> j in 1 .. 3) {
                if (j == i) { break; }
                hdr.h.u = hdr.h.u + 1;
            }
        }
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
