// A market data feed (ITCH 5.0 in MoldUDP64) beside IPv4 routing: new orders and trades are delivered by rules, and the
// control `Route` forwards everything else.
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> total_len;
    bit<16> id;
    bit<3>  flags;
    bit<13> offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header udp_t {
    bit<16> src;
    bit<16> dst;
    bit<16> length;
    bit<16> checksum;
}

header mold_t {
    bit<80> session;
    bit<64> sequence;
    bit<16> count;
}

// A new order (`A`).
header add_order_t {
    bit<16> length;
    @query_field_exact("kind") @format(TEXT)
    bit<8>  kind;
    bit<16> locate;
    bit<16> tracking;
    bit<48> timestamp;
    bit<64> order;
    bit<8>  side;
    @query_field("shares")
    bit<32> shares;
    @query_field_exact("stock") @format(TEXT)
    bit<64> stock;
    @query_field("price")
    bit<32> price;
}

// Any other message.
@query_size("2 + length")
header other_t {
    bit<16> length;
    @query_field_exact("kind") @format(TEXT)
    bit<8>  kind;
    varbit<2040> body;
}

header_union message_t {
    add_order_t add_order;
    other_t     other;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
    mold_t     mold;
    @query_messages[count = "mold.count", sequence = "mold.sequence", session = "mold.session",
                    lengths = "ipv4.total_len, udp.length", clear = "udp.checksum"]
    message_t[12] messages;
}

struct metadata_t {
    bit<16> left;
}

struct start_t {
    bit<16> length;
    bit<8>  kind;
}

parser Packets(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x800: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        // The feed is what is sent to this group and port. Requests for retransmission, for example, are not.
        transition select(hdr.ipv4.ihl, hdr.ipv4.protocol, hdr.ipv4.offset, hdr.ipv4.dst) {
            (5, 17, 0, 0xef010101): udp;
            default: accept;
        }
    }
    state udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst) {
            26400: mold;
            default: accept;
        }
    }
    state mold {
        packet.extract(hdr.mold);
        meta.left = hdr.mold.count;
        transition select(hdr.mold.count) {
            0: accept;
            0xffff: accept;
            1 .. 12: message;
            default: more;
        }
    }
    // The stack holds 12 messages; the rest are parsed after recirculation.
    state more {
        meta.left = 12;
        transition message;
    }
    state message {
        start_t next = packet.lookahead<start_t>();
        transition select(next.length, next.kind) {
            (36, 0x41): add_order;
            (1 .. 255, _): other;
            default: accept;
        }
    }
    state add_order {
        packet.extract(hdr.messages.next.add_order);
        transition behind;
    }
    state other {
        packet.extract(hdr.messages.next.other, (bit<32>)(packet.lookahead<bit<16>>() - 1) << 3);
        transition behind;
    }
    state behind {
        meta.left = meta.left - 1;
        transition select(meta.left) {
            0: accept;
            default: message;
        }
    }
}

// Forwards what is not the feed. It is called with packets that are marked to be dropped.
@query_fallback
control Route(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action hop(bit<48> mac, bit<9> port) {
        hdr.ethernet.src = hdr.ethernet.dst;
        hdr.ethernet.dst = mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        standard_metadata.egress_spec = port;
    }
    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { hop; NoAction; }
        default_action = NoAction;
        const entries = {
            0x0a000000 &&& 0xffffff00: hop(0x020000000001, 1);    // 10.0.0.0/24, the exchange
            0x0a000200 &&& 0xffffff00: hop(0x020000000002, 2);    // 10.0.2.0/24, the fund
            0x0a000300 &&& 0xffffff00: hop(0x020000000003, 3);    // 10.0.3.0/24, the desk
        }
    }
    apply {
        if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1) {
            routes.apply();
        }
    }
}

control Compute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_len, hdr.ipv4.id, hdr.ipv4.flags,
              hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}
