// Checksums that follow the change of an address. Needs `packet.p4`.

// A 16-bit one's complement sum.
bit<16> folded(in bit<32> sum) {
    bit<32> once = (sum & 0xffff) + (sum >> 16);
    return (bit<16>) (once + (once >> 16));
}

// Updates a checksum after an address was replaced (RFC 1624).
bit<16> replaced(in bit<16> checksum, in ip_t before, in ip_t after) {
    bit<32> sum = (bit<32>) ~checksum + (bit<32>) ~before[31:16] + (bit<32>) ~before[15:0]
        + (bit<32>) after[31:16] + (bit<32>) after[15:0];
    return ~folded(sum);
}
