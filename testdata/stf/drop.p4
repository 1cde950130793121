/* mark_to_drop in ingress and egress; what is written to egress_spec behind it counts. */
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> op; }
struct headers { h_t h; }
struct metadata { }

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control NoVerify(inout headers hdr, inout metadata meta) { apply { } }
control NoCompute(inout headers hdr, inout metadata meta) { apply { } }

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        if (hdr.h.op == 1) {
            mark_to_drop(std);
        }
        if (hdr.h.op == 2) {
            mark_to_drop(std);
            std.egress_spec = 2;
        }
        if (hdr.h.op == 3) {
            std.egress_spec = 511;
        }
    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        if (hdr.h.op == 4) {
            mark_to_drop(std);
        }
        if (hdr.h.op == 5) {
            // Too late to choose another port.
            std.egress_spec = 9;
        }
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), MyEgress(), NoCompute(), MyDeparser()) main;
