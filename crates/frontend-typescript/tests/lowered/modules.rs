//! Imports, exports, CommonJS, directives.

use crate::common::check;

#[test]
fn imports() {
    check(
        r#"import def, { a as b, default as c } from 'm'; import * as ns from 'node:fs'; import type { T } from './t'; import { type U } from './u'; import 'side'; import eq = require('eq'); import al = ns.promises; use(def, b, c, eq);"#,
        r#"
import def:0 = default from "m"
import b:1 = a from "m"
import c:2 = default from "m"
import ns:3 = * from "node:fs"
import T:4 = T from "./t"
import U:5 = U from "./u"
import side:6 = * from "side"
import eq:7 = * from "eq"
type def = import of 0
type b = import of 1
type c = import of 2
type ns = import of 3
type T = import of 4
type U = import of 5
type eq = import of 7
fn f0 <module> module ()
  import def:0 captured
  import b:1 captured
  import c:2 captured
  import ns:3 captured
  import T:4 captured
  import U:5 captured
  import side:6 captured
  import eq:7 captured
  const al:10 captured
 b0:
  t8 = load ns:3@0
  t9 = t8.promises
  store al:10@0 = t9
  t11 = global use
  t12 = load def:0@0
  t13 = load b:1@0
  t14 = load c:2@0
  t15 = load eq:7@0
  t16 = call t11(t12, t13, t14, t15)
  return
"#,
    );
}

#[test]
fn exports() {
    check(
        r#"export const x = 1; export function f() {} export class C {} const l = 2, g = () => {}; export { l as m, g }; export { a as b, default } from './o'; export * from './star'; export * as ns from './ns'; export type { T } from './t'; export default async function main() {}"#,
        r#"
export default = main:3
export x = x:5
export f = f:1
export C = C:7
export m = l:9
export g = g:11
export b = a from "./o"
export default = default from "./o"
export ns = * from "./ns"
export T = T from "./t"
export * from "./star"
type C = class 0
class 0 C exported
fn f0 <module> module ()
  const f:1 captured
  const main:3 captured
  const x:5 captured
  const C:7 captured
  const l:9 captured
  const g:11 captured
 b0:
  t0 = func f1
  store f:1@0 = t0
  t2 = func f2
  store main:3@0 = t2
  t4 = 1
  store x:5@0 = t4
  t6 = class 0
  store C:7@0 = t6
  t8 = 2
  store l:9@0 = t8
  t10 = func f3
  store g:11@0 = t10
  return
fn f1 f exported in f0 ()
 b0:
  return
fn f2 main async exported in f0 ()
 b0:
  return
fn f3 g arrow exported in f0 ()
 b0:
  return
"#,
    );
}

#[test]
fn default_expression() {
    check(
        r#"const s = 1; export default { s, run: () => s };"#,
        r#"
export default = default:5
fn f0 <module> module ()
  const s:1 captured
  const default:5 captured
 b0:
  t0 = 1
  store s:1@0 = t0
  t2 = load s:1@0
  t3 = func f1
  t4 = {s: t2, run: t3}
  store default:5@0 = t4
  return
fn f1 run arrow in f0 ()
 b0:
  t0 = load s:1@0
  return t0
"#,
    );
}

#[test]
fn default_identifier() {
    check(
        r#"class Server {} export default Server;"#,
        r#"
export default = Server:1
type Server = class 0
class 0 Server exported
fn f0 <module> module ()
  const Server:1 captured
 b0:
  t0 = class 0
  store Server:1@0 = t0
  return
"#,
    );
}

#[test]
fn commonjs() {
    check(
        r#"const fs = require('fs'); const { join } = require('path'); function load() {} exports.load = load; exports.save = async (x) => { fs.writeFileSync(join(x)); }; module.exports.n = 1;"#,
        r#"
import fs:2 = * from "fs"
import path:5 = * from "path"
export load = load:1
export save = save:11
export n = n:13
fn f0 <module> module ()
  const load:1 captured
  import fs:2 captured
  const fs:4 captured
  import path:5 captured
  const join:8 captured
  let save:11 captured
  let n:13 captured
 b0:
  t0 = func f1
  store load:1@0 = t0
  t3 = load fs:2@0
  store fs:4@0 = t3
  t6 = load path:5@0
  t7 = t6.join
  store join:8@0 = t7
  t9 = load load:1@0
  t10 = func f2
  store save:11@0 = t10
  t12 = 1
  store n:13@0 = t12
  return
fn f1 load in f0 ()
 b0:
  return
fn f2 save arrow async exported in f0 (x:0)
 b0:
  t1 = load fs:4@0
  t2 = load join:8@0
  t3 = call t2(x:0)
  t4 = call t1.writeFileSync(t3)
  return
"#,
    );
}

