#include <v1model.p4>
header top_t { bit<8> count; bit<16> length; }
struct inner_t { bit<16> length; }
@query_size("2 + + length)")
header twice_t { @query_field bit<8> length; varbit<64> body; }
@query_size("length +")
header open_t { bit<8> length; varbit<64> body; }
@query_size("2 length")
header two_t { bit<8> length; varbit<64> body; }
@query_size("1 - 2")
header less_t { bit<8> length; varbit<64> body; }
@query_size(length)
header bare_t { bit<8> length; varbit<64> body; }
@query_size("")
header none_t { bit<8> length; varbit<64> body; }
@query_size("length; 0x10 / 2")
header more_t { bit<8> length; varbit<64> body; }
@query_size("2) + (length")
header apart_t { bit<8> length; varbit<64> body; }
@query_size("99999999999999 * length")
header wide_t { bit<8> length; varbit<64> body; }
@query_size(" (2 + length) * 4 - 1 ")
header right_t { bit<8> length; varbit<64> body; }
header_union one_t { twice_t a; open_t b; two_t c; less_t d; bare_t e; none_t f; more_t g; apart_t h; wide_t i; right_t j; }
struct headers_t {
    inner_t inner;
    top_t top;
    @query_messages[count = "top.count, top.length", lengths = "inner.length, top.length"]
    one_t[4] items;
}
struct metadata_t {}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { transition accept; }
}
