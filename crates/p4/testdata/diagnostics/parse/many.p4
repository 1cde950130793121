header a { bit<8 f; }
header b { bit<8> f }
header c { bit<8> f;; }
action d( { }
action e() { x = 1 }
action f() { y = ; z = 2 }
control g() { apply { if (a) { } else else { } } }
parser h() { state start { transition select(x) { 1 accept; 2: reject; } } }
enum i { a b, c }
