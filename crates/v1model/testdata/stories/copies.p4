// Copies of packets: multicast, clones from ingress and from egress, resubmission, recirculation, truncation. The first
// byte says which; every packet leaves with a report of what egress saw.
#include <core.p4>
#include <v1model.p4>

header ask_t {
    bit<8> what;
    bit<8> port;
    bit<8> arg;
}

header seen_t {
    bit<8>  instance_type;
    bit<8>  rid;
    bit<8>  port;
    bit<8>  kept;
    bit<8>  lost;
    bit<16> length;
}

struct headers {
    ask_t  ask;
    seen_t seen;
}

struct metadata {
    @field_list(1)
    bit<8> kept;
    bit<8> lost;
}

const bit<8> MULTICAST = 1;
const bit<8> CLONE_INGRESS = 2;
const bit<8> CLONE_EGRESS = 3;
const bit<8> RESUBMIT = 4;
const bit<8> RECIRCULATE = 5;
const bit<8> TRUNCATE = 6;
const bit<8> RESUBMIT_FOR_EVER = 7;

const bit<32> INSTANCE_EGRESS_CLONE = 2;

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ask);
        transition accept;
    }
}

control V(inout headers hdr, inout metadata meta) { apply { } }

control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = (bit<9>) hdr.ask.port;
        meta.kept = meta.kept + 1;
        meta.lost = meta.lost + 1;
        if (hdr.ask.what == MULTICAST) {
            std.mcast_grp = (bit<16>) hdr.ask.arg;
        } else if (hdr.ask.what == CLONE_INGRESS) {
            clone_preserving_field_list(CloneType.I2E, (bit<32>) hdr.ask.arg, 1);
            // The clone is the packet as it came, and does not see this.
            hdr.ask.what = 0xff;
        } else if (hdr.ask.what == RESUBMIT && meta.kept < 3) {
            resubmit_preserving_field_list(1);
            hdr.ask.what = 0xff;
        } else if (hdr.ask.what == RESUBMIT_FOR_EVER) {
            resubmit_preserving_field_list(1);
        }
    }
}

control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        if (hdr.ask.what == CLONE_EGRESS && std.instance_type != INSTANCE_EGRESS_CLONE) {
            clone_preserving_field_list(CloneType.E2E, (bit<32>) hdr.ask.arg, 1);
        } else if (hdr.ask.what == RECIRCULATE && meta.kept < 3) {
            recirculate_preserving_field_list(1);
            hdr.ask.arg = hdr.ask.arg + 1;
        } else if (hdr.ask.what == TRUNCATE) {
            truncate((bit<32>) hdr.ask.arg);
        }
        if (hdr.ask.what != RECIRCULATE || meta.kept >= 3) {
            hdr.seen.setValid();
            hdr.seen.instance_type = (bit<8>) std.instance_type;
            hdr.seen.rid = (bit<8>) std.egress_rid;
            hdr.seen.port = (bit<8>) std.egress_port;
            hdr.seen.kept = meta.kept;
            hdr.seen.lost = meta.lost;
            hdr.seen.length = (bit<16>) std.packet_length;
        }
    }
}

control C(inout headers hdr, inout metadata meta) { apply { } }

control D(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.ask);
        packet.emit(hdr.seen);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
