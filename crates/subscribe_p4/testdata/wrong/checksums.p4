#include <v1model.p4>
@query_size("8 + version")
header top_t { bit<8> version; bit<16> odd; varbit<32> options; bit<16> sum; bit<8> count; }
@query_size("3 + count")
header late_t { bit<16> sum; bit<8> count; varbit<32> options; bit<16> length; }
header last_t { bit<16> length; }
header item_t { @query_field bit<8> value; }
struct headers_t {
    top_t top;
    late_t late;
    last_t last;
    @query_messages[count = "top.count", lengths = "last.length", checksum = "top.odd"]
    item_t[4] items;
    @query_messages[count = "top.count", lengths = "last.length", checksum = "top.sum"]
    item_t[4] more;
    @query_messages[count = "late.count", lengths = "late.length, last.length", checksum = "late.sum"]
    item_t[4] others;
    @query_messages[count = "top.count", lengths = "last.length", checksum = "top.count"]
    item_t[4] others_still;
}
struct metadata_t {}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { transition accept; }
}
