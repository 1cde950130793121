// Atomic blocks, and the ways out of them.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<32> a; }
struct headers { h_t h; }
struct metadata { bit<32> v; }

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    register<bit<32>>(4) r;
    action early() {
        @atomic {
            r.read(meta.v, 0);
            if (meta.v == 1) { return; }
            if (meta.v == 2) { exit; }
            r.write(0, meta.v + 1);
        }
    }
    apply {
        // Of the packet alone: nothing to keep out.
        @atomic { hdr.h.a = hdr.h.a + 1; meta.v = hdr.h.a; }
        @atomic { early(); }
        for (bit<8> i in 8w0 .. 8w3) {
            @atomic {
                r.read(meta.v, (bit<32>) i);
                if (meta.v == 7) { break; }
                r.write((bit<32>) i, 7);
            }
        }
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }

V1Switch(P(), V(), I(), E(), C(), D()) main;
