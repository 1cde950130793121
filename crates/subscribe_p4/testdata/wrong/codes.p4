#include <v1model.p4>
header s_t { @query_codes(0) @query_field bit<32> a; @query_codes(3) @query_field_exact bit<16> b; @query_codes(9) @query_field bit<8> c; @query_codes @query_field bit<8> d; @query_codes(7) bit<8> e; }
struct headers_t { s_t s; }
struct metadata_t {}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) { state start { packet.extract(hdr.s); transition accept; } }
