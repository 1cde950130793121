// One message a packet: readings of meters, with everything that rules can ask of messages before.
#include <v1model.p4>

header reading_t {
    bit<8>  kind;
    @query_field_exact("site")
    bit<16> site;
    @query_field("value")
    bit<32> value;
    @query_field("large")
    bit<72> large;
}

header extra_t {
    @query_field_exact("unit") @format(TEXT)
    bit<8>  unit;
    @query_field("weight")
    bit<8>  weight;
}

@query_counter(total)
@query_counter(lately, 40)
@query_counter("few", "3 packets")
@query_aggregate("avg(value) by site over 60us", 8, 2)
@query_aggregate("count() by site, unit over 4 packets", 64)
@query_aggregate("sum(large) over 100us", 1, 2)
@query_aggregate("min(value) by unit over 50us")
@query_aggregate("max(weight) over 5 packets")
@query_aggregate("count(over 30us)")
@query_aggregate("avg(value) by site over previous 60us", 8)
@query_aggregate("min(weight) over previous 3 packets")
@query_aggregate("ewma(value) by site over 4 packets", 8)
@query_aggregate("ewma(large) over 2 packets")
@query_aggregate("avg(weight)")
@query_aggregate("min(value) by unit over all")
@query_aggregate("max(value) by unit over all")
@query_aggregate("sum(value) over previous 25us")
struct headers_t {
    reading_t reading;
    extra_t   extra;
}

struct metadata_t {
}

parser Meters(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.reading);
        transition select(hdr.reading.kind) {
            1: extra;
            default: accept;
        }
    }
    state extra {
        packet.extract(hdr.extra);
        transition accept;
    }
}
