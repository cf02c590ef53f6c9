//! Control flow: branches, loops, exceptions.

use crate::common::check;

#[test]
fn if_else_chain() {
    check(
        r#"function f(a) { if (a.x) { g(); } else if (a.y && !a.z) { h(); } else { return 1; } k(); }"#,
        r#"
fn f0 <module> module ()
  const f:1 captured
 b0:
  t0 = func f1
  store f:1@0 = t0
  return
fn f1 f in f0 (a:0)
 b0:
  t1 = a:0.x
  if t1 b1 else b2
 b1:
  t2 = global g
  t3 = call t2()
  goto b3
 b2:
  t4 = a:0.y
  if t4 b6 else b5
 b3:
  t9 = global k
  t10 = call t9()
  return
 b4:
  t6 = global h
  t7 = call t6()
  goto b3
 b5:
  t8 = 1
  return t8
 b6:
  t5 = a:0.z
  if t5 b5 else b4
"#,
    );
}

#[test]
fn short_circuit_values() {
    check(
        r#"function f(a, b) { const x = a && b(); const y = a.m ?? b(); return x || y; }"#,
        r#"
fn f0 <module> module ()
  const f:1 captured
 b0:
  t0 = func f1
  store f:1@0 = t0
  return
fn f1 f in f0 (a:0, b:1)
 b0:
  if a:0 b1 else b2
 b1:
  t2 = call b:1()
  goto b2
 b2:
  x:4 = phi a:0, t2
  t5 = a:0.m
  if t5 b4 else b3
 b3:
  t6 = call b:1()
  goto b4
 b4:
  y:8 = phi t5, t6
  if x:4 b6 else b5
 b5:
  goto b6
 b6:
  t9 = phi x:4, y:8
  return t9
"#,
    );
}

#[test]
fn conditional_chain() {
    check(
        r#"function f(a) { return a.x ? 1 : a.y ? g() : 3; }"#,
        r#"
fn f0 <module> module ()
  const f:1 captured
 b0:
  t0 = func f1
  store f:1@0 = t0
  return
fn f1 f in f0 (a:0)
 b0:
  t1 = a:0.x
  if t1 b2 else b3
 b1:
  t7 = phi t2, t5, t6
  return t7
 b2:
  t2 = 1
  goto b1
 b3:
  t3 = a:0.y
  if t3 b4 else b5
 b4:
  t4 = global g
  t5 = call t4()
  goto b1
 b5:
  t6 = 3
  goto b1
"#,
    );
}

#[test]
fn logical_assignment() {
    check(
        r#"function f(o, x) { o.cache ??= g(); x ||= h(); o[x] &&= k(); return x; }"#,
        r#"
fn f0 <module> module ()
  const f:1 captured
 b0:
  t0 = func f1
  store f:1@0 = t0
  return
fn f1 f in f0 (o:0, x:1)
 b0:
  t2 = o:0.cache
  if t2 b2 else b1
 b1:
  t3 = global g
  t4 = call t3()
  o:0.cache = t4
  goto b2
 b2:
  t5 = phi t2, t4
  t6 = x:1
  if t6 b4 else b3
 b3:
  t7 = global h
  t8 = call t7()
  x:1 = t8
  goto b4
 b4:
  t9 = phi t6, t8
  t10 = x:1
  t11 = o:0[t10]
  if t11 b5 else b6
 b5:
  t12 = global k
  t13 = call t12()
  o:0[t10] = t13
  goto b6
 b6:
  t14 = phi t11, t13
  t15 = x:1
  return t15
"#,
    );
}

#[test]
fn while_and_for() {
    check(
        r#"function f(n) { for (let i = 0; i < n; i++) { if (i == 3) continue; g(i); } while (n--) g(n); do { h(); } while (n); }"#,
        r#"
fn f0 <module> module ()
  const f:1 captured
 b0:
  t0 = func f1
  store f:1@0 = t0
  return
fn f1 f in f0 (n:0)
 b0:
  i:2 = 0
  goto b1
 b1:
  t3 = i:2
  t4 = n:0
  t5 = t3 <> t4
  if t5 b3 else b4
 b2:
  t12 = i:2
  t13 = 1
  t14 = t12 + t13
  i:2 = t14
  goto b1
 b3:
  t6 = i:2
  t7 = 3
  t8 = t6 == t7
  if t8 b5 else b6
 b4:
  goto b7
 b5:
  goto b2
 b6:
  t9 = global g
  t10 = i:2
  t11 = call t9(t10)
  goto b2
 b7:
  t15 = n:0
  t16 = 1
  t17 = t15 arith t16
  n:0 = t17
  if t15 b8 else b9
 b8:
  t18 = global g
  t19 = n:0
  t20 = call t18(t19)
  goto b7
 b9:
  goto b10
 b10:
  t21 = global h
  t22 = call t21()
  goto b11
 b11:
  t23 = n:0
  if t23 b10 else b12
 b12:
  return
"#,
    );
}

