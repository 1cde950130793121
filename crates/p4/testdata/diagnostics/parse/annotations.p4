@name("a" action a() { }
@ action b() { }
@kv[a = 1, 2] action c() { }
@list[1, 2 action d() { }
@pragma
@pragma name )
action e() { }
