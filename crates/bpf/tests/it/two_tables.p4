#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ether_type;
}

header numbers_t {
    bit<16> key;
    bit<32> first;
    bit<32> second;
}

struct headers_t {
    ethernet_t ethernet;
    numbers_t numbers;
}

struct metadata_t { }

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.numbers);
        transition accept;
    }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    direct_counter(CounterType.packets_and_bytes) exact_counter;
    direct_counter(CounterType.packets_and_bytes) prefix_counter;

    action set_first(bit<32> number) { hdr.numbers.first = number; }

    table exact_table {
        key = { hdr.numbers.key: exact; }
        actions = { set_first; NoAction; }
        default_action = NoAction;
        counters = exact_counter;
        size = 64;
    }

    action set_second(bit<32> number) { hdr.numbers.second = number; }

    table prefix_table {
        key = { hdr.numbers.key: lpm; }
        actions = { set_second; NoAction; }
        default_action = NoAction;
        counters = prefix_counter;
        size = 64;
    }

    apply {
        exact_table.apply();
        prefix_table.apply();
        standard.egress_spec = 3;
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }

control MyCompute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.numbers);
    }
}

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
