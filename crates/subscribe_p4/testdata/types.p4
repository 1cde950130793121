// Fields of types of their own, and a struct of metadata with a brace before its first.
#include <v1model.p4>

type bit<9> port_t;
enum bit<8> kind_t {
    FIRST = 1,
    SECOND = 2
}

header report_t {
    @query_field_exact
    kind_t kind;
    @query_field
    port_t port;
    bit<7> pad;
}

struct headers_t {
    report_t report;
}

struct metadata_t /* { */ // {
{
}

parser Reports(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.report);
        transition accept;
    }
}
