// Looks a key up in tables whose entries the stores make.
#include <core.p4>
#include <v1model.p4>

header request_h {
    bit<8> operation;
    bit<8> key;
    bit<16> value;
}

struct headers_t {
    request_h request;
}

struct metadata_t {}

parser RequestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.request);
        transition accept;
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control RequestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    counter(4, CounterType.packets) requests;

    action none() {
        hdr.request.value = 0xffff;
    }

    action give(bit<16> number) {
        hdr.request.value = number;
    }

    action tell(bit<8> key, bit<8> inverse) {
        hdr.request.value = inverse ++ key;
    }

    action allow() {
        hdr.request.value = 1;
    }

    @resilient[pool = "100-163"]
    table forward {
        key = { hdr.request.key: exact; ~hdr.request.key: exact @name("inverse"); }
        actions = { give; none; }
        default_action = none();
    }

    @resilient[reverse = "forward"]
    table reverse {
        key = { hdr.request.value: exact; }
        actions = { tell; none; }
        default_action = none();
    }

    @resilient[group = "flows", add = "allow"]
    table inside {
        key = { hdr.request.key: exact; }
        actions = { allow; none; }
        default_action = none();
    }

    @resilient[group = "flows"]
    table outside {
        key = { hdr.request.key: exact; }
        actions = { none; allow; }
        default_action = none();
    }

    apply {
        standard.egress_spec = 2;
        requests.count((bit<32>) hdr.request.operation);
        if (hdr.request.operation == 0) {
            forward.apply();
        } else if (hdr.request.operation == 1) {
            reverse.apply();
        } else if (hdr.request.operation == 2) {
            inside.apply();
        } else if (hdr.request.operation == 3) {
            outside.apply();
        }
    }
}

control RequestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    // Two rows that a packet does not make, in another pass.
    action none() {
        hdr.request.value = 0xffff;
    }

    action allow() {
        hdr.request.value = hdr.request.value + 1;
    }

    @resilient[group = "flows"]
    table first {
        key = { hdr.request.key: exact; }
        actions = { none; allow; }
        default_action = none();
    }

    @resilient[group = "flows"]
    table second {
        key = { hdr.request.key + 1: exact @name("next"); }
        actions = { none; allow; }
        default_action = none();
    }

    apply {
        if (hdr.request.operation == 4) {
            first.apply();
            second.apply();
        }
    }
}

control RequestDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.request);
    }
}

V1Switch(RequestParser(), NoChecksum(), RequestIngress(), RequestEgress(), NoChecksum(), RequestDeparser()) main;
