// An exit goes by way of the copying out of every call around it; of an action too.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; }

control Inner(inout bit<8> v, inout bit<8> w) {
    action leave() { v = 9; exit; }
    table t { key = { v: exact; } actions = { leave; NoAction; } default_action = NoAction(); }
    apply {
        v = v + 1;
        if (w == 3) { exit; }
        t.apply();
        w = 4;
    }
}

struct headers { h_t h; h_t g; }
struct metadata { bit<8> x; bit<8> y; bit<16> z; }

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply {  } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    Inner() inner;
    action gone() { exit; }
    table u { key = { meta.z: ternary; } actions = { gone; } const default_action = gone(); }
    apply {
        inner.apply(meta.x, meta.x);
        if (u.apply().hit) { meta.y = 1; }
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) { apply {  } }
control C(inout headers hdr, inout metadata meta) { apply {  } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
