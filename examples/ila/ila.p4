// Identifier-locator addressing over IPv6: the low half of an address says who, the high half where. Rules map
// identifiers to locators, and back at the last switch; all other packets are routed by prefix.
//
// Hosts use one prefix for all identifiers and never see a locator. Transport checksums cover the addresses that hosts
// see, so they are right again after the last switch.
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

// RFC 8200, section 3.
header ipv6_t {
    bit<4>  version;
    bit<8>  traffic_class;
    bit<20> flow_label;
    bit<16> payload_len;
    bit<8>  next_header;
    bit<8>  hop_limit;
    bit<128> src;
    @query_field_lpm("prefix")
    bit<64> dst_prefix;
    @query_field_exact("identifier")
    bit<64> dst_identifier;
}

struct headers_t {
    ethernet_t ethernet;
    ipv6_t     ipv6;
}

struct metadata_t {}

parser Packets(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x86dd: ipv6;
            default: accept;
        }
    }
    state ipv6 {
        packet.extract(hdr.ipv6);
        transition accept;
    }
}

// Applied before the rules: packets at their last hop are dropped, and no rule is asked.
control Check(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.ipv6.isValid() && hdr.ipv6.hop_limit <= 1) {
            mark_to_drop(standard_metadata);
            exit;
        }
    }
}

// An action of rules: replaces the high half of the destination, a locator or the prefix of all identifiers.
@query_action
action to_prefix(inout headers_t hdr, bit<64> prefix) {
    hdr.ipv6.dst_prefix = prefix;
}

// An action of rules: sends the packet to the next hop.
@query_action
action hop(inout headers_t hdr, bit<48> mac) {
    hdr.ethernet.src = hdr.ethernet.dst;
    hdr.ethernet.dst = mac;
    hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
}

// Routes what no rule delivers. It is called with packets that are marked to be dropped.
@query_fallback
control Route(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action via(bit<48> mac, bit<9> port) {
        hdr.ethernet.src = hdr.ethernet.dst;
        hdr.ethernet.dst = mac;
        hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
        standard_metadata.egress_spec = port;
    }
    table routes {
        key = { hdr.ipv6.dst_prefix: lpm; }
        actions = { via; NoAction; }
        default_action = NoAction;
        const entries = {
            0x20010db8000a0000 &&& 0xffffffffffff0000: via(0x02000000000a, 1);    // 2001:db8:a::/48
            0x20010db8000b0000 &&& 0xffffffffffff0000: via(0x02000000000b, 2);    // 2001:db8:b::/48
        }
    }
    apply {
        if (hdr.ipv6.isValid()) {
            routes.apply();
        }
    }
}
