#include <v1model.p4>
#define target 5
# define stock_value(x) x
#define harmless 3
typedef bit<8> subscription_t;
// Subscriptions is no name here, /* nor is SubscriptionsVerify, */ "nor is SubscriptionsCompute".
const bit<8> SubscriptionsDeparser = 1;
header a_t { @query_field("price") bit<32> price; @query_field_exact("stock") bit<8> stock; }
@query_counter(seen)
@query_aggregate("count()")
struct headers_t { a_t a; }
struct metadata_t { bit<8> subscription; }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.a); transition accept; }
}
@query_action action leaf(inout headers_t hdr, bit<8> value) { hdr.a.stock = value; }
@query_action action price_value(inout headers_t hdr) { hdr.a.stock = 1; }
@query_action action drop(inout headers_t hdr) { hdr.a.stock = 2; }
@query_action @name("other") action named(inout headers_t hdr) { hdr.a.stock = 3; }
@query_action action update_seen(inout headers_t hdr) { hdr.a.stock = 4; }
@query_action action first(inout headers_t hdr) { hdr.a.stock = 5; }
control a_valid(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { hdr.a.stock = 6; } }
@query_egress control Subscriptions(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { hdr.a.stock = 7; } }
