/* Generic sub-parsers, unions in stacks, varbit by a lookahead, masks and ranges in select, and every error as the program sees it. */
#include <v1model.p4>
header h1_t { bit<8> k; bit<8> v; }
header h2_t { bit<16> k; }
header_union u_t { h1_t a; h2_t b; }
header vb_t { bit<8> len; varbit<64> body; }
struct headers { h1_t h; u_t[2] u; vb_t vb; h1_t[3] st; }
struct metadata { bit<8> n; }
parser Sub<H>(packet_in p, out H h)(bit<8> lim) { state start { p.extract(h); transition accept; } }
parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    Sub<h1_t>(8w3) sub;
    state start { sub.apply(packet, hdr.h); transition select(hdr.h.k, hdr.h.v) { (1, 0..5): uni; (2, _): vb; (3 &&& 0xf, _): stk; default: accept; } }
    state uni { packet.extract(hdr.u.next.a); transition select(hdr.u.last.a.k) { 0: fin; default: two; } }
    state two { packet.extract(hdr.u.next.b); transition accept; }
    state vb { packet.extract(hdr.vb, (bit<32>) packet.lookahead<bit<8>>() * 8); transition accept; }
    state stk { packet.extract(hdr.st.next); meta.n = (bit<8>) hdr.st.lastIndex; transition select(hdr.st.last.k) { 0: accept; default: stk; } }
    state fin { verify(hdr.u.lastIndex == 0 && hdr.h.v != 5, error.NoMatch); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply {} }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply { std.egress_spec = 1;
      if (std.parser_error == error.StackOutOfBounds) { std.egress_spec = 2; }
      if (std.parser_error == error.NoMatch) { std.egress_spec = 3; }
      if (std.parser_error == error.HeaderTooShort) { std.egress_spec = 4; }
      if (std.parser_error == error.PacketTooShort) { std.egress_spec = 5; }
      if (hdr.h.k == 3) { hdr.h.v = meta.n; hdr.st.push_front(1); hdr.st[0] = { 0xaa, 0xbb }; }
      if (hdr.u[0].a.isValid()) { hdr.h.v = hdr.u[0].a.v; hdr.u[0].b = { 0x7777 }; }
      if (hdr.u[0].isValid() && hdr.u[0] == hdr.u[1]) { std.egress_spec = 9; }
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply { } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr.h); packet.emit(hdr.u); packet.emit(hdr.vb); packet.emit(hdr.st); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
