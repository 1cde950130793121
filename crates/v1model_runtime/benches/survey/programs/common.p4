// Headers, checksums and deparser of the survey's programs.
#include <core.p4>
#include <v1model.p4>

header ethernet_h {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_h {
    bit<4>  version;
    bit<4>  ihl;
    bit<6>  dscp;
    bit<2>  ecn;
    bit<16> total_length;
    bit<16> identification;
    bit<3>  flags;
    bit<13> fragment_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header udp_h {
    bit<16> src;
    bit<16> dst;
    bit<16> length;
    bit<16> checksum;
}

struct metadata_t {
    @field_list(1) bit<8> turns;
    @field_list(1) bit<16> tag;
    bit<32> scratch;
}

#define VERIFIES(NAME, HEADERS) \
control NAME(inout HEADERS hdr, inout metadata_t meta) { apply {} }

#define UPDATES(NAME, HEADERS) \
control NAME(inout HEADERS hdr, inout metadata_t meta) { \
    apply { \
        update_checksum(hdr.ipv4.isValid(), \
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length, \
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, \
              hdr.ipv4.src, hdr.ipv4.dst }, \
            hdr.ipv4.checksum, HashAlgorithm.csum16); \
    } \
}

#define EMITS(NAME, HEADERS) \
control NAME(packet_out packet, in HEADERS hdr) { apply { packet.emit(hdr); } }

#define IPV4_HEADERS struct headers_t { ethernet_h ethernet; ipv4_h ipv4; udp_h udp; }

#define IPV4_PARSER \
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { \
    state start { \
        packet.extract(hdr.ethernet); \
        transition select(hdr.ethernet.type) { \
            0x800: ipv4; \
            default: accept; \
        } \
    } \
    state ipv4 { \
        packet.extract(hdr.ipv4); \
        transition select(hdr.ipv4.protocol) { \
            17: udp; \
            default: accept; \
        } \
    } \
    state udp { \
        packet.extract(hdr.udp); \
        transition accept; \
    } \
}

#define IPV4_REST \
VERIFIES(Verify, headers_t) \
UPDATES(Update, headers_t) \
EMITS(Emit, headers_t)

#define IPV4_SWITCH V1Switch(P(), Verify(), MainIngress(), MainEgress(), Update(), Emit()) main;
