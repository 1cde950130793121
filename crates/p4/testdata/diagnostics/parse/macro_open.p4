#define F(a) a
const bit<8> y = F(1;
const bit<8> z = 2;
