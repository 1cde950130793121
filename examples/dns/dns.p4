// Queries to a name server (RFC 1035, over UDP and IPv4), and an action that answers them.
//
// This is the message format and the actions on queries; `triplane subscribe` adds the tables.
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
    @query_field_exact("src_port")
    bit<16> src;
    @query_field_exact("dst_port")
    bit<16> dst;
    bit<16> length;
    bit<16> checksum;
}

// RFC 1035, section 4.1.1; `ad` and `cd` are RFC 4035's.
header dns_t {
    bit<16> id;
    bit<1>  qr;
    bit<4>  opcode;
    bit<1>  aa;
    bit<1>  tc;
    bit<1>  rd;
    bit<1>  ra;
    bit<1>  z;
    bit<1>  ad;
    bit<1>  cd;
    bit<4>  rcode;
    bit<16> qdcount;
    bit<16> ancount;
    bit<16> nscount;
    bit<16> arcount;
}

// A label of a name: its length, and its 1 to 15 bytes in pieces of 8, 4, 2 and 1 bytes by the bits of the length.
header length_t { bit<8>  value; }
header eight_t  { bit<64> bytes; }
header four_t   { bit<32> bytes; }
header two_t    { bit<16> bytes; }
header one_t    { bit<8>  bytes; }

struct label_t {
    length_t length;
    eight_t  eight;
    four_t   four;
    two_t    two;
    one_t    one;
}

// Follows the labels: the root label, which ends a name, and the rest of the question.
header question_t {
    bit<8>  root;
    @query_field_exact("type")
    bit<16> type;
    bit<16> class;
}

// The queried name in the form that rules test: lower case, labels padded with spaces. It is not part of the packet.
header name_t {
    @query_field_exact("host") @format(TEXT)
    bit<128> host;
    @query_field_exact("domain") @format(TEXT)
    bit<128> domain;
    @query_field_exact("tld") @format(TEXT)
    bit<128> tld;
}

// Section 4.1.3, a resource record with an address (section 3.4.1).
header answer_t {
    bit<16> name;
    bit<16> type;
    bit<16> class;
    bit<32> ttl;
    bit<16> rdlength;
    bit<32> address;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
    dns_t      dns;
    label_t    first;
    label_t    second;
    label_t    third;
    question_t question;
    answer_t   answer;
    name_t     name;
}

struct metadata_t {
    bit<16> labels;     // bytes of the labels
}

const bit<128> SPACES = 0x20202020202020202020202020202020;

// Lower-case letters, digits and the hyphen have the bit of a space set. Setting it in every byte yields the form that
// rules compare with: lower-case letters, padded with spaces.
parser Label(packet_in packet, out label_t label, inout bit<16> labels, out bit<128> text) {
    state start {
        packet.extract(label.length);
        text = 0;
        labels = labels + 1 + (bit<16>)label.length.value;
        transition select(label.length.value[3:3]) {
            1: eight;
            default: below_eight;
        }
    }
    state eight {
        packet.extract(label.eight);
        text = (bit<128>)label.eight.bytes;
        transition below_eight;
    }
    state below_eight {
        transition select(label.length.value[2:2]) {
            1: four;
            default: below_four;
        }
    }
    state four {
        packet.extract(label.four);
        text = text << 32 | (bit<128>)label.four.bytes;
        transition below_four;
    }
    state below_four {
        transition select(label.length.value[1:1]) {
            1: two;
            default: below_two;
        }
    }
    state two {
        packet.extract(label.two);
        text = text << 16 | (bit<128>)label.two.bytes;
        transition below_two;
    }
    state below_two {
        transition select(label.length.value[0:0]) {
            1: one;
            default: end;
        }
    }
    state one {
        packet.extract(label.one);
        text = text << 8 | (bit<128>)label.one.bytes;
        transition end;
    }
    state end {
        text = text << ((16 - label.length.value) << 3) | SPACES;
        transition accept;
    }
}

