#define ETHERTYPE_IPV4 0x0800
header_type ethernet_t {
    fields {
        dst : 48;
        src : 48;
        type : 16;
    }
}
header ethernet_t ethernet;
parser start {
    extract(ethernet);
    return ingress;
}
control ingress {
    apply(forward);
}
