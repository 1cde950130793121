// Operators, casts and the order of evaluation.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; }

enum Color { red, green, blue }
enum bit<16> Kind { one = 1, two = 2 }
type bit<9> port_t;

struct headers { h_t h; h_t g; }
struct metadata { bit<8> x; bit<8> y; bit<16> z; int<8> s; int<16> w; bool t; Color color; Kind kind; port_t port; error e; bit<200> wide; }

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply {  } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply {
        meta.z = meta.x ++ meta.y;
        meta.x = meta.z[11:4];
        meta.x[3:0] = meta.y[7:4];
        meta.s = (int<8>) meta.x - 8s3;
        meta.w = (int<16>) meta.s;
        meta.t = meta.s < -1 || meta.x >= meta.y;
        meta.s = meta.s >> 2;
        meta.x = meta.x >> meta.y;
        meta.x = meta.x |+| 200;
        meta.s = meta.s |-| 100;
        meta.x = meta.t ? meta.x : meta.y;
        meta.color = meta.color == Color.green ? Color.blue : Color.red;
        meta.kind = Kind.two;
        meta.z = (bit<16>) meta.kind + 1;
        meta.port = (port_t) standard_metadata.ingress_port;
        meta.t = meta.e == error.NoMatch && !meta.t;
        meta.x = (bit<8>) (bit<1>) meta.t;
        meta.wide = 200w1 << 199;
        meta.x += 2;
        meta.z[7:0] -= 1;
        hdr.g = { 1, meta.x, meta.z };
        hdr.g = { hdr.g.b, hdr.g.a, hdr.g.c + 1 };
        meta.t = hdr.g == hdr.h;
        hdr.h = (h_t) {#};
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) { apply {  } }
control C(inout headers hdr, inout metadata meta) { apply {  } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
