// A NAT between hosts inside and the networks outside: each internal address and port is mapped to a port of one public
// address. The mappings survive the switch: the stores of the lab choose the ports, and keep them.
#include <core.p4>
#include <v1model.p4>
#include "../common/packet.p4"

header tcp_h {
    bit<16> src;
    bit<16> dst;
    bit<32> sequence;
    bit<32> acknowledgement;
    bit<4> data_offset;
    bit<12> flags;
    bit<16> window;
    bit<16> checksum;
    bit<16> urgent;
}

header udp_h {
    bit<16> src;
    bit<16> dst;
    bit<16> length;
    bit<16> checksum;
}

struct headers_t {
    ethernet_h ethernet;
    ipv4_h ipv4;
    tcp_h tcp;
    udp_h udp;
}

struct metadata_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> payload;
}

parser NatParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        meta.payload = hdr.ipv4.total_length - 20;
        transition select(hdr.ipv4.ihl, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (5, 0, PROTOCOL_TCP): parse_tcp;
            (5, 0, PROTOCOL_UDP): parse_udp;
            default: accept;
        }
    }

    state parse_tcp {
        packet.extract(hdr.tcp);
        meta.src_port = hdr.tcp.src;
        meta.dst_port = hdr.tcp.dst;
        transition accept;
    }

    state parse_udp {
        packet.extract(hdr.udp);
        meta.src_port = hdr.udp.src;
        meta.dst_port = hdr.udp.dst;
        transition accept;
    }
}

control NatVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control NatIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    ip_t public_address = 0;
    bool is_from_inside = false;
    bool is_other = false;

    action drop() {
        mark_to_drop(standard);
    }

    action from_inside(port_t port, mac_t own, mac_t next, ip_t address) {
        is_from_inside = true;
        public_address = address;
        standard.egress_spec = port;
        hdr.ethernet.src = own;
        hdr.ethernet.dst = next;
    }

    action from_outside(port_t port, mac_t own, mac_t next, ip_t address) {
        public_address = address;
        standard.egress_spec = port;
        hdr.ethernet.src = own;
        hdr.ethernet.dst = next;
    }

    // The side that a packet comes from, and the way to the other side.
    table sides {
        key = { standard.ingress_port: exact; }
        actions = { from_inside; from_outside; drop; }
        default_action = drop();
    }

    action translate_source(bit<16> port) {
        hdr.ipv4.src = public_address;
        meta.src_port = port;
    }

    action translate_destination(bit<8> protocol, ip_t address, bit<16> port) {
        hdr.ipv4.dst = address;
        meta.dst_port = port;
        is_other = protocol != hdr.ipv4.protocol;
    }

    // The first packet of a flow from inside creates a mapping, with a port that no other one has. It ends after five
    // minutes without a packet in any direction.
    @resilient[pool = "1024-65535", idle = "300s"]
    table outbound {
        key = { hdr.ipv4.protocol: exact; hdr.ipv4.src: exact; meta.src_port: exact; }
        actions = { translate_source; drop; }
        default_action = drop();
    }

    // The same mappings by their ports. Other packets from outside are dropped.
    @resilient[reverse = "outbound"]
    table inbound {
        key = { meta.dst_port: exact; }
        actions = { translate_destination; drop; }
        default_action = drop();
    }

    apply {
        if (standard.parser_error != error.NoError || standard.checksum_error == 1
            || !(hdr.tcp.isValid() || hdr.udp.isValid()) || hdr.ipv4.ttl <= 1) {
            drop();
            return;
        }
        if (!sides.apply().hit) {
            return;
        }
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        if (is_from_inside) {
            outbound.apply();
        } else if (hdr.ipv4.dst == public_address) {
            inbound.apply();
            if (is_other) {
                // The port is mapped for the other protocol.
                drop();
            }
        } else {
            drop();
        }
        if (hdr.tcp.isValid()) {
            hdr.tcp.src = meta.src_port;
            hdr.tcp.dst = meta.dst_port;
        } else {
            hdr.udp.src = meta.src_port;
            hdr.udp.dst = meta.dst_port;
        }
    }
}

control NatEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control NatUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum_with_payload(hdr.tcp.isValid(),
            { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, meta.payload, hdr.tcp.src, hdr.tcp.dst,
              hdr.tcp.sequence, hdr.tcp.acknowledgement, hdr.tcp.data_offset, hdr.tcp.flags, hdr.tcp.window,
              hdr.tcp.urgent },
            hdr.tcp.checksum, HashAlgorithm.csum16);
        update_checksum_with_payload(hdr.udp.isValid() && hdr.udp.checksum != 0,
            { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, meta.payload, hdr.udp.src, hdr.udp.dst,
              hdr.udp.length },
            hdr.udp.checksum, HashAlgorithm.csum16);
    }
}

control NatDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.tcp);
        packet.emit(hdr.udp);
    }
}

V1Switch(NatParser(), NatVerify(), NatIngress(), NatEgress(), NatUpdate(), NatDeparser()) main;
