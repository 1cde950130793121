#include <v1model.p4>
header top_t { bit<8> count; bit<32> number; bit<16> length; bit<136> name; bit<8> short; }
header item_t { @query_field bit<8> value; }
struct headers_t {
    top_t top;
    @query_messages[count = "top.count", session = "top.short", lengths = "top.length"]
    item_t[4] items;
    @query_messages[count = "top.count", sequence = "top.number", session = "top.short", streams = 3, lengths = "top.length"]
    item_t[4] others;
    @query_messages[count = "top.count", sequence = "top.number", session = "top.number, top.short", lengths = "top.length"]
    item_t[4] more;
    @query_messages[count = "top.count", sequence = "top.number", streams = 8, lengths = "top.length"]
    item_t[4] rest;
    @query_messages[count = "top.count", sequence = "top.number", session = "top.name", lengths = "top.length"]
    item_t[4] last;
    @query_messages[count = "top.count", sequence = "top.number", arbitrate = 100]
    item_t[65] none;
    @query_messages[count = "top.count", sequence = "top.number", session = "top.short", streams = 4096, arbitrate = 1048576]
    item_t[65] large;
    @query_messages[count = "top.count", sequence = "top.number", arbitrate = 4096]
    item_t[4] alone;
}
struct metadata_t {}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { transition accept; }
}
