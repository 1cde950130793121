// A router for IPv4 whose routes are rules: `dst in 10.1.2.0/24 : hop(02:00:00:00:00:22); fwd(2)`.
//
// This is the message format and the actions of a router; `triplane subscribe` adds the tables.
#include <v1model.p4>

// The router's own MAC address, the same on all ports.
const bit<48> OWN = 0x0200000000fe;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<4>      version;
    bit<4>      ihl;
    @query_field_exact("dscp")
    bit<6>      dscp;
    bit<2>      ecn;
    bit<16>     total_len;
    bit<16>     id;
    bit<3>      flags;
    bit<13>     offset;
    bit<8>      ttl;
    @query_field_exact("protocol")
    bit<8>      protocol;
    bit<16>     checksum;
    @query_field_lpm("src") @format(IPV4_ADDRESS)
    bit<32>     src;
    @query_field_lpm("dst") @format(IPV4_ADDRESS)
    bit<32>     dst;
    varbit<320> options;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
}

struct metadata_t {}

parser Packets(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.dst, hdr.ethernet.type) {
            (OWN, 0x800): ipv4;
            default: accept;
        }
    }
    state ipv4 {
        transition select(packet.lookahead<bit<8>>()) {
            0x45 .. 0x4f: with_length;
            default: accept;
        }
    }
    state with_length {
        packet.extract(hdr.ipv4, ((bit<32>)packet.lookahead<bit<8>>()[3:0] - 5) * 32);
        transition accept;
    }
}

@query_verify
control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_len, hdr.ipv4.id, hdr.ipv4.flags,
              hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.options },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

// Runs before the rules: invalidates the IPv4 header of packets that must not be forwarded, so that no rule matches.
control Arrival(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.ipv4.isValid() && (standard_metadata.checksum_error == 1 || hdr.ipv4.ttl < 2)) {
            hdr.ipv4.setInvalid();
        }
    }
}

// An action of rules: sets the next hop's address and decrements the TTL.
@query_action
action hop(inout headers_t hdr, bit<48> mac) {
    hdr.ethernet.dst = mac;
    hdr.ethernet.src = OWN;
    hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
}

control Compute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_len, hdr.ipv4.id, hdr.ipv4.flags,
              hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.options },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}