#[test]
fn endless_loop_has_no_way_out() {
    check(
        r#"function f() { while (true) { g(); } h(); }"#,
        r#"
fn f0 <module> module ()
  const f:1 captured
 b0:
  t0 = func f1
  store f:1@0 = t0
  return
fn f1 f in f0 ()
 b0:
  goto b1
 b1:
  goto b2
 b2:
  t0 = global g
  t1 = call t0()
  goto b1
"#,
    );
}

#[test]
fn for_of_and_in() {
    check(
        r#"async function f(xs) { for (const x of xs) g(x); for await (const { a } of xs) g(a); for (const k in xs) g(k); }"#,
        r#"
fn f0 <module> module ()
  const f:1 captured
 b0:
  t0 = func f1
  store f:1@0 = t0
  return
fn f1 f async in f0 (xs:0)
 b0:
  goto b1
 b1:
  multi b2 b3
 b2:
  x:2 = element of xs:0
  t3 = global g
  t4 = call t3(x:2)
  goto b1
 b3:
  goto b4
 b4:
  multi b5 b6
 b5:
  t5 = element of xs:0
  t6 = await t5
  a:8 = t6.a
  t9 = global g
  t10 = call t9(a:8)
  goto b4
 b6:
  goto b7
 b7:
  multi b8 b9
 b8:
  k:12 = key of xs:0
  t13 = global g
  t14 = call t13(k:12)
  goto b7
 b9:
  return
"#,
    );
}

#[test]
fn labels() {
    check(
        r#"function f(xs) { outer: for (const x of xs) { for (;;) { if (x) continue outer; if (g()) break outer; break; } } done: { if (xs) break done; h(); } }"#,
        r#"
fn f0 <module> module ()
  const f:1 captured
 b0:
  t0 = func f1
  store f:1@0 = t0
  return
fn f1 f in f0 (xs:0)
 b0:
  goto b1
 b1:
  multi b2 b3
 b2:
  x:2 = element of xs:0
  goto b4
 b3:
  goto b10
 b4:
  goto b5
 b5:
  if x:2 b6 else b7
 b6:
  goto b1
 b7:
  t3 = global g
  t4 = call t3()
  if t4 b8 else b9
 b8:
  goto b10
 b9:
  goto b11
 b10:
  if xs:0 b12 else b13
 b11:
  goto b1
 b12:
  goto b14
 b13:
  t5 = global h
  t6 = call t5()
  goto b14
 b14:
  return
"#,
    );
}

#[test]
fn switch_falls_through() {
    check(
        r#"function f(a) { switch (a) { case 1: g(); case 2: h(); break; default: k(); case 3: return 3; } m(); }"#,
        r#"
fn f0 <module> module ()
  const f:1 captured
 b0:
  t0 = func f1
  store f:1@0 = t0
  return
fn f1 f in f0 (a:0)
 b0:
  t1 = 1
  t2 = a:0 == t1
  if t2 b1 else b5
 b1:
  t7 = global g
  t8 = call t7()
  goto b2
 b2:
  t9 = global h
  t10 = call t9()
  goto b8
 b3:
  t11 = global k
  t12 = call t11()
  goto b4
 b4:
  t13 = 3
  return t13
 b5:
  t3 = 2
  t4 = a:0 == t3
  if t4 b2 else b6
 b6:
  t5 = 3
  t6 = a:0 == t5
  if t6 b4 else b7
 b7:
  goto b3
 b8:
  t14 = global m
  t15 = call t14()
  return
"#,
    );
}

#[test]
fn try_catch() {
    check(
        r#"async function f() { try { await g(); } catch (e) { h(e); } k(); }"#,
        r#"
fn f0 <module> module ()
  const f:1 captured
 b0:
  t0 = func f1
  store f:1@0 = t0
  return
fn f1 f async in f0 ()
 b0:
  goto b2
 b1:
  e:4 = catch
  t5 = global h
  t6 = call t5(e:4)
  goto b3
 b2 catch b1:
  t0 = global g
  t1 = call t0()
  t2 = await t1
  goto b3
 b3:
  t7 = global k
  t8 = call t7()
  return
"#,
    );
}

