//! Syntax trees: expressions and declarations printed with their structure.

use diagnostics::{Diagnostics, SourceMap};
use p4::ast::*;
use p4::{DiskLoader, PreprocessorOptions};

fn program(text: &str) -> Program {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let program = p4::parse(&mut map, "t.p4", text, &PreprocessorOptions::default(), &DiskLoader, &mut diagnostics);
    assert!(diagnostics.is_empty(), "{text}\n{}", diagnostics.render(&map, false));
    program
}

fn join<T>(items: &[T], print: impl Fn(&T) -> String) -> String {
    items.iter().map(print).collect::<Vec<_>>().join(" ")
}

fn ty(t: &TypeRef) -> String {
    match &t.kind {
        TypeRefKind::Bit(width) => format!("bit{}", width.as_ref().map_or(String::new(), |w| format!("<{}>", expr(w)))),
        TypeRefKind::Int(width) => format!("int<{}>", expr(width)),
        TypeRefKind::Varbit(width) => format!("varbit<{}>", expr(width)),
        TypeRefKind::Named { absolute, name, args } => {
            let dot = if *absolute { "." } else { "" };
            let args = if args.is_empty() { String::new() } else { format!("<{}>", join(args, ty)) };
            format!("{dot}{}{args}", name.name)
        }
        TypeRefKind::Stack(element, size) => format!("{}[{}]", ty(element), expr(size)),
        TypeRefKind::Tuple(args) => format!("tuple<{}>", join(args, ty)),
        TypeRefKind::List(element) => format!("list<{}>", ty(element)),
        TypeRefKind::DontCare => "_".to_owned(),
        other => format!("{other:?}").to_lowercase(),
    }
}

fn arg(arg: &Arg) -> String {
    arg.name.as_ref().map_or(String::new(), |name| format!("{}=", name.name)) + &expr(&arg.value)
}

fn expr(e: &Expr) -> String {
    match &e.kind {
        ExprKind::Int(literal) => literal.to_string(),
        ExprKind::String(text) => format!("{text:?}"),
        ExprKind::Bool(value) => value.to_string(),
        ExprKind::This => "this".to_owned(),
        ExprKind::Default => "default".to_owned(),
        ExprKind::DontCare => "_".to_owned(),
        ExprKind::Dots => "...".to_owned(),
        ExprKind::Invalid => "{#}".to_owned(),
        ExprKind::Name { absolute, name } => format!("{}{}", if *absolute { "." } else { "" }, name.name),
        ExprKind::Type(t) => format!("'{}", ty(t)),
        ExprKind::Member(base, name) => format!("{}.{}", expr(base), name.name),
        ExprKind::Index(base, index) => format!("(at {} {})", expr(base), expr(index)),
        ExprKind::Slice(base, high, low) => format!("(slice {} {} {})", expr(base), expr(high), expr(low)),
        ExprKind::PlusSlice(base, low, width) => format!("(slice+ {} {} {})", expr(base), expr(low), expr(width)),
        ExprKind::Unary(op, operand) => format!("({op:?} {})", expr(operand)),
        ExprKind::Binary(op, left, right) => format!("({op:?} {} {})", expr(left), expr(right)),
        ExprKind::Ternary(c, a, b) => format!("(? {} {} {})", expr(c), expr(a), expr(b)),
        ExprKind::Cast(t, operand) => format!("(cast {} {})", ty(t), expr(operand)),
        ExprKind::List(items) => format!("{{{}}}", join(items, expr)),
        ExprKind::Struct { fields, dots } => {
            let fields = join(fields, |(name, value)| format!("{}={}", name.name, expr(value)));
            format!("{{{fields}{}}}", if dots.is_some() { " ..." } else { "" })
        }
        ExprKind::Call { callee, type_args, args } => {
            let types = if type_args.is_empty() { String::new() } else { format!("<{}>", join(type_args, ty)) };
            format!("{}{types}({})", expr(callee), join(args, arg))
        }
        ExprKind::Range(low, high) => format!("(range {} {})", expr(low), expr(high)),
        ExprKind::Mask(value, mask) => format!("(mask {} {})", expr(value), expr(mask)),
    }
}

/// Returns the tree of an expression. `T` and `C<A>` are types, `a`, `b` and `f` values; other names are not declared.
fn of(text: &str) -> String {
    let text = format!(
        "struct T {{ }} extern C<A> {{ }} const int a = 1; const int b = 1; extern void f<A>(in A x); const int x = {text};"
    );
    match &program(&text).decls.last().expect("there are declarations").kind {
        DeclKind::Const { value, .. } => expr(value),
        other => panic!("{other:?}"),
    }
}

