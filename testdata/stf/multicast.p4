/* Copies to several ports and several to one, told apart by their replication ids; each goes through egress. */
#include <core.p4>
#include <v1model.p4>

header h_t { bit<16> group; bit<16> rid; bit<8> port; bit<8> type; }
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
        std.egress_spec = 7;
        std.mcast_grp = hdr.h.group;
    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        hdr.h.rid = std.egress_rid;
        hdr.h.port = (bit<8>) std.egress_port;
        hdr.h.type = (bit<8>) std.instance_type;
        // No copy goes back where it came from.
        if (std.mcast_grp != 0 && std.egress_port == std.ingress_port) {
            mark_to_drop(std);
        }
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), MyEgress(), NoCompute(), MyDeparser()) main;
