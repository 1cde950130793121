// Like `chain.p4`, with tables of prefixes: the first has cells for all lengths, and the second for two of them.
#include <core.p4>
#include <v1model.p4>

header request_h {
    bit<16> id;
    bit<16> key;
    bit<16> first;
    bit<16> second;
    bit<32> number;
}
struct headers_t { request_h request; }
struct metadata_t {}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.request);
        transition accept;
    }
}

control Nothing(inout headers_t hdr, inout metadata_t meta) { apply {} }

control MainIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<32>>(1) numbers;

    action set_first(bit<16> value) { hdr.request.first = value; }
    action set_second(bit<16> value) { hdr.request.second = value; }
    // Another action, so that a record has to say which.
    action set_both(bit<16> first, bit<16> second) {
        hdr.request.first = first;
        hdr.request.second = second;
    }

    @elastic[cache = "CACHE"]
    table one {
        // The cells have the element that is exact first.
        key = {
            hdr.request.key: lpm;
            hdr.request.id[0:0]: exact;
        }
        actions = { set_first; set_both; @defaultonly NoAction; }
        default_action = NoAction();
        size = 512;
    }

    // Prefixes of up to 3 bits stay in the switch, and others are expanded.
    @elastic[window = "4", cache = "CACHE", lengths = "12, 16"]
    table two {
        key = { hdr.request.first: lpm; }
        actions = { set_second; @defaultonly NoAction; }
        default_action = NoAction();
        size = 512;
    }

    apply {
        standard.egress_spec = 2;
        bit<32> number;
        numbers.read(number, 0);
        hdr.request.number = number;
        numbers.write(0, number + 1);
        if (hdr.request.id != 0xffff) {
            one.apply();
        }
        two.apply();
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply {} }
control Emit(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.request); } }

V1Switch(P(), Nothing(), MainIngress(), MainEgress(), Nothing(), Emit()) main;
