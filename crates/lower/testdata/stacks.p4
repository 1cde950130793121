// Header stacks: next, last, running out of them, shifting, and indices known at run time only.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; }

struct headers { h_t[3] s; h_t h; }
struct metadata { bit<8> i; bit<8> x; }

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.s.next);
        transition select(hdr.s.last.a, hdr.s.lastIndex) {
            (1, _): start;
            (2, 0 .. 1): more;
            default: accept;
        }
    }
    state more {
        h_t peek = packet.lookahead<h_t>();
        packet.advance((bit<32>) peek.a);
        hdr.h = peek;
        transition select(packet.lookahead<bit<8>>()) {
            0x80 &&& 0x80: accept;
            default: reject;
        }
    }
}
control V(inout headers hdr, inout metadata meta) { apply {  } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply {
        hdr.s.push_front(1);
        hdr.s[0].setValid();
        hdr.s[0].a = 5;
        hdr.s.pop_front(2);
        hdr.s[meta.i].b = hdr.s[meta.i + 1].a;
        meta.x = hdr.s[meta.i].isValid() ? 8w1 : 0;
        h_t[3] copy = hdr.s;
        if (copy == hdr.s) { hdr.s[1] = copy[2]; }
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) { apply {  } }
control C(inout headers hdr, inout metadata meta) { apply {  } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
