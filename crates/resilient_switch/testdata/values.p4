// Keeps two values a row: reads, sets or adds, and answers with the values.
#include <core.p4>
#include <v1model.p4>

header request_h {
    bit<8> op;
    bit<8> row;
    bit<32> value;
    bit<16> changes;
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
    @resilient[group = "rows"] register<bit<32>>(16) values;
    @resilient[group = "rows"] register<bit<16>>(16) changes;
    apply {
        standard.egress_spec = 2;
        if (hdr.request.op != 255) {
            bit<32> row = (bit<32>) hdr.request.row;
            bit<32> value;
            values.read(value, row);
            if (hdr.request.op == 1) { value = hdr.request.value; }
            if (hdr.request.op == 2) { value = value + hdr.request.value; }
            values.write(row, value);
            hdr.request.value = value;
            bit<16> all;
            changes.read(all, row);
            if (hdr.request.op == 1 || hdr.request.op == 2) { all = all + 1; }
            changes.write(row, all);
            hdr.request.changes = all;
        }
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply {} }
control Emit(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.request); } }

V1Switch(P(), Nothing(), MainIngress(), MainEgress(), Nothing(), Emit()) main;
