//! Expressions, functions and the variables they share.

use crate::common::{check, check_as};

#[test]
fn literals() {
    check(
        r#"f('a', 1, -2, 10n, true, null, undefined, /x/, `t`, "s");"#,
        r#"
fn f0 <module> module ()
 b0:
  t0 = global f
  t1 = "a"
  t2 = 1
  t3 = -2
  t4 = 10
  t5 = true
  t6 = null
  t7 = null
  t8 = "/x/"
  t9 = "t"
  t10 = "s"
  t11 = call t0(t1, t2, t3, t4, t5, t6, t7, t8, t9, t10)
  return
"#,
    );
}

#[test]
fn strings_and_sums() {
    check(
        r#"f(a + b, a + 'x' + b, `${a}/${b}.json`, 1 + a * 2, a + b + 'x');"#,
        r#"
fn f0 <module> module ()
 b0:
  t0 = global f
  t1 = global a
  t2 = global b
  t3 = t1 + t2
  t4 = global a
  t5 = "x"
  t6 = global b
  t7 = concat t4, t5, t6
  t8 = global a
  t9 = "/"
  t10 = global b
  t11 = ".json"
  t12 = concat t8, t9, t10, t11
  t13 = 1
  t14 = global a
  t15 = 2
  t16 = t14 arith t15
  t17 = t13 + t16
  t18 = global a
  t19 = global b
  t20 = t18 + t19
  t21 = "x"
  t22 = concat t20, t21
  t23 = call t0(t3, t7, t12, t17, t22)
  return
"#,
    );
}

#[test]
fn comparisons() {
    check(
        r#"f(a == b, a !== b, a < b, a in b, a instanceof B, !a, typeof a, void a(), -a);"#,
        r#"
fn f0 <module> module ()
 b0:
  t0 = global f
  t1 = global a
  t2 = global b
  t3 = t1 == t2
  t4 = global a
  t5 = global b
  t6 = t4 != t5
  t7 = global a
  t8 = global b
  t9 = t7 <> t8
  t10 = global a
  t11 = global b
  t12 = t10 test t11
  t13 = global a
  t14 = global B
  t15 = t13 test t14
  t16 = global a
  t17 = !t16
  t18 = global a
  t19 = t18
  t20 = global a
  t21 = call t20()
  t22 = null
  t23 = global a
  t24 = t23
  t25 = call t0(t3, t6, t9, t12, t15, t17, t19, t22, t24)
  return
"#,
    );
}

#[test]
fn members_and_calls() {
    check(
        r#"a.b.c(d)[e].f?.g?.(h)['i'](j, ...k);"#,
        r#"
fn f0 <module> module ()
 b0:
  t0 = global a
  t1 = t0.b
  t2 = global d
  t3 = call t1.c(t2)
  t4 = global e
  t5 = t3[t4]
  t6 = t5.f
  t7 = global h
  t8 = call t6.g(t7)
  t9 = global j
  t10 = global k
  t11 = call t8.i(t9, ...t10)
  return
"#,
    );
}

#[test]
fn new_delete_update() {
    check(
        r#"const m = new ns.Map(a); delete m.x; delete m[k]; m.n++; m[k] += 1; m.s += 'x';"#,
        r#"
fn f0 <module> module ()
  const m:0 captured: ns.Map
 b0:
  t1 = global ns
  t2 = global a
  t3 = new t1.Map(t2)
  store m:0@0 = t3
  t4 = load m:0@0
  delete t4.x
  t5 = true
  t6 = load m:0@0
  t7 = global k
  delete t6[t7]
  t8 = true
  t9 = load m:0@0
  t10 = t9.n
  t11 = 1
  t12 = t10 + t11
  t9.n = t12
  t13 = load m:0@0
  t14 = global k
  t15 = t13[t14]
  t16 = 1
  t17 = t15 + t16
  t13[t14] = t17
  t18 = load m:0@0
  t19 = t18.s
  t20 = "x"
  t21 = concat t19, t20
  t18.s = t21
  return
"#,
    );
}

#[test]
fn tagged_template_and_sequence() {
    check(
        r#"const r = (a(), sql`select ${x} from ${y}`); (0, m.f)(1);"#,
        r#"
fn f0 <module> module ()
  const r:6 captured
 b0:
  t0 = global a
  t1 = call t0()
  t2 = global sql
  t3 = global x
  t4 = global y
  t5 = tag t2 ["select ", " from ", ""] t3, t4
  store r:6@0 = t5
  t7 = 0
  t8 = global m
  t9 = 1
  t10 = call t8.f(t9)
  return
"#,
    );
}

#[test]
fn objects_and_arrays() {
    check(
        r#"const o = { a, b: 1, 'c-d': 2, [k]: 3, ...r, m() { return this.a; }, get g() { return 1; }, async *h() { yield 1; } }; const l = [1, , ...o];"#,
        r#"
fn f0 <module> module ()
  const o:10 captured
  const l:15 captured
 b0:
  t0 = global a
  t1 = 1
  t2 = 2
  t3 = global k
  t4 = 3
  t5 = global r
  t6 = func f1
  t7 = func f2
  t8 = func f3
  t9 = {a: t0, b: t1, c-d: t2, [t3]: t4, ...t5, m: t6, g: t7, h: t8}
  store o:10@0 = t9
  t11 = 1
  t12 = null
  t13 = load o:10@0
  t14 = [t11, t12, ...t13]
  store l:15@0 = t14
  return
fn f1 m method in f0 ()
 b0:
  t0 = this
  t1 = t0.a
  return t1
fn f2 g getter in f0 ()
 b0:
  t0 = 1
  return t0
fn f3 h method async generator in f0 ()
 b0:
  t0 = 1
  t1 = yield t0
  return
"#,
    );
}

