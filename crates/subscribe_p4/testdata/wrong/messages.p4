#include <v1model.p4>
header top_t { bit<8> count; bit<16> length; varbit<32> options; }
header item_t { @query_field bit<8> value; bit<4> odd; }
header text_t { bit<8> length; varbit<64> body; }
@query_size("1 + size ; 2")
header sized_t { bit<8> length; varbit<64> body; }
header_union one_t { item_t item; text_t text; sized_t sized; }
struct headers_t {
    top_t top;
    @query_messages[count = "top.count", lengths = "top.length", clear = "nothing", other = "top.count"]
    one_t[4] items;
    @query_messages
    item_t[2] again;
}
struct metadata_t {}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { transition accept; }
}
