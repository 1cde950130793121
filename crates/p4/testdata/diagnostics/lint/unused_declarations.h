// What is here may be there for other programs.
const bit<16> TYPE_NEVER = 3;
header never_t { bit<8> a; }
typedef bit<8> never8;
