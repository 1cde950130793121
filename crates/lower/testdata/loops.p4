// Loops stay loops.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; }

struct headers { h_t h; h_t g; }
struct metadata { bit<8> x; bit<8> y; bit<16> z; }

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply {  } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply {
        for (bit<8> i = 0; i < 5; i = i + 1) {
            if (meta.x == 3) { continue; }
            meta.x = meta.x + i;
            if (meta.x > 100) { break; }
        }
        for (bit<8> k in 1 .. meta.y) { meta.z = meta.z + (bit<16>) k; }
        for (bit<8> v in (list<bit<8>>) { 3, 5, 8 }) { meta.x = meta.x ^ v; }
        switch (meta.x) {
            1: { meta.y = 1; }
            2:
            3: { meta.y = 2; }
            default: { meta.y = 3; }
        }
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) { apply {  } }
control C(inout headers hdr, inout metadata meta) { apply {  } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