#[test]
fn registers_keep_the_value_read() {
    check(
        r#"function f(x) { return g(x, x++, x); }"#,
        r#"
fn f0 <module> module ()
  const f:1 captured
 b0:
  t0 = func f1
  store f:1@0 = t0
  return
fn f1 f in f0 (x:0)
 b0:
  t1 = global g
  t2 = x:0
  t3 = x:0
  t4 = 1
  t5 = t3 + t4
  x:0 = t5
  t6 = x:0
  t7 = call t1(t2, t3, t6)
  return t7
"#,
    );
}

#[test]
fn captured_and_local() {
    check(
        r#"function f(a, b) { let n = 0; const k = 1; const local = 2; function inner() { n += a; return k; } return inner() + b + local; }"#,
        r#"
fn f0 <module> module ()
  const f:1 captured
 b0:
  t0 = func f1
  store f:1@0 = t0
  return
fn f1 f in f0 (a:0, b:1)
  const a:2 captured
  let n:3 captured
  const k:4 captured
 b0:
  store a:2@1 = a:0
  inner:6 = func f2
  t7 = 0
  store n:3@1 = t7
  t8 = 1
  store k:4@1 = t8
  local:10 = 2
  t11 = call inner:6()
  t12 = t11 + b:1
  t13 = t12 + local:10
  return t13
fn f2 inner in f1 ()
 b0:
  t0 = load n:3@1
  t1 = load a:2@1
  t2 = t0 + t1
  store n:3@1 = t2
  t3 = load k:4@1
  return t3
"#,
    );
}

#[test]
fn function_names() {
    check(
        r#"const f = () => 1; const o = { g: function () {}, h: function named() {} }; x.i = () => {}; server.tool('delete_file', {}, async () => {}); list.map(x => x); (() => {})(); const self = function me(n) { return me(n - 1); };"#,
        r#"
fn f0 <module> module ()
  const f:1 captured
  const o:5 captured
  const self:19 captured
 b0:
  t0 = func f1
  store f:1@0 = t0
  t2 = func f2
  t3 = func f3
  t4 = {g: t2, h: t3}
  store o:5@0 = t4
  t6 = global x
  t7 = func f4
  t6.i = t7
  t8 = global server
  t9 = "delete_file"
  t10 = {}
  t11 = func f5
  t12 = call t8.tool(t9, t10, t11)
  t13 = global list
  t14 = func f6
  t15 = call t13.map(t14)
  t16 = func f7
  t17 = call t16()
  t18 = func f8
  store self:19@0 = t18
  return
fn f1 f arrow in f0 ()
 b0:
  t0 = 1
  return t0
fn f2 g in f0 ()
 b0:
  return
fn f3 named in f0 ()
 b0:
  return
fn f4 i arrow in f0 ()
 b0:
  return
fn f5 delete_file arrow async in f0 ()
 b0:
  return
fn f6 <callback> arrow in f0 (x:0)
 b0:
  return x:0
fn f7 <anonymous> arrow in f0 ()
 b0:
  return
fn f8 me in f0 (n:0)
 b0:
  me:2 = func f8
  t3 = 1
  t4 = n:0 arith t3
  t5 = call me:2(t4)
  return t5
"#,
    );
}

#[test]
fn assignment_to_undeclared() {
    check(
        r#"a = 1; function f() { return arguments.length + this.x; }"#,
        r#"
fn f0 <module> module ()
  const f:1 captured
 b0:
  t0 = func f1
  store f:1@0 = t0
  t2 = 1
  t3 = global globalThis
  t3.a = t2
  return
fn f1 f in f0 ()
 b0:
  t0 = opaque
  t1 = t0.length
  t2 = this
  t3 = t2.x
  t4 = t1 + t3
  return t4
"#,
    );
}

#[test]
fn typescript_is_transparent() {
    check(
        r#"const a = (x as Foo).y!.z; const b = <Bar>g(); const c = h satisfies Baz; (x as any).q = 1;"#,
        r#"
fn f0 <module> module ()
  const a:3 captured
  const b:4 captured: Bar
  const c:7 captured: Baz
 b0:
  t0 = global x
  t1 = t0.y
  t2 = t1.z
  store a:3@0 = t2
  t5 = global g
  t6 = call t5()
  store b:4@0 = t6
  t8 = global h
  store c:7@0 = t8
  t9 = global x
  t10 = 1
  t9.q = t10
  return
"#,
    );
}

#[test]
fn generators() {
    check(
        r#"async function* g() { const x = yield 1; yield* other(); await x; }"#,
        r#"
fn f0 <module> module ()
  const g:1 captured
 b0:
  t0 = func f1
  store g:1@0 = t0
  return
fn f1 g async generator in f0 ()
 b0:
  t0 = 1
  x:2 = yield t0
  t3 = global other
  t4 = call t3()
  t5 = yield t4
  t6 = await x:2
  return
"#,
    );
}

#[test]
fn jsx() {
    check_as(
        "file.tsx",
        r#"const e = <Panel a={f()} {...rest}>text {g()} <b>{h}</b></Panel>;"#,
        r#"
fn f0 <module> module ()
  const e:9 captured
 b0:
  t0 = global Panel
  t1 = global f
  t2 = call t1()
  t3 = global rest
  t4 = global g
  t5 = call t4()
  t6 = global h
  t7 = opaque t6
  t8 = opaque t0, t2, t3, t5, t7
  store e:9@0 = t8
  return
"#,
    );
}
