typedef bit<8 byte;
typedef tuple<bit<8>, bool pair;
struct s<T, > { T f; }
header h { varbit v; bit<8> a b; unknown c; int[ d; bool e; }
enum bit<8> e { a = 1 b = 2 }
enum { x }
error { A, B
match_kind { m, , }
type bit<8> ;
extern X { X(bit<8> a); f(); void g(in x); bit<8> h() }
extern bit<8> f(bit<8>);
package P<T>(T t)
struct commas { bit<8> a, bit<8> b }
