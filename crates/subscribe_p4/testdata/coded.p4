// One message a packet: samples whose values are mapped onto codes before they are looked up.
#include <v1model.p4>

header sample_t {
    @query_field_exact
    bit<16> sensor;
    @query_codes(5) @query_field
    bit<32> level;
    @query_codes(6) @query_field_lpm("source") @format(IPV4_ADDRESS)
    bit<32> src;
    @query_field_range
    bit<8>  age;
}

struct headers_t {
    sample_t sample;
}

struct metadata_t {}

parser Samples(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.sample);
        transition accept;
    }
}
