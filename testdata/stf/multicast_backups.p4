/* A copy goes by the first of its backup ports that is up while its own port is down, and only then; multicast groups
 * of mirror sessions do the same. */
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> group; bit<8> rid; bit<8> port; }
struct headers { h_t h; }
struct metadata { }

#include "common/empty.p4"

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.mcast_grp = (bit<16>) hdr.h.group;
        if (hdr.h.group == 0) {
            clone(CloneType.I2E, 5);
            mark_to_drop(std);
        }
    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        hdr.h.rid = (bit<8>) std.egress_rid;
        hdr.h.port = (bit<8>) std.egress_port;
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), MyEgress(), NoCompute(), MyDeparser()) main;
