#include <v1model.p4>
@query_sise("2")
header a_t {
    @query_field bit<8> one;
    @query_feild bit<8> two;
    @query_counter(total) bit<8> three;
    @query_field("pr-ice") bit<8> four;
    @query_field(5) bit<8> five;
}
@query_agregate("count()")
struct headers_t {
    @query_field a_t a;
}
struct metadata_t {
    @query_field bit<8> hidden;
}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { transition accept; }
}
@query_action
control Before(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply {} }
