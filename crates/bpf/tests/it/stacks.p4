#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> target;
    bit<48> source;
    bit<16> kind;
}

header tag_t {
    bit<16> label;
    bit<16> kind;
}

header label_t {
    bit<20> label;
    bit<3>  class;
    bit<1>  is_last;
    bit<8>  ttl;
}

struct headers_t {
    ethernet_t ethernet;
    tag_t[3]   tags;
    label_t[4] labels;
}

struct metadata_t {
    bit<32> count;
    bit<16> last;
    bit<20> sum;
}

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.kind) { 0x8100: tag; 0x8847: label; default: accept; }
    }
    state tag {
        packet.extract(hdr.tags.next);
        meta.last = hdr.tags.last.label;
        transition select(hdr.tags.last.kind, hdr.tags.lastIndex) {
            (0x8100, _): tag;
            (0x8847, 0 .. 1): label;
            default: accept;
        }
    }
    state label {
        packet.extract(hdr.labels.next);
        meta.sum = meta.sum + hdr.labels.last.label;
        meta.count = hdr.labels.lastIndex;
        transition select(hdr.labels.last.is_last) { 0: label; default: accept; }
    }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action swap(bit<20> label) { hdr.labels[0].label = label; }
    action pop() { hdr.labels.pop_front(1); }
    action push(bit<20> label) {
        hdr.labels.push_front(1);
        hdr.labels[0] = { label, 0, 0, 64 };
        hdr.labels[0].is_last = hdr.labels[1].isValid() ? 1w0 : 1w1;
    }
    table labels {
        key = { hdr.labels[0].label: exact; hdr.labels[1].isValid(): exact; }
        actions = { swap; pop; push; NoAction; }
        default_action = NoAction();
    }
    apply {
        standard.egress_spec = (bit<9>) (meta.count & 3);
        if (hdr.labels[0].isValid()) {
            labels.apply();
        }
        if (hdr.tags[1].isValid()) {
            hdr.tags.pop_front(1);
            hdr.tags[0].label = meta.last;
        } else if (!hdr.tags[0].isValid() && standard.parser_error == error.NoError) {
            hdr.tags.push_front(1);
            hdr.tags[0].setValid();
            hdr.tags[0].label = (bit<16>) meta.sum;
            hdr.tags[0].kind = hdr.ethernet.kind;
            hdr.ethernet.kind = 0x8100;
        }
        if (standard.parser_error == error.StackOutOfBounds) {
            standard.egress_spec = 4;
        }
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }

control MyCompute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.tags);
        packet.emit(hdr.labels);
    }
}

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
