// State and messages: a register that counts per port, a counter, a digest for addresses not seen before, and packets
// to and from the control plane.
#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 510;

@controller_header("packet_in")
header packet_in_t {
    bit<16> ingress_port;
}

@controller_header("packet_out")
header packet_out_t {
    bit<16> egress_port;
}

header ethernet_t {
    bit<48> dstAddr;
    bit<48> srcAddr;
    bit<16> etherType;
}

struct headers {
    packet_in_t  packet_in;
    packet_out_t packet_out;
    ethernet_t   ethernet;
}

struct metadata {
    bit<32> count;
}

struct learn_t {
    bit<48> srcAddr;
    bit<9>  port;
}

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        transition select(std.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }
    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }
    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control V(inout headers hdr, inout metadata meta) { apply { } }

control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    register<bit<32>>(512) seen;
    counter(512, CounterType.packets_and_bytes) received;

    action learn() {
        digest<learn_t>(1, { hdr.ethernet.srcAddr, std.ingress_port });
    }
    table known {
        key = { hdr.ethernet.srcAddr: exact; }
        actions = { learn; NoAction; }
        default_action = learn();
        const entries = {
            0x000000000001: NoAction();
        }
    }
    apply {
        received.count((bit<32>) std.ingress_port);
        if (hdr.packet_out.isValid()) {
            std.egress_spec = (bit<9>) hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
            exit;
        }
        known.apply();
        @atomic {
            seen.read(meta.count, (bit<32>) std.ingress_port);
            meta.count = meta.count + 1;
            seen.write((bit<32>) std.ingress_port, meta.count);
        }
        if (meta.count == 3) {
            // Every third packet is for the control plane.
            seen.write((bit<32>) std.ingress_port, 0);
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = (bit<16>) std.ingress_port;
            std.egress_spec = CPU_PORT;
        } else {
            std.egress_spec = std.ingress_port ^ 1;
        }
        log_msg("{} packets from port {}", { meta.count, std.ingress_port });
    }
}

control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply { } }

control C(inout headers hdr, inout metadata meta) { apply { } }

control D(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
