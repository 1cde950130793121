#include <v1model.p4>
header a_t { @query_field bit<8> x; }
struct headers_t { a_t a; }
