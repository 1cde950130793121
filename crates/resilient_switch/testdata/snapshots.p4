// Counts in two groups with snapshots: one row of four pages whose packets are dropped when it is stale, and four rows
// with a flag.
#include <core.p4>
#include <v1model.p4>

header request_h {
    bit<8> op;
    bit<8> row;
    bit<32> value;
    bit<16> stale;
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
    register<bit<1>>(4) is_stale;
    register<bit<32>>(1) runs;
    @resilient[group = "whole", every = "100us", bound = "300us"] register<bit<32>>(1024) whole;
    @resilient[group = "parts", every = "100us", bound = "300us", row = "64", stale = "is_stale"]
    register<bit<32>>(256) parts;
    @resilient[group = "parts", every = "100us", bound = "300us", row = "64", stale = "is_stale"]
    register<bit<128>>(256) wide;
    apply {
        standard.egress_spec = 2;
        bit<32> value;
        runs.read(value, 0);
        runs.write(0, value + 1);
        bit<32> row = (bit<32>) hdr.request.row;
        if (hdr.request.op == 0 || hdr.request.op == 2) {
            whole.read(value, row << 2);
            value = value + hdr.request.value;
            whole.write(row << 2, value);
        }
        if (hdr.request.op == 1 || hdr.request.op == 2) {
            bit<1> stale;
            is_stale.read(stale, row >> 6);
            hdr.request.stale = 15w0 ++ stale;
            parts.read(value, row);
            value = value + hdr.request.value;
            parts.write(row, value);
            bit<128> both;
            wide.read(both, row);
            wide.write(row, both + ((bit<128>) hdr.request.value << 90));
            hdr.request.value = (bit<32>) (both >> 90) + hdr.request.value;
        }
        if (hdr.request.op == 4) {
            whole.read(value, row << 2);
            value = value + hdr.request.value;
            whole.write(row << 2, value);
            whole.read(value, 1023 - (row << 2));
            value = value + hdr.request.value;
            whole.write(1023 - (row << 2), value);
            hdr.request.value = value;
        }
        if (hdr.request.op == 0) { hdr.request.value = value; }
        if (hdr.request.op == 3) { runs.read(hdr.request.value, 0); }
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply {} }
control Emit(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.request); } }

V1Switch(P(), Nothing(), MainIngress(), MainEgress(), Nothing(), Emit()) main;
