// Variable fields, copied through a variable, and compared.
#include <core.p4>
#include <v1model.p4>

// What comes in: four arguments, and four bytes for results.
header h_t {
    bit<8> a; bit<8> b; bit<8> c; bit<8> d;
    bit<8> r; bit<8> s; bit<8> t; bit<8> u;
}
header o_t { bit<8> len; varbit<64> data; bit<8> tail; }

struct headers { h_t h; o_t o; o_t p; }
struct metadata { bit<8> m; }

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.h);
        packet.extract(hdr.o, (bit<32>) (packet.lookahead<bit<8>>() * 8));
        transition accept;
    }
}
control V(inout headers hdr, inout metadata meta) { apply { } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        varbit<64> kept = hdr.o.data;
        hdr.p = hdr.o;
        hdr.h.r = hdr.p == hdr.o ? 8w1 : 0;
        hdr.p.tail = 0x77;
        hdr.h.s = hdr.p == hdr.o ? 8w1 : 0;
        hdr.p.data = kept;
        hdr.h.t = (bit<8>) sm.packet_length;
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers hdr, inout metadata meta) { apply { } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
