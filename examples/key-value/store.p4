// A key-value store in the switch: requests to read, set or add to the value of one of 65,536 keys. The values survive
// the switch: its registers are replicated to the stores of the lab.
#include <core.p4>
#include <v1model.p4>

const bit<16> TYPE_KEY_VALUE = 0x88b6;

enum bit<8> Operation {
    READ = 0,
    SET = 1,
    ADD = 2
}

header ethernet_h {
    bit<48> destination;
    bit<48> source;
    bit<16> type;
}

// A response is the request with the value behind the operation, and the number of changes of the key so far.
header request_h {
    Operation operation;
    bit<16> key;
    bit<32> value;
    bit<32> changes;
}

struct headers_t {
    ethernet_h ethernet;
    request_h request;
}

struct metadata_t {}

parser KeyValueParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_KEY_VALUE: request;
            default: accept;
        }
    }

    state request {
        packet.extract(hdr.request);
        transition accept;
    }
}

control KeyValueIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    // Both arrays belong to one group, so a key has one row: its value and its number of changes move together.
    @resilient[group = "keys"] register<bit<32>>(65536) values;
    @resilient[group = "keys"] register<bit<32>>(65536) changes;

    apply {
        if (!hdr.request.isValid()) {
            mark_to_drop(standard);
            return;
        }
        bit<32> key = (bit<32>) hdr.request.key;
        bit<32> value;
        values.read(value, key);
        bit<32> count;
        changes.read(count, key);
        if (hdr.request.operation == Operation.SET) {
            value = hdr.request.value;
            count = count + 1;
        } else if (hdr.request.operation == Operation.ADD) {
            value = value + hdr.request.value;
            count = count + 1;
        }
        // A value that is there already is not replicated, so reading costs nothing.
        values.write(key, value);
        changes.write(key, count);
        hdr.request.value = value;
        hdr.request.changes = count;
        bit<48> client = hdr.ethernet.source;
        hdr.ethernet.source = hdr.ethernet.destination;
        hdr.ethernet.destination = client;
        standard.egress_spec = standard.ingress_port;
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control KeyValueEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control KeyValueDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.request);
    }
}

V1Switch(KeyValueParser(), NoChecksum(), KeyValueIngress(), KeyValueEgress(), NoChecksum(), KeyValueDeparser()) main;
