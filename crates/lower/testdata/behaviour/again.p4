// A control with a table, and a table, applied in several places: one table each, with the arguments of the place.
#include <core.p4>
#include <v1model.p4>

// What comes in: four arguments, and four bytes for results.
header h_t {
    bit<8> a; bit<8> b; bit<8> c; bit<8> d;
    bit<8> r; bit<8> s; bit<8> t; bit<8> u;
}

control Look(in bit<8> key, inout bit<8> result) {
    bit<8> found = 0;
    action set(bit<8> v) { found = v; }
    table t { key = { key: exact; } actions = { set; NoAction; } default_action = NoAction(); }
    apply { t.apply(); result = result + found; }
}

struct headers { h_t h; }
struct metadata { bit<8> m; }

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    Look() look;
    bit<8> seen = 0;
    action count(bit<8> by) { seen = seen + by; }
    table c { key = { hdr.h.d: exact; } actions = { count; } const default_action = count(1); }
    apply {
        sm.egress_spec = 1;
        look.apply(hdr.h.a, hdr.h.r);
        look.apply(hdr.h.b, hdr.h.s);
        look.apply(hdr.h.b + 1, hdr.h.r);
        c.apply();
        hdr.h.d = hdr.h.d + 1;
        if (!c.apply().hit) { hdr.h.t = seen; }
        switch (c.apply().action_run) {
            count: { hdr.h.u = seen; }
        }
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
