#include <core.p4>
#include <v1model.p4>

header keys_t {
    bit<8>  a;
    bit<16> b;
    int<16> c;
    bit<32> d;
    bit<64> e;
    bit<8>  result;
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
    direct_counter(CounterType.packets) acl_counter;

    action result(bit<8> value) { hdr.keys.result = hdr.keys.result + value; }

    table acl {
        key = {
            hdr.keys.a: ternary;
            hdr.keys.b: range;
            hdr.keys.c: range;
            hdr.keys.d: optional;
        }
        actions = { result; NoAction; }
        default_action = result(1);
        counters = acl_counter;
        size = 1000;
    }

    table routes {
        key = {
            hdr.keys.a: exact;
            hdr.keys.e: lpm;
        }
        actions = { result; NoAction; }
        default_action = NoAction;
        size = 1000;
    }

    apply {
        if (acl.apply().hit) {
            hdr.keys.b = 7;
        }
        routes.apply();
        standard.egress_spec = 3;
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }

control MyCompute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.keys); } }

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