#[test]
fn precedence() {
    assert_eq!(of("a + b * 2 - 3"), "(Sub (Add a (Mul b 2)) 3)");
    assert_eq!(of("a | b ^ 1 & 2 << 3 + 4"), "(BitOr a (BitXor b (BitAnd 1 (Shl 2 (Add 3 4)))))");
    assert_eq!(of("a || b && a == b < a | b"), "(Or a (And b (Eq a (Lt b (BitOr a b)))))");
    assert_eq!(of("a & b == 1"), "(Eq (BitAnd a b) 1)");
    assert_eq!(of("-a.b[1] + !(b)"), "(Add (Neg (at a.b 1)) (Not b))");
    assert_eq!(of("a ++ b |+| 1 |-| 2"), "(SubSat (AddSat (Concat a b) 1) 2)");
    assert_eq!(of("a ? b : a ? 1 : 2"), "(? a b (? a 1 2))");
    assert_eq!(of("a == b ? a + 1 : b"), "(? (Eq a b) (Add a 1) b)");
    assert_eq!(of("- - ~ + a"), "(Neg (Neg (BitNot (Plus a))))");
}

#[test]
fn casts() {
    assert_eq!(of("(bit<8>) a + b"), "(Add (cast bit<8> a) b)");
    assert_eq!(of("(T) -a"), "(cast T (Neg a))");
    assert_eq!(of("(a) - b"), "(Sub a b)");
    assert_eq!(of("(T)(a)"), "(cast T a)");
    assert_eq!(of("(g)(a)"), "g(a)");
    assert_eq!(of("(U) a"), "(cast U a)");
    assert_eq!(of("(U) { a }"), "(cast U {a})");
    assert_eq!(of("(U) - a"), "(Sub U a)");
    assert_eq!(of("(.T) a"), "(cast .T a)");
    assert_eq!(of("(T[2]) { a, b }"), "(cast T[2] {a b})");
    assert_eq!(of("(list<tuple<bit<8>, T>>) {}"), "(cast list<tuple<bit<8> T>> {})");
    assert_eq!(of("(error) a"), "(cast error a)");
    assert_eq!(of("(error.E == b)"), "(Eq 'error.E b)");
    assert_eq!(of("(int<(8 > 4 ? 1 : 2)>) (bit<a>) ~b"), "(cast int<(? (Gt 8 4) 1 2)> (cast bit<a> (BitNot b)))");
}

#[test]
fn type_arguments_and_comparisons() {
    assert_eq!(of("a < b"), "(Lt a b)");
    assert_eq!(of("a < b > (1)"), "(Gt (Lt a b) 1)");
    assert_eq!(of("f<bit<8>>(a)"), "f<bit<8>>(a)");
    assert_eq!(of("f<T>(a)"), "f<T>(a)");
    assert_eq!(of("f<C<C<T>>>(a)"), "f<C<C<T>>>(a)");
    assert_eq!(of("a.f<_, T[2]>(x = a, y = _)"), "a.f<_ T[2]>(x=a y=_)");
    assert_eq!(of("g<U>(a)"), "g<U>(a)");
    assert_eq!(of("a >> 2 > b"), "(Gt (Shr a 2) b)");
    assert_eq!(of("C<bit<8>>(a)"), "'C<bit<8>>(a)");
    assert_eq!(of("C<C<T>>().m()"), "'C<C<T>>().m()");
    assert_eq!(of("T.a"), "'T.a");
    assert_eq!(of(".T.a + .a"), "(Add '.T.a .a)");
    assert_eq!(of("D<T>.apply(a)"), "'D<T>.apply(a)");
    assert_eq!(of("list + type"), "(Add list type)");
}

#[test]
fn braces_and_slices() {
    assert_eq!(of("{ }"), "{}");
    assert_eq!(of("{ 1, { 2 }, }"), "{1 {2}}");
    assert_eq!(of("{ a = 1, b = { c = 2 }, ... }"), "{a=1 b={c=2} ...}");
    assert_eq!(of("{ 1, ... }"), "{1 ...}");
    assert_eq!(of("{#}"), "{#}");
    assert_eq!(of("a[1][7:0][b +: 4]"), "(slice+ (slice (at a 1) 7 0) b 4)");
    assert_eq!(of("\"a\" ++ \"b\\\"\""), "(Concat \"a\" \"b\\\"\")");
    assert_eq!(of("this.m(8w0xff, 4s7)"), "this.m(8w255 4s7)");
}

