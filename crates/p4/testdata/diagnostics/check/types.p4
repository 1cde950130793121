struct inner { bit<8> a; }
header nested { bit<8> a; bool b; error e; }
header_union u { bit<8> f; }
struct self { self s; }
header wide { bit<99999999> f; }
struct pair<T, U> { T a; U b; }
type inner opaque;
enum inner Bad { a = 1 }
enum bit<2> Open { a = 1, b }
typedef pair<bit<8>> half;
typedef undefined also;

bit<8> sum(in bit<8> a, int b, in int c) { return a; }
void f(in pair<bit<8>> p) { }
int g() { return 1; }
control c(inout bit<8> x)(inout bit<8> y) {
    int i = 1;
    string s = "no";
    bit<-1> n;
    int<0> z;
    apply { }
}
