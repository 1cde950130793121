// Header unions: one member valid at most, and stacks of them.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; }

header i_t { bit<8> k; }
header_union u_t { h_t h; i_t i; }

struct headers { u_t u; u_t[2] us; }
struct metadata { bit<1> i; bit<8> x; }

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.u.i);
        transition select(hdr.u.i.k) { 1: one; default: accept; }
    }
    state one {
        packet.extract(hdr.us.next.h);
        transition accept;
    }
}
control V(inout headers hdr, inout metadata meta) { apply {  } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply {
        hdr.u.h.setValid();
        hdr.u.h.a = 1;
        if (hdr.u.isValid()) { hdr.u.i = hdr.us[0].i; }
        u_t other = hdr.u;
        hdr.us[meta.i].h = { 1, 2, 3 };
        meta.x = hdr.us[meta.i].h.a;
        if (other == hdr.us[1]) { hdr.us[1] = hdr.u; }
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) { apply {  } }
control C(inout headers hdr, inout metadata meta) { apply {  } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
