//! Destructuring, wherever it can stand.

use crate::common::check;

#[test]
fn object_pattern() {
    check(
        r#"const { a, b: c, d = 1, e: { f }, 'g-h': i, [k]: l, ...rest } = g();"#,
        r#"
fn f0 <module> module ()
  const a:3 captured
  const c:5 captured
  const d:9 captured
  const f:12 captured
  const i:14 captured
  const l:17 captured
  const rest:19 captured
 b0:
  t0 = global g
  t1 = call t0()
  t2 = t1.a
  store a:3@0 = t2
  t4 = t1.b
  store c:5@0 = t4
  t6 = t1.d
  t7 = 1
  t8 = phi t6, t7
  store d:9@0 = t8
  t10 = t1.e
  t11 = t10.f
  store f:12@0 = t11
  t13 = t1.g-h
  store i:14@0 = t13
  t15 = global k
  t16 = t1[t15]
  store l:17@0 = t16
  t18 = {...t1}
  store rest:19@0 = t18
  return
"#,
    );
}

#[test]
fn array_pattern() {
    check(
        r#"function f(p) { const [a, , b = g(), [c], ...rest] = p; return a; }"#,
        r#"
fn f0 <module> module ()
  const f:1 captured
 b0:
  t0 = func f1
  store f:1@0 = t0
  return
fn f1 f in f0 (p:0)
 b0:
  t1 = 0
  a:3 = p:0[t1]
  t4 = 2
  t5 = p:0[t4]
  if t5 b2 else b1
 b1:
  t6 = global g
  t7 = call t6()
  goto b2
 b2:
  b:9 = phi t5, t7
  t10 = 3
  t11 = p:0[t10]
  t12 = 0
  c:14 = t11[t12]
  rest:16 = [...p:0]
  return a:3
"#,
    );
}

#[test]
fn parameters() {
    check(
        r#"function f(a, b = 1, { c, d = h() } = {}, [e], ...rest) { return () => a + c; }"#,
        r#"
fn f0 <module> module ()
  const f:1 captured
 b0:
  t0 = func f1
  store f:1@0 = t0
  return
fn f1 f in f0 (a:0, b:1, t2, t3, rest:4 ...)
  const a:5 captured
  const c:10 captured
 b0:
  store a:5@1 = a:0
  t6 = 1
  b:1 = phi b:1, t6
  b:7 = b:1
  t8 = {}
  t2 = phi t2, t8
  t9 = t2.c
  store c:10@1 = t9
  t11 = t2.d
  if t11 b2 else b1
 b1:
  t12 = global h
  t13 = call t12()
  goto b2
 b2:
  d:15 = phi t11, t13
  t16 = 0
  e:18 = t3[t16]
  t19 = func f2
  return t19
fn f2 <anonymous> arrow in f1 ()
 b0:
  t0 = load a:5@1
  t1 = load c:10@1
  t2 = t0 + t1
  return t2
"#,
    );
}

#[test]
fn assignment_pattern() {
    check(
        r#"let a, b, o = {}; [a, b] = [b, a]; ({ a, x: o.y, z: [b = 2], ...o.r } = g());"#,
        r#"
fn f0 <module> module ()
  let a:1 captured
  let b:3 captured
  const o:5 captured
 b0:
  t0 = null
  store a:1@0 = t0
  t2 = null
  store b:3@0 = t2
  t4 = {}
  store o:5@0 = t4
  t6 = load b:3@0
  t7 = load a:1@0
  t8 = [t6, t7]
  t9 = 0
  t10 = t8[t9]
  store a:1@0 = t10
  t11 = 1
  t12 = t8[t11]
  store b:3@0 = t12
  t13 = global g
  t14 = call t13()
  t15 = t14.a
  store a:1@0 = t15
  t16 = t14.x
  t17 = load o:5@0
  t17.y = t16
  t18 = t14.z
  t19 = 0
  t20 = t18[t19]
  t21 = 2
  t22 = phi t20, t21
  store b:3@0 = t22
  t23 = {...t14}
  t24 = load o:5@0
  t24.r = t23
  return
"#,
    );
}

#[test]
fn loop_and_catch_patterns() {
    check(
        r#"function f(m) { for (const [k, { v }] of m) g(k, v); try { g(); } catch ({ message }) { h(message); } }"#,
        r#"
fn f0 <module> module ()
  const f:1 captured
 b0:
  t0 = func f1
  store f:1@0 = t0
  return
fn f1 f in f0 (m:0)
 b0:
  goto b1
 b1:
  multi b2 b3
 b2:
  t1 = element of m:0
  t2 = 0
  k:4 = t1[t2]
  t5 = 1
  t6 = t1[t5]
  v:8 = t6.v
  t9 = global g
  t10 = call t9(k:4, v:8)
  goto b1
 b3:
  goto b5
 b4:
  t13 = catch
  message:15 = t13.message
  t16 = global h
  t17 = call t16(message:15)
  goto b6
 b5 catch b4:
  t11 = global g
  t12 = call t11()
  goto b6
 b6:
  return
"#,
    );
}
