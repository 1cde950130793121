#include <v1model.p4>
header a_t { @query_field("x") bit<8> x; }
header b_t { @query_field("x") bit<8> x; @query_field("y") bit<8> y; }
header c_t { @query_field("z") bit<8> z; }
header_union u_t { c_t one; }
struct headers_t { a_t a; b_t b; c_t a_or_b; u_t u; c_t u_one; }
struct metadata_t {}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.a); transition accept; }
}
@query_action action wide(inout headers_t hdr, bit<129> value) { hdr.a.x = value[7:0]; }
