#include <v1model.p4>
header a_t {
    @query_field @query_field_exact bit<8> twice;
    @query_field int<8> signed;
    @query_field bit<200> wide;
    @query_field_exact("same") bit<16> one;
    @query_field_exact("same") bit<16> two;
    @query_field_lpm @format(IPV4_ADDRESS) bit<31> address;
    @query_field(1 + 2) bit<8> odd;
}
header b_t {
    @query_field("same") bit<16> three;
}
@query_field(a.missing)
@query_field(3, 4)
@pragma query_field(a.missing)
struct headers_t { a_t a; b_t b; @query_messages[count = "a.one"] b_t c; }
struct metadata_t {}
@query_action
action give(inout bit<8> x, varbit<8> y) {}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { transition accept; }
}
control One(inout headers_t hdr, inout metadata_t meta) { apply {} }
control Two(inout headers_t hdr, inout metadata_t meta) { apply {} }
