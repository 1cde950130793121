// Variable fields in headers and in variables.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; }

header opt_t { bit<8> len; varbit<320> data; }

struct headers { opt_t o; opt_t p; }
struct metadata { bit<8> x; }

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.o, (bit<32>) packet.lookahead<bit<8>>() * 8);
        transition accept;
    }
}
control V(inout headers hdr, inout metadata meta) { apply {  } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply {
        varbit<320> keep = hdr.o.data;
        hdr.p = hdr.o;
        hdr.p.data = keep;
        if (hdr.p == hdr.o) { meta.x = 1; }
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) { apply {  } }
control C(inout headers hdr, inout metadata meta) { apply {  } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
