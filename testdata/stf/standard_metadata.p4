/* What the switch says of a packet: ports, length, times, errors, kinds. */
#include <core.p4>
#include <v1model.p4>

header h_t {
    bit<8> in_port;
    bit<8> out_port;
    bit<16> length;
    bit<8> times;
    bit<8> type;
    bit<16> rest;
}
struct headers { h_t h; }
struct metadata { bit<48> arrived; bit<9> parsed_port; }

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        meta.parsed_port = std.ingress_port;
        packet.extract(hdr.h);
        transition accept;
    }
}

control NoVerify(inout headers hdr, inout metadata meta) { apply { } }
control NoCompute(inout headers hdr, inout metadata meta) { apply { } }

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    register<bit<48>>(1) last;
    apply {
        std.egress_spec = 6;
        std.priority = 3;
        hdr.h.in_port = (bit<8>) meta.parsed_port;
        hdr.h.length = (bit<16>) std.packet_length;
        bit<48> before;
        last.read(before, 0);
        last.write(0, std.ingress_global_timestamp);
        hdr.h.times = 0;
        // Microseconds: a millisecond passes between packets of a test.
        if (std.ingress_global_timestamp - before == 1000) {
            hdr.h.times = 1;
        }
        if (std.parser_error != error.NoError) {
            hdr.h.setValid();
            hdr.h.rest = 0xeeee;
        }
        meta.arrived = std.ingress_global_timestamp;
    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        hdr.h.out_port = (bit<8>) std.egress_port;
        hdr.h.type = (bit<8>) std.instance_type;
        if (std.egress_global_timestamp >= meta.arrived && std.deq_qdepth == 0) {
            hdr.h.times[7:7] = 1;
        }
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), MyEgress(), NoCompute(), MyDeparser()) main;
