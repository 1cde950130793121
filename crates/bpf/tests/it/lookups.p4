#include <core.p4>
#include <v1model.p4>

header keys_t {
    bit<8>  a;
    bit<16> b;
    bit<32> c;
    bit<48> d;
    bit<64> e;
}

header results_t {
    bit<16> one;
    bit<16> packed;
    bit<16> long;
    bit<16> large;
    bit<16> small;
}

struct headers_t {
    keys_t    keys;
    results_t results;
}

struct metadata_t { }

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.keys);
        packet.extract(hdr.results);
        transition accept;
    }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) { apply { } }

// No entry has words of its own beside its record, so equal records are one.
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action set_one(bit<16> number) { hdr.results.one = number; }
    action add_one(bit<16> number, bit<8> more) { hdr.results.one = number + (bit<16>) more; }
    table one {
        key = { hdr.keys.e: exact; }
        actions = { set_one; add_one; NoAction; }
        default_action = NoAction;
        size = 64;
    }

    action set_packed(bit<16> number) { hdr.results.packed = number; }
    table packed {
        key = { hdr.keys.a: exact; hdr.keys.b: exact; }
        actions = { set_packed; NoAction; }
        default_action = NoAction;
        size = 64;
    }

    action set_long(bit<16> number) { hdr.results.long = number; }
    table long {
        key = { hdr.keys.c: exact; hdr.keys.d: exact; hdr.keys.b: exact; hdr.keys.a: exact; }
        actions = { set_long; NoAction; }
        default_action = NoAction;
        size = 64;
    }

    // Its root covers 20 bits.
    action set_large(bit<16> number) { hdr.results.large = number; }
    table large {
        key = { hdr.keys.c: lpm; }
        actions = { set_large; NoAction; }
        default_action = NoAction;
        size = 65536;
    }

    action set_small(bit<16> number) { hdr.results.small = number; }
    table small {
        key = { hdr.keys.e: lpm; }
        actions = { set_small; NoAction; }
        default_action = NoAction;
        size = 64;
    }

    apply {
        one.apply();
        packed.apply();
        long.apply();
        large.apply();
        small.apply();
        standard.egress_spec = 3;
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }

control MyCompute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.keys);
        packet.emit(hdr.results);
    }
}

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
