#include <v1model.p4>
#define OPEN {
header a_t { @query_field bit<8> x; }
struct headers_t { a_t a; }
struct metadata_t OPEN }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.a); transition accept; }
}
