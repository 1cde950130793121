// A parameter without direction takes what is known at compile time; for packets it wants `in`.
header h_t { bit<8> a; }
bit<8> same(bit<8> x) { return x; }
control c(inout h_t h) { apply { h.a = same(h.a); } }
