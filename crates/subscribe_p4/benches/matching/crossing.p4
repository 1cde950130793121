// Three numbers a packet, and nothing that parts rules into groups.
#include <v1model.p4>

header point_t {
    @query_field
    bit<16> x;
    @query_field
    bit<16> y;
    @query_field
    bit<16> z;
}

struct headers_t {
    point_t point;
}

struct metadata_t {}

parser Points(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.point);
        transition accept;
    }
}
