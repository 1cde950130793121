// Calls are inlined: by reference where nobody can tell, by copying where arguments overlap.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; }

bit<8> twice(in bit<8> v) { return v << 1; }
bit<8> clamp(in bit<8> v, in bit<8> limit) {
    if (v > limit) { return limit; }
    return v;
}
void swap(inout bit<8> a, inout bit<8> b) {
    bit<8> t = a;
    a = b;
    b = t;
}
void split(in bit<16> v, out bit<8> high, out bit<8> low) {
    high = v[15:8];
    low = v[7:0];
}
control Inner(inout bit<8> v, in bit<8> by)(bit<8> factor) {
    apply { v = v + by * factor; if (v == 0) { return; } v = v - 1; }
}

struct headers { h_t h; h_t g; }
struct metadata { bit<8> x; bit<8> y; bit<16> z; }

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply {  } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    Inner(3) thrice;
    Inner(5) five;
    action bump(inout bit<8> v) { v = v + 1; meta.y = v; }
    apply {
        meta.x = twice(meta.y) + clamp(meta.x, 10);
        swap(meta.x, meta.y);
        swap(meta.x, meta.x);
        split(meta.z, meta.x, meta.z[7:0]);
        bump(meta.x);
        bump(meta.y);
        thrice.apply(meta.x, meta.y);
        five.apply(meta.x, meta.x);
        five.apply(hdr.h.a, 7);
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) { apply {  } }
control C(inout headers hdr, inout metadata meta) { apply {  } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