#[test]
fn try_finally() {
    check(
        r#"async function f() { const l = await lock(); try { return await g(); } finally { l.release(); } }"#,
        r#"
fn f0 <module> module ()
  const f:1 captured
 b0:
  t0 = func f1
  store f:1@0 = t0
  return
fn f1 f async in f0 ()
 b0:
  t0 = global lock
  t1 = call t0()
  l:3 = await t1
  goto b3
 b1:
  t9 = call l:3.release()
  multi b4 b5
 b2:
  t8 = catch
  goto b1
 b3 catch b2:
  t4 = global g
  t5 = call t4()
  t6 = await t5
  t7 = t6
  goto b1
 b4:
  throw t8
 b5:
  return t7
"#,
    );
}

#[test]
fn try_catch_finally_in_a_loop() {
    check(
        r#"function f(xs) { for (const x of xs) { try { if (x) continue; if (g()) break; h(); } catch { k(); } finally { m(); } } }"#,
        r#"
fn f0 <module> module ()
  const f:1 captured
 b0:
  t0 = func f1
  store f:1@0 = t0
  return
fn f1 f in f0 (xs:0)
 b0:
  goto b1
 b1:
  multi b2 b3
 b2:
  x:2 = element of xs:0
  goto b6
 b3:
  return
 b4:
  t11 = global m
  t12 = call t11()
  multi b14 b15 b1 b3
 b5:
  t10 = catch
  goto b4
 b6 catch b5:
  goto b8
 b7 catch b5:
  t7 = catch
  t8 = global k
  t9 = call t8()
  goto b13
 b8 catch b7:
  if x:2 b9 else b10
 b9 catch b7:
  goto b4
 b10 catch b7:
  t3 = global g
  t4 = call t3()
  if t4 b11 else b12
 b11 catch b7:
  goto b4
 b12 catch b7:
  t5 = global h
  t6 = call t5()
  goto b13
 b13 catch b5:
  goto b4
 b14:
  goto b1
 b15:
  throw t10
"#,
    );
}

#[test]
fn nested_finally_with_return() {
    check(
        r#"function f() { try { try { return 1; } finally { g(); } } finally { h(); } }"#,
        r#"
fn f0 <module> module ()
  const f:1 captured
 b0:
  t0 = func f1
  store f:1@0 = t0
  return
fn f1 f in f0 ()
 b0:
  goto b3
 b1:
  t6 = global h
  t7 = call t6()
  multi b8 b9
 b2:
  t5 = catch
  goto b1
 b3 catch b2:
  goto b6
 b4 catch b2:
  t3 = global g
  t4 = call t3()
  multi b7 b1
 b5 catch b2:
  t2 = catch
  goto b4
 b6 catch b5:
  t0 = 1
  t1 = t0
  goto b4
 b7 catch b2:
  throw t2
 b8:
  throw t5
 b9:
  return t1
"#,
    );
}

#[test]
fn return_in_finally() {
    check(
        r#"function f() { try { g(); } finally { return 2; } }"#,
        r#"
fn f0 <module> module ()
  const f:1 captured
 b0:
  t0 = func f1
  store f:1@0 = t0
  return
fn f1 f in f0 ()
 b0:
  goto b3
 b1:
  t3 = 2
  return t3
 b2:
  t2 = catch
  goto b1
 b3 catch b2:
  t0 = global g
  t1 = call t0()
  goto b1
"#,
    );
}

#[test]
fn throw_and_dead_code() {
    check(
        r#"function f() { throw new Error('x'); g(); function h() {} }"#,
        r#"
fn f0 <module> module ()
  const f:1 captured
 b0:
  t0 = func f1
  store f:1@0 = t0
  return
fn f1 f in f0 ()
 b0:
  h:1 = func f2
  t2 = global Error
  t3 = "x"
  t4 = new t2(t3)
  throw t4
fn f2 h in f1 ()
 b0:
  return
"#,
    );
}

#[test]
fn using() {
    check(
        r#"async function f() { using a = open(); await using b = lock(); return a.read(); }"#,
        r#"
fn f0 <module> module ()
  const f:1 captured
 b0:
  t0 = func f1
  store f:1@0 = t0
  return
fn f1 f async in f0 ()
 b0:
  t0 = global open
  t1 = call t0()
  t2 = enter t1
  a:4 = t2
  goto b3
 b1:
  exit t2
  multi b8 b9
 b2:
  t15 = catch
  goto b1
 b3 catch b2:
  t5 = global lock
  t6 = call t5()
  t7 = enter t6
  b:9 = t7
  goto b6
 b4 catch b2:
  exit t7
  t13 = null
  t14 = await t13
  multi b7 b1
 b5 catch b2:
  t12 = catch
  goto b4
 b6 catch b5:
  t10 = call a:4.read()
  t11 = t10
  goto b4
 b7 catch b2:
  throw t12
 b8:
  throw t15
 b9:
  return t11
"#,
    );
}
