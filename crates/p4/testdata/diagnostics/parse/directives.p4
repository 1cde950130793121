#include <nothing.p4>
#include "include_mistake.h"
#if UNDEFINED > 1 +
#endif
#error "this program is for another target"
#warning old
#pragma pack(1)
#define F(a, b) a
#define F(a) a
const bit<8> x = F(1, 2);
#else
#endfi
# 100 "other.p4"
const bit<8> z = 1
#line 7
const bit<8> w = ;
#if 1
const string s = "no end;
/* and no end
