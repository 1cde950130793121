/* Parsers with variables, assignments, conditions, calls, and a loop that the packet ends. */
#include <core.p4>
#include <v1model.p4>

header item_t { bit<8> value; }
header sum_t { bit<16> sum; bit<8> count; }
struct headers { sum_t sum; }
struct metadata { sum_t sum; }

#include "common/empty.p4"

bit<16> weighted(in bit<8> value, in bit<8> weight) {
    return (bit<16>) value * (bit<16>) weight;
}

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    bit<16> sum = 0;
    bit<8> weight = 1;
    item_t item;
    state start {
        packet.extract(item);
        if (item.value != 0xff) {
            sum = sum + weighted(item.value, weight);
        } else {
            sum = 0;
        }
        weight = weight + 1;
        transition select(item.value) {
            0: done;
            default: start;
        }
    }
    state done {
        hdr.sum.setValid();
        hdr.sum.sum = sum;
        hdr.sum.count = weight - 1;
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        if (std.parser_error == error.PacketTooShort) {
            std.egress_spec = 2;
        }
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), MyDeparser()) main;
