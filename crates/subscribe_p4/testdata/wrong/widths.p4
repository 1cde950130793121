#include <v1model.p4>
header top_t { bit<32> count; bit<80> number; bit<40> length; bit<8> sum; }
header item_t { @query_field bit<8> value; }
struct headers_t {
    top_t top;
    @query_messages[count = "top.count", sequence = "top.number", lengths = "top.length", checksum = "top.sum"]
    item_t[4] items;
}
struct metadata_t {}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { transition accept; }
}
