// State without @resilient in a program that has some: what packets both read and write is reported.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<16> key;
    bit<32> value;
}
struct headers_t { request_t request; }
struct metadata_t { bit<32> scratch; }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.request);
        transition accept;
    }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @resilient register<bit<32>>(16) kept;
    register<bit<32>>(16) counted;              // read, changed and written: reported
    register<bit<32>>(16) answered;             // written, and read into the packet: reported
    @noWarn register<bit<32>>(16) cached;       // the same, and its author knows
    register<bit<32>>(16) statistics;           // only written: the control plane reads it
    register<bit<32>>(16) settings;             // only read: the control plane writes it
    register<bit<32>>(16) ignored;              // written, and read for nothing
    register<bit<32>>(16) unused;
    apply {
        bit<32> index = (bit<32>) hdr.request.key;
        bit<32> value;
        bit<32> nothing;
        kept.read(value, index);
        kept.write(index, value + 1);
        counted.read(value, index);
        counted.write(index, value + 1);
        answered.write(index, hdr.request.value);
        answered.read(hdr.request.value, 7);
        cached.read(value, index);
        cached.write(index, value ^ hdr.request.value);
        statistics.write(index, hdr.request.value);
        settings.read(meta.scratch, index);
        ignored.write(index, meta.scratch);
        ignored.read(nothing, index);
        standard.egress_spec = 1;
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.request); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
