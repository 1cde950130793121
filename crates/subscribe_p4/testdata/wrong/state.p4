#include <v1model.p4>
header a_t {
    @query_field("value") bit<32> value;
    @query_field_exact("name") @format(TEXT) bit<32> name;
    @query_field("price") bit<8> price; @query_field bit<8> size; @query_field("in") bit<8> inner; @query_field("slot_1") bit<8> slot;
}
@query_counter(value)
@query_counter("two words")
@query_counter(seen)
@query_counter(seen, 7)
@query_counter(papers, 100, 1024)
@query_counter(never, "0 packets")
@query_counter(forever, 140737488355328)
@query_aggregate()
@query_aggregate("avg(prize) by name over 1s")
@query_aggregate("avg(name)")
@query_aggregate("value")
@query_aggregate("count() == 3")
@query_aggregate("count() by name", 0)
@query_aggregate("count() by name", 2000000)
@query_aggregate("count() by price", 1, 65)
@query_aggregate("sum(price) over 2s")
@query_aggregate("sum(price)")
@query_aggregate("count() over 140737489 s")
@query_counter(and)
@query_counter(count)
@query_counter(slot_0)
@query_counter("kept_seen")
@query_counter("b")
@query_counter(update)
@query_counter(size)
@query_aggregate("count() by name, price", 1000000, 20)
@query_aggregate("sum(value) over 1000ms")
@query_aggregate("sum(value over 1s)")
struct headers_t { a_t a; }
struct metadata_t {}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.a); transition accept; }
}
