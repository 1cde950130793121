// Joins hosts, switches and stores: frames that come in by a port leave by another one, as the table says. For frames
// that two switches can take, it names a multicast group of one port with a backup port: they leave by the backup port
// while the first one is down.
#include <core.p4>
#include <v1model.p4>

struct none {}

parser EdgeParser(packet_in packet, out none hdr, inout none meta, inout standard_metadata_t standard) {
    state start {
        transition accept;
    }
}

control EdgeIngress(inout none hdr, inout none meta, inout standard_metadata_t standard) {
    action drop() {
        mark_to_drop(standard);
    }

    action leave_by(bit<9> port) {
        standard.egress_spec = port;
    }

    action leave_by_first_up(bit<16> group) {
        standard.mcast_grp = group;
    }

    table crossings {
        key = {
            standard.ingress_port: exact;
        }
        actions = {
            leave_by;
            leave_by_first_up;
            drop;
        }
        default_action = drop();
    }

    apply {
        crossings.apply();
    }
}

control NoChecksum(inout none hdr, inout none meta) {
    apply {}
}

control EdgeEgress(inout none hdr, inout none meta, inout standard_metadata_t standard) {
    apply {}
}

control EdgeDeparser(packet_out packet, in none hdr) {
    apply {}
}

V1Switch(EdgeParser(), NoChecksum(), EdgeIngress(), EdgeEgress(), NoChecksum(), EdgeDeparser()) main;
