#include <v1model.p4>
header a_t { @query_field bit<8> value; }
struct headers_t { a_t a; }
struct metadata_t { bit<1> unused; }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.a); transition accept; }
}
@query_fallback
control Bridge(inout headers_t hdr, inout standard_metadata_t sm) { apply {} }
@query_egress
control Leaving(inout headers_t hdr, inout metadata_t meta) { apply {} }
@query_verify
control Checking(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply {} }
