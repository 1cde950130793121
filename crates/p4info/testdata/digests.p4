/* Digests by name of their type, once each; those without a name are numbered. */

#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> kind;
}
struct learned_t {
    bit<48> source;
    @name("from") bit<9> port;
    ethernet_t whole;
}
@name("renamed_t")
struct other_t {
    error reason;
    bool flag;
}

struct headers_t {
    ethernet_t ethernet;
}
struct meta_t {}

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        transition accept;
    }
}

control Nothing(inout headers_t hdr, inout meta_t meta) {
    apply {}
}

control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    action learn() {
        digest<learned_t>(1, { hdr.ethernet.source, standard.ingress_port, hdr.ethernet });
    }
    action learn_too() {
        learn();
        digest<other_t>(1, { standard.parser_error, true });
    }
    table learning {
        key = { hdr.ethernet.source: exact; }
        actions = { learn; learn_too; }
        default_action = learn();
    }
    apply {
        learning.apply();
        digest(2, { hdr.ethernet.source, standard.ingress_port });
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {}
}

control D(packet_out packet, in headers_t hdr) {
    apply {}
}

V1Switch(P(), Nothing(), C(), E(), Nothing(), D()) main;
