/* Packets to the control plane with the header that tells it where they came in, and packets that it sends with the
 * header that says where they go; neither header leaves by another port. */
#include <core.p4>
#include <v1model.p4>

#define CPU_PORT 510

@controller_header("packet_in")
header packet_in_t { bit<9> ingress_port; bit<7> reason; }
@controller_header("packet_out")
header packet_out_t { bit<9> egress_port; bit<7> padding; }
header h_t { bit<8> kind; bit<8> note; }

struct headers {
    packet_in_t packet_in;
    packet_out_t packet_out;
    h_t h;
}
struct metadata { }

#include "common/empty.p4"

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        transition select(std.ingress_port) {
            CPU_PORT: from_controller;
            default: plain;
        }
    }
    state from_controller {
        packet.extract(hdr.packet_out);
        transition plain;
    }
    state plain {
        packet.extract(hdr.h);
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        if (hdr.packet_out.isValid()) {
            std.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
            hdr.h.note = 0xcc;
        } else if (hdr.h.kind == 1) {
            std.egress_spec = CPU_PORT;
            hdr.packet_in.setValid();
            hdr.packet_in = { std.ingress_port, 5 };
        } else {
            std.egress_spec = 2;
        }
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.packet_out);
        packet.emit(hdr.h);
    }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), MyDeparser()) main;
