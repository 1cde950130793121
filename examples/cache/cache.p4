// A key-value store over UDP with keys of 16 bytes and values of 64 bits, and an action that answers for its server.
//
// This is the message format and the actions on requests; `triplane subscribe` adds the tables.
#include <v1model.p4>

const bit<16> STORE_PORT = 9700;

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

// `G` gets the value of a key, `P` puts one; `V` is the answer to both, with the value that the key then has.
header store_t {
    @query_field_exact("op") @format(TEXT)
    bit<8>   op;
    bit<32>  request;           // number chosen by the client; the answer repeats it
    @query_field_exact("key") @format(TEXT)
    bit<128> key;
}

// Follows `P` and `V`.
header value_t {
    @query_field("value")
    bit<64> number;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
    store_t    store;
    value_t    value;
}

struct metadata_t {
    bool answered;
}

parser Requests(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x800: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.protocol, hdr.ipv4.flags[0:0], hdr.ipv4.offset) {
            (5, 17, 0, 0): udp;
            default: accept;
        }
    }
    state udp {
        packet.extract(hdr.udp);
        // Port and length determine the message: 8 bytes of UDP, 21 of the store's header, and 8 of a value.
        transition select(hdr.udp.src, hdr.udp.dst, hdr.udp.length, packet.lookahead<bit<8>>()) {
            (_, STORE_PORT, 29, 0x47): store;
            (_, STORE_PORT, 37, 0x50): store;
            (STORE_PORT, _, 37, 0x56): store;
            default: accept;
        }
    }
    state store {
        packet.extract(hdr.store);
        transition select(hdr.store.op) {
            0x47: accept;
            default: value;
        }
    }
    state value {
        packet.extract(hdr.value);
        transition accept;
    }
}

// An action of rules: turns the request into its answer and returns it to its sender.
@query_action
action answer(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata, bit<64> number) {
    bit<48> mac = hdr.ethernet.dst;
    hdr.ethernet.dst = hdr.ethernet.src;
    hdr.ethernet.src = mac;
    bit<32> ip = hdr.ipv4.dst;
    hdr.ipv4.dst = hdr.ipv4.src;
    hdr.ipv4.src = ip;
    bit<16> port = hdr.udp.dst;
    hdr.udp.dst = hdr.udp.src;
    hdr.udp.src = port;

    meta.answered = true;
    hdr.store.op = 0x56;
    hdr.value.setValid();
    hdr.value.number = number;

    hdr.udp.length = 37;
    hdr.ipv4.total_len = 57;
    hdr.ipv4.ttl = 64;
    truncate(71);               // with 14 bytes of Ethernet, without padding
    standard_metadata.egress_spec = standard_metadata.ingress_port;
    standard_metadata.mcast_grp = 0;
}

// Both checksums of the switch's answers. Forwarded packets keep theirs, right or wrong.
control Compute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(meta.answered,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_len, hdr.ipv4.id, hdr.ipv4.flags,
              hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
        update_checksum(meta.answered,
            { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, hdr.udp.length, hdr.udp.src, hdr.udp.dst, hdr.udp.length,
              hdr.store.op, hdr.store.request, hdr.store.key, hdr.value.number },
            hdr.udp.checksum, HashAlgorithm.csum16);
    }
}
