// Exit and return, and what is copied out on the way.
#include <core.p4>
#include <v1model.p4>

// What comes in: four arguments, and four bytes for results.
header h_t {
    bit<8> a; bit<8> b; bit<8> c; bit<8> d;
    bit<8> r; bit<8> s; bit<8> t; bit<8> u;
}

control Inner(inout bit<8> v, inout bit<8> w) {
    action leave() { v = 9; exit; }
    action stay() { v = v + 1; }
    table t {
        key = { w: exact; }
        actions = { leave; stay; }
        const entries = { 1: leave(); }
        default_action = stay();
    }
    apply {
        v = v + 0x20;
        if (w == 3) { exit; }
        if (w == 4) { return; }
        t.apply();
        w = 0x77;
    }
}

struct headers { h_t h; }
struct metadata { bit<8> m; }

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    Inner() inner;
    action finish() { hdr.h.t = 0xee; exit; }
    table last {
        key = { hdr.h.c: exact; }
        actions = { finish; NoAction; }
        const entries = { 5: finish(); }
        default_action = NoAction();
    }
    apply {
        sm.egress_spec = 1;
        if (hdr.h.d == 1) {
            // The two arguments overlap: copies.
            hdr.h.a = hdr.h.b;
            inner.apply(hdr.h.a, hdr.h.a);
        } else {
            inner.apply(hdr.h.a, hdr.h.b);
        }
        hdr.h.r = 1;
        last.apply();
        hdr.h.s = 1;
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
