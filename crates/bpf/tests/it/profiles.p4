#include <core.p4>
#include <v1model.p4>

header keys_t {
    bit<8>  key;
    bit<3>  a;
    bit<13> b;
    bit<40> c;
    bit<64> d;
    bit<8>  ran;
    bit<8>  hit;
    bit<16> first;
    bit<16> second;
    bit<16> third;
}

struct headers_t {
    keys_t keys;
}

struct metadata_t { }

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.keys);
        transition accept;
    }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    direct_counter(CounterType.packets_and_bytes) first_counter;
    action_selector(HashAlgorithm./* algorithm */, 32, 16) pool;
    action_profile(16) plain;

    action set(bit<16> value) { hdr.keys.first = hdr.keys.first + value; }
    action join(bit<8> high, bit<8> low) { hdr.keys.second = hdr.keys.second + (high ++ low); }
    action clear() { hdr.keys.third = 0; }

    table first {
        key = {
            hdr.keys.key: exact;
            hdr.keys.a: selector;
            hdr.keys.b: selector;
            hdr.keys.c: selector;
            hdr.keys.d: selector;
        }
        actions = { set; join; NoAction; }
        default_action = join(1, 2);
        implementation = pool;
        counters = first_counter;
        size = 32;
    }

    // The same members as those of `first`, in a list of actions with another order.
    table second {
        key = {
            hdr.keys.key: ternary;
            hdr.keys.a: selector;
            hdr.keys.b: selector;
            hdr.keys.c: selector;
            hdr.keys.d: selector;
        }
        actions = { clear; NoAction; join; set; }
        default_action = clear;
        implementation = pool;
        size = 8;
    }

    table third {
        key = { hdr.keys.key: lpm; }
        actions = { set; clear; NoAction; }
        default_action = NoAction;
        implementation = plain;
        size = 16;
    }

    apply {
        switch (first.apply().action_run) {
            set: { hdr.keys.ran = 1; }
            join: { hdr.keys.ran = 2; }
            NoAction: { hdr.keys.ran = 3; }
            default: { hdr.keys.ran = 4; }
        }
        if (second.apply().hit) {
            hdr.keys.hit = 1;
        }
        third.apply();
        standard.egress_spec = 3;
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }

control MyCompute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.keys); } }

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
