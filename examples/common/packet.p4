// Headers that the example labs share.

typedef bit<48> mac_t;
typedef bit<32> ip_t;
typedef bit<9> port_t;

const bit<16> TYPE_IPV4 = 0x0800;
const bit<16> TYPE_ARP = 0x0806;

const bit<8> PROTOCOL_IPV4 = 4;
const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

header ethernet_h {
    mac_t dst;
    mac_t src;
    bit<16> type;
}

header arp_h {
    bit<16> hardware;
    bit<16> protocol;
    bit<8> hardware_length;
    bit<8> protocol_length;
    bit<16> operation;
    mac_t sender_mac;
    ip_t sender_ip;
    mac_t target_mac;
    ip_t target_ip;
}

header ipv4_h {
    bit<4> version;
    bit<4> ihl;
    bit<6> dscp;
    bit<2> ecn;
    bit<16> total_length;
    bit<16> identification;
    bit<3> flags;
    bit<13> fragment_offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    ip_t src;
    ip_t dst;
}

// The common beginning of TCP and UDP.
header ports_h {
    bit<16> src;
    bit<16> dst;
}

// The fields of TCP from the ports to the checksum.
header tcp_rest_h {
    bit<32> number;
    bit<32> acknowledged;
    bit<16> flags;
    bit<16> window;
    bit<16> checksum;
}

// The fields of UDP after the ports.
header udp_rest_h {
    bit<16> length;
    bit<16> checksum;
}
