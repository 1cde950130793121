// The serving gateway of a mobile network (EPC) in miniature. Signalling messages of a base station give a user a new
// tunnel; data packets to the user leave by the tunnel. The tunnels survive the switch: they are replicated to the
// stores. Data packets only read, so they wait for no store.
#include <core.p4>
#include <v1model.p4>
#include "../common/packet.p4"

const bit<16> TYPE_DATA = 0x88b5;
const bit<16> TYPE_SIGNALLING = 0x88b6;

// The user, and the tunnel endpoint identifier (TEID), which the gateway writes.
header tunnel_h {
    bit<16> user;
    bit<32> teid;
}

struct headers_t {
    ethernet_h ethernet;
    tunnel_h tunnel;
}

struct metadata_t {}

parser GatewayParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_DATA: parse_tunnel;
            TYPE_SIGNALLING: parse_tunnel;
            default: accept;
        }
    }

    state parse_tunnel {
        packet.extract(hdr.tunnel);
        transition accept;
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control GatewayIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    // A user has one row: the tunnel and the port of the base station move together.
    @resilient[group = "users"] register<bit<32>>(65536) teids;
    @resilient[group = "users"] register<port_t>(65536) stations;

    apply {
        if (!hdr.tunnel.isValid()) {
            mark_to_drop(standard);
            return;
        }
        bit<32> user = (bit<32>) hdr.tunnel.user;
        bit<32> teid;
        teids.read(teid, user);
        if (hdr.ethernet.type == TYPE_SIGNALLING) {
            // The user's next tunnel, from the station that asks for it. The answer goes back there.
            teid = hdr.tunnel.user ++ (teid[15:0] + 1);
            teids.write(user, teid);
            stations.write(user, standard.ingress_port);
            mac_t station = hdr.ethernet.src;
            hdr.ethernet.src = hdr.ethernet.dst;
            hdr.ethernet.dst = station;
            standard.egress_spec = standard.ingress_port;
        } else if (teid != 0) {
            stations.read(standard.egress_spec, user);
        } else {
            // The user has no tunnel.
            mark_to_drop(standard);
        }
        hdr.tunnel.teid = teid;
    }
}

control GatewayEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control GatewayDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(GatewayParser(), NoChecksum(), GatewayIngress(), GatewayEgress(), NoChecksum(), GatewayDeparser()) main;
