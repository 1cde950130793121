// What a program can ask of its controller: types in the controller's own form, restrictions, references.
#include <core.p4>
#include <v1model.p4>

@p4runtime_translation("example.org/port", bit<32>)
type bit<9> port_id_t;

@p4runtime_translation("example.org/name", string)
type bit<8> name_t;

@controller_header("packet_in")
header packet_in_t {
    port_id_t port;
    bit<7> unused;
    name_t name;
}

@controller_header("packet_out")
header packet_out_t {
    name_t name;
    port_id_t port;
    bit<7> unused;
}

header data_t {
    bit<8> kind;
    bit<8> second;
}

struct headers_t {
    packet_in_t packet_in;
    packet_out_t packet_out;
    data_t data;
}

struct metadata_t {
    port_id_t port;
    name_t name;
    bit<16> hop;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        transition select(standard.ingress_port) {
            510: packet_out;
            default: data;
        }
    }
    state packet_out {
        packet.extract(hdr.packet_out);
        transition data;
    }
    state data {
        packet.extract(hdr.data);
        transition accept;
    }
}

control Nothing(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @action_restriction("port != 0")
    action to_port(port_id_t port) {
        standard.egress_spec = (bit<9>)port;
    }
    action classify(name_t name) {
        meta.name = name;
    }
    action via(@refers_to(hops, meta.hop) bit<16> hop) {
        meta.hop = hop;
    }

    table by_port {
        key = { meta.port: exact; }
        actions = { to_port; NoAction; }
    }
    table classes {
        key = { hdr.data.kind: exact; }
        actions = { classify; NoAction; }
    }
    table by_name {
        key = { meta.name: exact; }
        actions = { to_port; NoAction; }
    }
    @entry_restriction("
        second::mask != 0 -> first == 7;  // the second byte means something in packets of kind 7 only
        ::priority < 100;
    ")
    table restricted {
        key = {
            hdr.data.kind: exact @name("first");
            hdr.data.second: ternary @name("second");
        }
        actions = { to_port; NoAction; }
    }
    table routes {
        key = { hdr.data.kind: exact; }
        actions = { via; NoAction; }
    }
    table hops {
        key = { meta.hop: exact; }
        actions = { to_port; NoAction; }
    }

    apply {
        meta.port = (port_id_t)standard.ingress_port;
        if (hdr.packet_out.isValid()) {
            meta.port = hdr.packet_out.port;
            meta.name = hdr.packet_out.name;
            hdr.packet_out.setInvalid();
        }
        by_port.apply();
        classes.apply();
        by_name.apply();
        if (hdr.data.second == 0xee) {
            hdr.packet_in.setValid();
            hdr.packet_in.port = meta.port;
            hdr.packet_in.name = meta.name;
            standard.egress_spec = 510;
        }
        restricted.apply();
        routes.apply();
        hops.apply();
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(P(), Nothing(), I(), E(), Nothing(), D()) main;
