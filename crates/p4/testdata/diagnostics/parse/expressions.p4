const bit<8> a = 1 + ;
const bit<8> b = (1 + 2;
const bit<8> c = { 1, 2 ;
const bit<8> d = f(1, , 2);
const bit<8> e = x[3;
const bit<8> f = x ? 1;
const bit<8> g = 5 > > 1;
const bit<8> h = { a = 1, ..., b = 2 };
const bit<8> i = x é y;
const bit<8> j = 'c';
const bit<8> k = bit<8>;
const bit<8> l = x.;
const bit<8> = 1;
const int m = 8w0x1g;
const bit<> n = 1;
const good g = 1;
control address(inout bit<32> x) { apply { x = 10.0.0.1; x = 2; } }
