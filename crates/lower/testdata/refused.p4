// What is right P4 but cannot be compiled is refused at its place, all of it in one run.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; }

struct headers { h_t h; h_t g; }
struct metadata { bit<8> x; bit<8> y; bit<2> colour; bit<1> hit; }

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply {  } }
extern Unknown { Unknown(); void poke(); }
extern bit<8> unknown(in bit<8> x);
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    Unknown() object;
    counter(4, CounterType.packets) array;
    direct_counter(CounterType.packets) one;
    action a() { object.poke(); }
    table prefixes {
        key = { hdr.h.a: lpm; hdr.h.b: lpm; }
        actions = { a; }
        default_action = a();
        counters = array;
    }
    table first { key = { hdr.h.a: exact; } actions = { a; } default_action = a(); counters = one; }
    table second { key = { hdr.h.a: exact; } actions = { a; } default_action = a(); counters = one; }
    table entries_ {
        key = { hdr.h.c: lpm; }
        actions = { a; }
                default_action = a();
    }
    apply {
        prefixes.apply();
        first.apply();
        second.apply();
        entries_.apply();
        meta.x = unknown(meta.x);
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) { apply {  } }
control C(inout headers hdr, inout metadata meta) { apply {  } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
