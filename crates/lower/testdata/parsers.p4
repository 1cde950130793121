// Sub-parsers become states of the parser that applies them; value sets and struct keys.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; }

struct ports_t { @match(ternary) bit<8> a; bit<8> b; }
parser Sub(packet_in packet, out h_t h, inout bit<8> n) {
    state start {
        packet.extract(h);
        n = n + 1;
        transition select(h.a) { 0: start; 1 .. 5: done; default: reject; }
    }
    state done { transition accept; }
}

struct headers { h_t h; h_t g; }
struct metadata { bit<8> x; bit<8> y; bit<16> z; }

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    Sub() sub;
    value_set<ports_t>(4) pvs;
    value_set<bit<16>>(8) cvs;
    state start {
        sub.apply(packet, hdr.h, meta.x);
        transition select(hdr.h.a, hdr.h.b) {
            pvs: again;
            (7, 8 &&& 0x0c): accept;
        }
    }
    state again {
        sub.apply(packet, hdr.g, meta.x);
        transition select(hdr.g.c) { cvs: accept; }
    }
}
control V(inout headers hdr, inout metadata meta) { apply {  } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply {
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) { apply {  } }
control C(inout headers hdr, inout metadata meta) { apply {  } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
