// Made by `triplane subscribe`. Entries for it are compiled with `--order-of` this file, or with
// --order switch_id,source,hop_latency

// Added: what the rules' tables leave for egress.
struct subscription_t {
    bit<32> state;                      // of the diagram, after the last table
}

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

struct metadata_t {
    // Added: what the rules' tables leave for egress.
    subscription_t subscription;
}

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


// Added: tables for rules over report.switch_id, report.hop_latency, source.

control Subscriptions(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bit<16> report_switch_id_value = 0;
    bit<32> report_hop_latency_value = 0;
    bit<32> source_value = 0;
    bit<1> report_valid = 0;
    bit<1> note_valid = 0;
    bit<1> report_or_note_valid = 0;
    bit<32> target = 0;    // a port, with the highest bit set, or a group

    action to_state(bit<32> state) { meta.subscription.state = state; }
    action to_port(bit<9> port) { target = 0x80000000 | (bit<32>)port; }
    action to_group(bit<16> group) { target = (bit<32>)group; }

    table validity {
        key = {
            report_valid: ternary @name("report_valid");
            note_valid: ternary @name("note_valid");
            report_or_note_valid: ternary @name("report_or_note_valid");
        }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table report_switch_id_exact_1 {
        key = {
            meta.subscription.state: exact @name("state");
            report_switch_id_value: exact @name("value");
        }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table report_switch_id_rest_1 {
        key = { meta.subscription.state: exact @name("state"); }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table source_lpm_2 {
        key = {
            meta.subscription.state: exact @name("state");
            source_value: lpm @name("value");
        }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table source_rest_2 {
        key = { meta.subscription.state: exact @name("state"); }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table report_hop_latency_range_3 {
        key = {
            meta.subscription.state: exact @name("state");
            report_hop_latency_value: range @name("value");
        }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table report_hop_latency_rest_3 {
        key = { meta.subscription.state: exact @name("state"); }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table leaf {
        key = { meta.subscription.state: exact @name("state"); }
        actions = { to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table do_mark {
        key = { meta.subscription.state: exact @name("state"); }
        actions = { mark(hdr); NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    apply {
        if (hdr.report.isValid()) {
            report_switch_id_value = hdr.report.switch_id;
            report_hop_latency_value = hdr.report.hop_latency;
            source_value = hdr.report.src;
            report_valid = 1;
            report_or_note_valid = 1;
        }
        if (hdr.note.isValid()) {
            source_value = hdr.note.src;
            note_valid = 1;
            report_or_note_valid = 1;
        }
        meta.subscription.state = 0;
        target = 0;
        validity.apply();
        if (meta.subscription.state[31:24] == 2) {
            if (!report_switch_id_exact_1.apply().hit) { report_switch_id_rest_1.apply(); }
        }
        if (meta.subscription.state[31:24] == 3) {
            if (!source_lpm_2.apply().hit) { source_rest_2.apply(); }
        }
        if (meta.subscription.state[31:24] == 4) {
            if (!report_hop_latency_range_3.apply().hit) { report_hop_latency_rest_3.apply(); }
        }
        if (meta.subscription.state[31:24] == 255) {
            leaf.apply();
        }
        if (target == 0) {
            mark_to_drop(standard_metadata);
        } else if (target[31:31] == 1) {
            standard_metadata.egress_spec = target[8:0];
        } else {
            standard_metadata.mcast_grp = target[15:0];
        }
        if (meta.subscription.state[31:24] == 255) {
            do_mark.apply();
        }
    }
}

control SubscriptionsEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
    }
}

control SubscriptionsVerify(inout headers_t hdr, inout metadata_t meta) { apply {} }

control SubscriptionsCompute(inout headers_t hdr, inout metadata_t meta) { apply {} }

control SubscriptionsDeparser(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(Reports(), SubscriptionsVerify(), Subscriptions(), SubscriptionsEgress(), SubscriptionsCompute(), SubscriptionsDeparser()) main;
