// Tables: keys of every kind, entries, bound arguments, results, profiles and direct objects.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; }

struct headers { h_t h; h_t g; }
struct metadata { bit<8> x; bit<8> y; bit<2> colour; bit<1> hit; }

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply {  } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) seen;
    direct_meter<bit<2>>(MeterType.bytes) pace;
    action_selector(HashAlgorithm.crc16, 128, 14) ecmp;
    action set(inout bit<8> where, bit<8> what) { where = what; }
    action colour() { pace.read(meta.colour); }
    action port(bit<9> p) { standard_metadata.egress_spec = p; }
    table lpm {
        key = { hdr.h.c: lpm; hdr.h.isValid(): exact; }
        actions = { set(meta.x); @defaultonly NoAction; }
        const entries = {
            (0x1200 &&& 0xff00, true): set(meta.x, 1);
            (0x1234, true): set(meta.x, 2);
            (_, false): set(meta.x, 3);
        }
        default_action = NoAction();
    }
    table acl {
        key = { hdr.h.a: ternary; hdr.h.b: range; meta.x: optional @name("x"); }
        actions = { set(meta.y); colour; }
        entries = {
            priority = 3: (0x80 &&& 0xf0, 1 .. 5, _): set(meta.y, 1);
            const priority = 7: (_, 3, 2): colour();
        }
        counters = seen;
        meters = pace;
        const default_action = colour();
        support_timeout = true;
    }
    table spread {
        key = { hdr.h.a: exact; hdr.h.b: selector; }
        actions = { port; NoAction; }
        implementation = ecmp;
        size = 64;
    }
    apply {
        lpm.apply();
        if (acl.apply().miss) { meta.hit = 1; }
        switch (spread.apply().action_run) {
            port: { meta.x = 1; }
            NoAction: { meta.x = 2; }
        }
        lpm.apply();
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) { apply {  } }
control C(inout headers hdr, inout metadata meta) { apply {  } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