// Only a plain question for a name of up to three labels has `name`; rules on names do not match other queries.
parser Queries(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bit<128> host = SPACES;
    bit<128> domain = SPACES;
    bit<128> tld = SPACES;
    Label() label;

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
        transition select(hdr.udp.dst) {
            53: dns;
            default: accept;
        }
    }
    state dns {
        packet.extract(hdr.dns);
        meta.labels = 0;
        transition select(hdr.dns.qr, hdr.dns.opcode, hdr.dns.qdcount, hdr.dns.ancount, hdr.dns.nscount) {
            (0, 0, 1, 0, 0): question;
            default: accept;
        }
    }
    state question {
        transition select(packet.lookahead<bit<8>>()) {
            1 .. 15: first;
            default: accept;
        }
    }
    state first {
        label.apply(packet, hdr.first, meta.labels, tld);
        transition select(packet.lookahead<bit<8>>()) {
            0: root;
            1 .. 15: second;
            default: accept;
        }
    }
    state second {
        domain = tld;
        label.apply(packet, hdr.second, meta.labels, tld);
        transition select(packet.lookahead<bit<8>>()) {
            0: root;
            1 .. 15: third;
            default: accept;
        }
    }
    state third {
        host = domain;
        domain = tld;
        label.apply(packet, hdr.third, meta.labels, tld);
        transition select(packet.lookahead<bit<8>>()) {
            0: root;
            default: accept;
        }
    }
    state root {
        packet.extract(hdr.question);
        transition select(hdr.question.class) {
            1: named;
            default: accept;
        }
    }
    state named {
        hdr.name.setValid();
        hdr.name.host = host;
        hdr.name.domain = domain;
        hdr.name.tld = tld;
        transition accept;
    }
}

// An action of rules: turns the query into its answer, with one address, and returns it to its sender.
@query_action
action answer(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
              bit<32> address, bit<32> ttl) {
    bit<48> mac = hdr.ethernet.dst;
    hdr.ethernet.dst = hdr.ethernet.src;
    hdr.ethernet.src = mac;
    bit<32> ip = hdr.ipv4.dst;
    hdr.ipv4.dst = hdr.ipv4.src;
    hdr.ipv4.src = ip;
    bit<16> port = hdr.udp.dst;
    hdr.udp.dst = hdr.udp.src;
    hdr.udp.src = port;

    hdr.dns.qr = 1;
    hdr.dns.aa = 1;
    hdr.dns.tc = 0;
    hdr.dns.ra = 0;
    hdr.dns.z = 0;
    hdr.dns.ad = 0;
    hdr.dns.rcode = 0;
    hdr.dns.ancount = 1;
    // Records after the question (EDNS, RFC 6891) are cut off, as by a server that does not support them.
    hdr.dns.arcount = 0;
    hdr.answer.setValid();
    hdr.answer.name = 0xc00c;   // compressed: the name at byte 12, the question's
    hdr.answer.type = 1;
    hdr.answer.class = 1;
    hdr.answer.ttl = ttl;
    hdr.answer.rdlength = 4;
    hdr.answer.address = address;

    hdr.udp.length = 8 + 12 + meta.labels + 5 + 16;
    hdr.udp.checksum = 0;       // none; optional over IPv4 (RFC 768)
    hdr.ipv4.total_len = 20 + hdr.udp.length;
    hdr.ipv4.ttl = 64;
    truncate(14 + (bit<32>)hdr.ipv4.total_len);
    standard_metadata.egress_spec = standard_metadata.ingress_port;
    standard_metadata.mcast_grp = 0;
}

control Compute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.answer.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_len, hdr.ipv4.id, hdr.ipv4.flags,
              hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

// All headers except `name`.
control Emit(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.dns);
        packet.emit(hdr.first);
        packet.emit(hdr.second);
        packet.emit(hdr.third);
        packet.emit(hdr.question);
        packet.emit(hdr.answer);
    }
}
