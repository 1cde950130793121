// Header stacks: extracting, running out, shifting, run-time indices beyond the end.
#include <core.p4>
#include <v1model.p4>

// What comes in: four arguments, and four bytes for results.
header h_t {
    bit<8> a; bit<8> b; bit<8> c; bit<8> d;
    bit<8> r; bit<8> s; bit<8> t; bit<8> u;
}
header e_t { bit<8> k; bit<8> v; }

struct headers { h_t h; e_t[3] s; }
struct metadata { bit<8> m; }

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.h);
        transition element;
    }
    state element {
        packet.extract(hdr.s.next);
        transition select(hdr.s.last.k) {
            0: accept;
            _: element;
        }
    }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.h.r = sm.parser_error == error.NoError ? 8w0 : sm.parser_error == error.StackOutOfBounds ? 8w1 : 2;
        if (hdr.h.a == 1) {
            hdr.s.push_front(1);
            hdr.s[0] = { 0xaa, 0xbb };
        } else if (hdr.h.a == 2) {
            hdr.s.pop_front(2);
        }
        hdr.h.s = hdr.s[hdr.h.b].v;
        hdr.s[hdr.h.c].v = 0xcc;
        hdr.h.t = hdr.s[hdr.h.b].isValid() ? 8w1 : 0;
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
