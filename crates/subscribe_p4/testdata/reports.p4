// One message a packet: reports of a switch's latency.
#include <v1model.p4>

header report_t {
    @query_field_exact
    bit<16> switch_id;
    @query_field
    bit<32> hop_latency;
    @query_field_lpm("source") @format(IPV4_ADDRESS)
    bit<32> src;
}

header note_t {
    @query_field_lpm("source") @format(IPV4_ADDRESS)
    bit<32> src;
    bit<8>  mark;
}

struct headers_t {
    report_t report;
    note_t   note;
}

struct metadata_t {}

@query_action
action mark(inout headers_t hdr, bit<8> value) {
    hdr.note.mark = value;
}

parser Reports(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        transition select(packet.lookahead<bit<8>>()) {
            1: note;
            default: report;
        }
    }
    state note {
        packet.extract(hdr.note);
        transition accept;
    }
    state report {
        packet.extract(hdr.report);
        transition accept;
    }
}
