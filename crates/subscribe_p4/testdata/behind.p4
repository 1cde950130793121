// One header behind the other.
#include <v1model.p4>

header h_t {
    bit<4> tag;
    @query_field("a")
    bit<4> a;
    @query_field_lpm("b")
    bit<4> b;
    @query_field_exact("c")
    bit<4> c;
}

header g_t {
    @query_field("d")
    bit<8> d;
}

struct headers_t {
    h_t h;
    g_t g;
}

struct metadata_t {}

parser Behind(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.tag) {
            1: g;
            default: accept;
        }
    }
    state g {
        packet.extract(hdr.g);
        transition accept;
    }
}
