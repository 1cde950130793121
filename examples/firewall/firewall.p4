// A router that admits only answers. A packet from inside sets two bits of a Bloom filter, at
// positions given by two hashes of the flow. A packet from outside must find both set. A flow is two
// addresses, a protocol and two ports, seen from inside.
//
// Bits are never cleared: the fuller the filter, the more likely a false positive. A controller that clears
// the registers periodically closes idle flows; active ones open again with their next packet from inside.

#include <core.p4>
#include <v1model.p4>
#include "../common/packet.p4"

const bit<32> BITS = 65536;

struct headers_t {
    ethernet_h ethernet;
    ipv4_h ipv4;
    ports_h ports;
}

struct metadata_t {}

parser FirewallParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (5, 0, PROTOCOL_TCP): parse_ports;
            (5, 0, PROTOCOL_UDP): parse_ports;
            default: accept;
        }
    }

    state parse_ports {
        packet.extract(hdr.ports);
        transition accept;
    }
}

control FirewallVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control FirewallIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<1>>(BITS) first;
    register<bit<1>>(BITS) second;

    bool from_inside = false;

    action inside() {
        from_inside = true;
    }

    action outside() {
        from_inside = false;
    }

    action unknown() {
        mark_to_drop(standard);
    }

    action stranger() {
        mark_to_drop(standard);
    }

    action forward(port_t port, mac_t own, mac_t next) {
        standard.egress_spec = port;
        hdr.ethernet.src = own;
        hdr.ethernet.dst = next;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    // Side of a port: outside by default.
    table zones {
        key = { standard.ingress_port: exact; }
        actions = { inside; outside; }
        default_action = outside();
    }

    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; unknown; }
        default_action = unknown();
    }

    apply {
        zones.apply();
        if (standard.parser_error != error.NoError || standard.checksum_error == 1 || !hdr.ipv4.isValid()
            || hdr.ipv4.ihl != 5 || hdr.ipv4.ttl <= 1) {
            unknown();
        } else {
            // A packet without ports stands for all traffic of its hosts in this protocol. Of fragments only
            // the first has ports, so the others are treated as foreign.
            bit<16> port_inside = 0;
            bit<16> port_outside = 0;
            if (hdr.ports.isValid()) {
                port_inside = from_inside ? hdr.ports.src : hdr.ports.dst;
                port_outside = from_inside ? hdr.ports.dst : hdr.ports.src;
            }
            ip_t ip_inside = from_inside ? hdr.ipv4.src : hdr.ipv4.dst;
            ip_t ip_outside = from_inside ? hdr.ipv4.dst : hdr.ipv4.src;
            bit<32> one;
            bit<32> other;
            hash(one, HashAlgorithm.crc32, 32w0,
                { ip_inside, ip_outside, hdr.ipv4.protocol, port_inside, port_outside }, BITS);
            hash(other, HashAlgorithm.crc16, 32w0,
                { ip_inside, ip_outside, hdr.ipv4.protocol, port_inside, port_outside }, BITS);
            if (from_inside) {
                first.write(one, 1);
                second.write(other, 1);
                routes.apply();
            } else {
                bit<1> seen_first;
                bit<1> seen_second;
                first.read(seen_first, one);
                second.read(seen_second, other);
                if (seen_first == 1 && seen_second == 1) {
                    routes.apply();
                } else {
                    stranger();
                }
            }
        }
    }
}

control FirewallEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control FirewallUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control FirewallDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(FirewallParser(), FirewallVerify(), FirewallIngress(), FirewallEgress(), FirewallUpdate(),
         FirewallDeparser()) main;