#[test]
fn names_are_scoped() {
    let text = "struct T { } control c(in bit<8> T) { apply { bit<8> x = (T) - 1; } } const bit<8> y = (T) - 1;";
    let program = program(text);
    let DeclKind::Control(control) = &program.decls[1].kind else { panic!() };
    let StmtKind::Decl(local) = &control.body.statements[0].kind else { panic!() };
    let DeclKind::Variable { init: Some(init), .. } = &local.kind else { panic!() };
    assert_eq!(expr(init), "(Sub T 1)");
    let DeclKind::Const { value, .. } = &program.decls[2].kind else { panic!() };
    assert_eq!(expr(value), "(cast T (Neg 1))");
}

#[test]
fn statements() {
    let text = "extern E { void m(); } control d() { apply { } } action a(inout bit<8> x, E e) {
        x = 1; x[3:0] |+|= 2; x >>= 1; e.m(); d.apply(); f<T>(x);
        bit<8> y; E() z; H[2] s = w; U u = 1; V(3) v; s[1] = x; s[1].m();
        if (x == 1) return; else if (x == 2) exit; else { ; }
        @atomic { x = 2; }
        switch (x) { 1: 2: { } default: { break; } }
        for (bit<8> i = 0, x = 1; i < 4; i += 1, x = 2) continue;
        for (bit<8> i in 1 .. 4) { } for (x in s) { }
        const bit<8> k = 1;
    }";
    let program = program(text);
    let DeclKind::Action { body, .. } = &program.decls[2].kind else { panic!() };
    let shape = join(&body.statements, |statement| match &statement.kind {
        StmtKind::Decl(decl) => match &decl.kind {
            DeclKind::Variable { ty: t, name, init } => {
                format!("var:{}:{}{}", ty(t), name.name, if init.is_some() { "=" } else { "" })
            }
            DeclKind::Instance(instance) => format!("new:{}:{}", ty(&instance.ty), instance.name.name),
            DeclKind::Const { name, .. } => format!("const:{}", name.name),
            other => panic!("{other:?}"),
        },
        StmtKind::Assign { lhs, op, .. } => {
            format!("{}:{}", op.map_or("set".to_owned(), |op| format!("{op:?}")), expr(lhs))
        }
        StmtKind::Call(call) => format!("call:{}", expr(call)),
        StmtKind::If { otherwise, .. } => format!("if{}", if otherwise.is_some() { "-else" } else { "" }),
        StmtKind::Block(block) => format!("block@{}", join(&block.annotations, |a| a.name.name.to_string())),
        StmtKind::Switch { cases, .. } => format!(
            "switch:{}",
            join(cases, |case| { expr(&case.label) + if case.body.is_some() { "{}" } else { "" } })
        ),
        StmtKind::For { init, update, .. } => format!("for:{}:{}", init.len(), update.len()),
        StmtKind::ForIn { ty: t, name, range, .. } => {
            format!("for:{}:{}:{}", t.as_ref().map_or(String::new(), ty), name.name, expr(range))
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(
        shape,
        "set:x AddSat:(slice x 3 0) Shr:x call:e.m() call:'d.apply() call:f<T>(x) \
         var:bit<8>:y new:E:z var:H[2]:s= var:U:u= new:V:v set:(at s 1) call:(at s 1).m() \
         if-else block@atomic switch:1 2{} default{} for:2:2 for:bit<8>:i:(range 1 4) for::x:s const:k"
    );
}

#[test]
fn declarations() {
    let text = "
        error { A, B } match_kind { @x m, n, } enum E { a, b, } enum bit<8> F { a = 1, b = 2 }
        @name(\"h (1)\") header H<T> { @f bit<8> x; varbit<32> v; } header_union U { H<bit<8>> h; }
        struct S { H<bit<8>>[2] hs; tuple<bit, .E> t; bit<8> arr[3]; list<bit<8>> l; }
        typedef bit<8> B; type B N; typedef struct Inner { bit<8> a; } Outer; extern Forward;
        extern X<T> { X(); X(T t); abstract T f(in T x); @k[a = 1] void g<U>(out U u, bit<8> d = 3); }
        extern T id<T>(in T x); bit<8> fun<T>(in T x) { return 1; }
        parser P<T>(packet_in b, out T t); control C<T>(inout T t)(bit<8> k) { apply { } }
        package Pkg<T>(P<T> p, C<T> c = _f()); value_set<tuple<bit<8>, B>>(4) vs;
        X<bit<8>>() obj = { bit<8> f(in bit<8> x) { return x; } X<bit<8>>() inner; };
        Pkg(P1(), C<bit<8>>(1)) main;;
        @pragma old \"x\" 1
        const .E c = .E.a;";
    let text = text.replace(" = _f()", "");
    let program = program(&text);
    let names = join(&program.decls, |decl| {
        let annotations = join(&decl.annotations, |a| format!("@{} ", a.name.name));
        annotations
            + &match &decl.kind {
                DeclKind::Errors(names) => format!("error:{}", names.len()),
                DeclKind::MatchKinds(kinds) => format!("kinds:{}", kinds.len()),
                DeclKind::Enum { name, members, underlying } => {
                    format!("enum:{}:{}{}", name.name, members.len(), underlying.as_ref().map_or(String::new(), ty))
                }
                DeclKind::Struct { name, fields, type_params, .. } => {
                    let fields = join(fields, |field| format!("{}:{}", ty(&field.ty), field.name.name));
                    format!("struct:{}<{}>[{fields}]", name.name, type_params.len())
                }
                DeclKind::Typedef { ty: t, name } => format!("typedef:{}:{}", ty(t), name.name),
                DeclKind::NewType { ty: t, name } => format!("type:{}:{}", ty(t), name.name),
                DeclKind::ExternObject { name, methods, .. } => format!(
                    "extern:{}[{}]",
                    name.name,
                    join(methods, |m| {
                        let kind = match (m.is_abstract, m.is_constructor) {
                            (true, _) => "abstract ",
                            (_, true) => "new ",
                            _ => "",
                        };
                        format!("{kind}{}/{}", m.proto.name.name, m.proto.params.len())
                    })
                ),
                DeclKind::ExternFunction(proto) => format!("extern:{}:{}", ty(&proto.ret), proto.name.name),
                DeclKind::Function { proto, body } => format!("fun:{}:{}", proto.name.name, body.statements.len()),
                DeclKind::ParserType(t) => format!("parser:{}", t.name.name),
                DeclKind::Control(c) => format!("control:{}:{}", c.ty.name.name, c.ctor_params.len()),
                DeclKind::PackageType(t) => format!("package:{}:{}", t.name.name, join(&t.params, |p| ty(&p.ty))),
                DeclKind::ValueSet { ty: t, name, .. } => format!("set:{}:{}", ty(t), name.name),
                DeclKind::Instance(i) => {
                    let body = i.body.as_ref().map_or(String::new(), |body| format!("={}", body.len()));
                    format!("new:{}:{}({}){body}", ty(&i.ty), i.name.name, join(&i.args, arg))
                }
                DeclKind::Const { ty: t, name, value } => format!("const:{}:{}={}", ty(t), name.name, expr(value)),
                other => panic!("{other:?}"),
            }
    });
    let expected = "error:2 kinds:2 enum:E:2 enum:F:2bit<8> @name struct:H<1>[bit<8>:x varbit<32>:v] \
        struct:U<0>[H<bit<8>>:h] struct:S<0>[H<bit<8>>[2]:hs tuple<bit .E>:t bit<8>[3]:arr list<bit<8>>:l] \
        typedef:bit<8>:B type:B:N struct:Inner<0>[bit<8>:a] typedef:Inner:Outer \
        extern:X[new X/0 new X/1 abstract f/1 g/2] extern:T:id fun:fun:1 parser:P control:C:1 \
        package:Pkg:P<T> C<T> set:tuple<bit<8> B>:vs new:X<bit<8>>:obj()=2 \
        new:Pkg:main(P1() 'C<bit<8>>(1)) @old const:.E:c='.E.a";
    assert_eq!(names, expected);
}

#[test]
fn parsers_and_tables() {
    let text = "parser p(in bit<8> x) {
        const bit<8> k = 1; value_set<bit<8>>(4) vs; bit<8> y;
        @name(\"s\") state start { y = x; { y = 2; } transition select(x, y) {
            (1, _): a; (1 .. 2, 3 &&& 4): b; default: accept; ({1}, (2)): a; } }
        state a { transition select(x) { (1): b; (1) + 2: b; 3 &&& 4: b; vs: b; _: reject; (bit<8>) 1: b; } }
        state b { transition accept; } state state { } }
      control c(inout bit<8> x) {
        action a(bit<8> v) { } action apply() { }
        table t {
            key = { x : exact @name(\"k\"); x & 3 : ternary; key : lpm; }
            actions = { a; @defaultonly .NoAction(); a(1); }
            const default_action = a(3); size = 1 << 4; largest_priority_wins = false; @x implementation = f<T>(1);
            const entries = { (1, 2 &&& 3, _): a(1) @e; const priority = 4: 5 .. 6: a(2); priority = (1 + 2): default: .a; }
        }
        apply { } }";
    let program = program(text);
    let DeclKind::Parser(parser) = &program.decls[0].kind else { panic!() };
    assert_eq!(parser.locals.len(), 3);
    let states = join(&parser.states, |state| match &state.transition {
        None => format!("{}:none", state.name.name),
        Some(Transition::Direct(name)) => format!("{}:{}", state.name.name, name.name),
        Some(Transition::Select { exprs, cases, .. }) => format!(
            "{}:{}[{}]",
            state.name.name,
            join(exprs, expr),
            join(cases, |case| format!("<{}>{}", join(&case.keys, expr), case.state.name))
        ),
    });
    assert_eq!(
        states,
        "start:x y[<1 _>a <(range 1 2) (mask 3 4)>b <default>accept <{1} 2>a] \
         a:x[<1>b <(Add 1 2)>b <(mask 3 4)>b <vs>b <_>reject <(cast bit<8> 1)>b] b:accept state:none"
    );
    let DeclKind::Control(control) = &program.decls[1].kind else { panic!() };
    let DeclKind::Table(table) = &control.locals[2].kind else { panic!() };
    let action = |action: &ActionRef| {
        let args = action.args.as_ref().map_or(String::new(), |args| format!("({})", join(args, arg)));
        format!("{}{}{args}", if action.absolute { "." } else { "" }, action.name.name)
    };
    let properties = join(&table.properties, |property| match &property.kind {
        TablePropertyKind::Key(elements) => {
            format!("key[{}]", join(elements, |e| format!("{}:{}", expr(&e.expr), e.match_kind.name)))
        }
        TablePropertyKind::Actions(actions) => format!("actions[{}]", join(actions, action)),
        TablePropertyKind::Entries(entries) => format!(
            "entries[{}]",
            join(entries, |entry| format!(
                "{}{}<{}>{}",
                if entry.is_const { "const " } else { "" },
                entry.priority.as_ref().map_or(String::new(), |p| expr(p) + ":"),
                join(&entry.keys, expr),
                action(&entry.action)
            ))
        ),
        TablePropertyKind::Custom { name, value } => {
            format!("{}{}={}", if property.is_const { "const " } else { "" }, name.name, expr(value))
        }
    });
    assert_eq!(
        properties,
        "key[x:exact (BitAnd x 3):ternary key:lpm] actions[a .NoAction() a(1)] const default_action=a(3) size=(Shl 1 4) \
         largest_priority_wins=false implementation=f<T>(1) \
         entries[<1 (mask 2 3) _>a(1) const 4:<(range 5 6)>a(2) (Add 1 2):<default>.a]"
    );
}

#[test]
fn annotations_keep_their_bodies() {
    let text = "@a @b() @c(x (1, \"y\") ; { ) @d[1, 2 + 3] @e[k = 1, l = \"m\"] @table @f[] const int x = 1;";
    let annotations = &program(text).decls[0].annotations;
    let bodies = join(annotations, |annotation| match &annotation.body {
        AnnotationBody::Empty => annotation.name.name.to_string(),
        AnnotationBody::Unstructured(tokens) => {
            format!("{}({})", annotation.name.name, join(tokens, ToString::to_string))
        }
        AnnotationBody::Expressions(list) => format!("{}[{}]", annotation.name.name, join(list, expr)),
        AnnotationBody::KeyValues(pairs) => {
            format!("{}[{}]", annotation.name.name, join(pairs, |(key, value)| format!("{}={}", key.name, expr(value))))
        }
    });
    assert_eq!(bodies, "a b() c(x ( 1 , \"y\" ) ; {) d[1 (Add 2 3)] e[k=1 l=\"m\"] table f[]");
}

#[test]
fn the_core_library_parses() {
    let program = program("#include <core.p4>");
    assert_eq!(program.decls.len(), 8);
}
