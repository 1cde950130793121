#include <v1model.p4>
header a_t { bit<8> x; }
struct headers_t { a_t a; }
struct metadata_t {}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { transition accept; }
}