#[test]
fn commonjs_object() {
    check(
        r#"function a() {} module.exports = { a, b: () => 1, c: 2 };"#,
        r#"
export a = a:1
export b = b:7
export c = c:9
export default = default:10
fn f0 <module> module ()
  const a:1 captured
  let b:7 captured
  let c:9 captured
  let default:10 captured
 b0:
  t0 = func f1
  store a:1@0 = t0
  t2 = load a:1@0
  t3 = func f2
  t4 = 2
  t5 = {a: t2, b: t3, c: t4}
  t6 = t5.b
  store b:7@0 = t6
  t8 = t5.c
  store c:9@0 = t8
  store default:10@0 = t5
  return
fn f1 a in f0 ()
 b0:
  return
fn f2 b arrow in f0 ()
 b0:
  t0 = 1
  return t0
"#,
    );
}

#[test]
fn dynamic_import() {
    check(
        r#"async function f() { const { x } = await import('./x.js'); const y = require('y'); return import(name); } const again = import('./x.js');"#,
        r#"
import ./x.js:0 = * from "./x.js"
import y:1 = * from "y"
fn f0 <module> module ()
  import ./x.js:0 captured
  import y:1 captured
  const f:3 captured
  const again:5 captured
 b0:
  t2 = func f1
  store f:3@0 = t2
  t4 = load ./x.js:0@0
  store again:5@0 = t4
  return
fn f1 f async in f0 ()
 b0:
  t0 = load ./x.js:0@0
  t1 = await t0
  x:3 = t1.x
  y:5 = load y:1@0
  t6 = global name
  t7 = opaque t6
  return t7
"#,
    );
}

#[test]
fn directives() {
    check(
        r#"// toctou: ignore[rule] why
f(); // toctou: allow
const s = '// toctou: no';
/* toctou: block */ g();
"#,
        r#"
fn f0 <module> module ()
  const s:3 captured
 b0:
  t0 = global f
  t1 = call t0()
  t2 = "// toctou: no"
  store s:3@0 = t2
  t4 = global g
  t5 = call t4()
  return
directive alone "toctou: ignore[rule] why"
directive "toctou: allow"
directive alone "toctou: block"
"#,
    );
}

#[test]
fn ambient() {
    check(
        r#"declare const KV: KVNamespace; declare function go(): void; declare global { var z: number } export async function f() { await KV.get('x'); go(); }"#,
        r#"
export f = f:4
fn f0 <module> module ()
  const go:1 captured
  const KV:2 captured: KVNamespace
  const f:4 captured
 b0:
  t0 = global go
  store go:1@0 = t0
  t3 = func f1
  store f:4@0 = t3
  t5 = global KV
  store KV:2@0 = t5
  return
fn f1 f async exported in f0 ()
 b0:
  t0 = load KV:2@0
  t1 = "x"
  t2 = call t0.get(t1)
  t3 = await t2
  t4 = load go:1@0
  t5 = call t4()
  return
"#,
    );
}

#[test]
fn hoisting() {
    check(
        r#"main(); function main() { inner(); function inner() { return late; } } const late = 1;"#,
        r#"
fn f0 <module> module ()
  const late:0 captured
  const main:2 captured
 b0:
  t1 = func f1
  store main:2@0 = t1
  t3 = load main:2@0
  t4 = call t3()
  t5 = 1
  store late:0@0 = t5
  return
fn f1 main in f0 ()
 b0:
  inner:1 = func f2
  t2 = call inner:1()
  return
fn f2 inner in f1 ()
 b0:
  t0 = load late:0@0
  return t0
"#,
    );
}
