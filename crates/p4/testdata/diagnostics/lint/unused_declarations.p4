#include <core.p4>

const bit<16> TYPE_A = 1;
const bit<16> TYPE_B = 2;
const bit<16> TYPE_C = 3;
const bit<16> TYPE_USED = 4;
const bit<16> TYPE_D = 5;
const int BITS = 8;
const bit<8> LISTED = 7;
@noWarn const bit<8> QUIET = 7;
const bit<8> _hidden = 7;
typedef bit<BITS> used8;
typedef bit<8> unused8;
type bit<8> unused_type;
enum unused_enum { a, b }
enum used_enum { a, b }
struct unused_struct { bit<8> a; }
struct generic<T> { T a; }
header unused_header { bit<8> a; }
header inner_header { bit<8> a; }
header_union unused_union { inner_header h; }
struct meta { used8 a; @field_list(LISTED) bit<8> b; generic<bit<8>> c; bit<16> d; }
struct by_signature { bit<8> a; }
struct by_size { bit<8> a; }

control C(inout meta m) {
    const bit<8> local = 3;
    const bit<8> taken = 4;
    apply {
        const bit<8> inside = 5;
        if (m.d == TYPE_USED && used_enum.a != used_enum.b) { m.a = taken + (bit<8>) by_size.minSizeInBits(); }
    }
}
control CT<M>(inout M m);
parser Unused<H>(packet_in p, out H h, inout by_signature m);
package top<M>(CT<M> c);
top(C()) main;
const bool checked = static_assert(BITS == 8, "a byte");
