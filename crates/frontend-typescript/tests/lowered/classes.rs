//! Classes, interfaces, types, enums, namespaces.

use crate::common::check;

#[test]
fn fields_and_constructor() {
    check(
        r#"export class Store extends Base implements IStore, ns.Other { private items: Map<string, Item> = new Map(); cache = new Map<string, Item[]>(); static count = 0; readonly path: string; constructor(private fs: FileSystem, readonly n = 3) { super(fs); this.path = 'x'; } async load(key: string): Promise<Item | null> { return this.items.get(key) ?? null; } get size(): number { return this.items.size; } set size(v) { this.items = v; } static create() { return new Store(fs); } #secret() { return this.#key; } }"#,
        r#"
export Store = Store:1
type Store = class 0
class 0 Store exported extends Base implements IStore implements ns.Other constructor=f6
  load() = f1
  size() = f2
  size() = f3
  create() = f4
  #secret() = f5
  items: Map<Item>
  cache: Map<Array<Item>>
  static count
  readonly path
  fs: FileSystem
  readonly n
fn f0 <module> module ()
  const Store:1 captured
 b0:
  t0 = class 0
  store Store:1@0 = t0
  t2 = 0
  t0.count = t2
  return
fn f1 load method async in f0 of 0 (key:0) -> Item
 b0:
  t1 = this
  t2 = t1.items
  t3 = call t2.get(key:0)
  if t3 b2 else b1
 b1:
  t4 = null
  goto b2
 b2:
  t5 = phi t3, t4
  return t5
fn f2 size getter in f0 of 0 ()
 b0:
  t0 = this
  t1 = t0.items
  t2 = t1.size
  return t2
fn f3 size setter in f0 of 0 (v:0)
 b0:
  t1 = this
  t1.items = v:0
  return
fn f4 create static in f0 of 0 ()
 b0:
  t0 = load Store:1@0
  t1 = global fs
  t2 = new t0(t1)
  return t2
fn f5 #secret method in f0 of 0 ()
 b0:
  t0 = this
  t1 = t0.#key
  return t1
fn f6 constructor constructor in f0 of 0 (fs:0, n:1)
  param fs:0: FileSystem
 b0:
  t2 = 3
  n:1 = phi n:1, t2
  n:3 = n:1
  t4 = call super(fs:0)
  t5 = this
  t5.fs = fs:0
  t6 = this
  t6.n = n:3
  t7 = global Map
  t8 = new t7()
  t9 = this
  t9.items = t8
  t10 = global Map
  t11 = new t10()
  t12 = this
  t12.cache = t11
  t13 = this
  t14 = "x"
  t13.path = t14
  return
"#,
    );
}

#[test]
fn implied_constructor() {
    check(
        r#"class A { x = 1; } class B extends A { y = this.x; }"#,
        r#"
type A = class 0
type B = class 1
class 0 A constructor=f1
  x
class 1 B extends A constructor=f2
  y
fn f0 <module> module ()
  const A:1 captured
  const B:3 captured
 b0:
  t0 = class 0
  store A:1@0 = t0
  t2 = class 1
  store B:3@0 = t2
  return
fn f1 constructor constructor in f0 of 0 ()
 b0:
  t0 = 1
  t1 = this
  t1.x = t0
  return
fn f2 constructor constructor in f0 of 1 (args:0 ...)
 b0:
  t1 = call super(...args:0)
  t2 = this
  t3 = t2.x
  t4 = this
  t4.y = t3
  return
"#,
    );
}

#[test]
fn arrow_field_is_a_method() {
    check(
        r#"class A { handle = async (r: Request) => { await this.save(r); }; plain = function () { return 1; }; }"#,
        r#"
type A = class 0
class 0 A constructor=f1
  handle() = f2
  plain() = f3
  handle
  plain
fn f0 <module> module ()
  const A:1 captured
 b0:
  t0 = class 0
  store A:1@0 = t0
  return
fn f1 constructor constructor in f0 of 0 ()
 b0:
  t0 = func f2
  t1 = this
  t1.handle = t0
  t2 = func f3
  t3 = this
  t3.plain = t2
  return
fn f2 handle arrow async in f1 of 0 (r:0)
  param r:0: Request
 b0:
  t1 = this
  t2 = call t1.save(r:0)
  t3 = await t2
  return
fn f3 plain in f1 of 0 ()
 b0:
  t0 = 1
  return t0
"#,
    );
}

#[test]
fn static_parts_run_where_the_class_stands() {
    check(
        r#"class A { static x = f(); static { this.y = A.x; } static make = () => new A(); }"#,
        r#"
type A = class 0
class 0 A
  make() = f1
  static x
  static make
fn f0 <module> module ()
  const A:1 captured
 b0:
  t0 = class 0
  store A:1@0 = t0
  t2 = global f
  t3 = call t2()
  t0.x = t3
  t4 = load A:1@0
  t5 = t4.x
  t0.y = t5
  t6 = func f1
  t0.make = t6
  return
fn f1 make arrow in f0 of 0 ()
 b0:
  t0 = load A:1@0
  t1 = new t0()
  return t1
"#,
    );
}

#[test]
fn decorators_and_abstract() {
    check(
        r#"abstract class A { @Tool({ name: 'x' }) @mcp.Resource async run() {} abstract load(): Promise<Item>; over(a: string): void; over(a: any) { return a; } }"#,
        r#"
type A = class 0
class 0 A
  run() = f1
  over() = f2
  load: Item
fn f0 <module> module ()
  const A:1 captured
 b0:
  t0 = class 0
  store A:1@0 = t0
  return
fn f1 run method async in f0 of 0 @Tool @mcp.Resource ()
 b0:
  return
fn f2 over method in f0 of 0 (a:0)
 b0:
  return a:0
"#,
    );
}

#[test]
fn class_expression_in_function() {
    check(
        r#"function make(dep) { return class Inner { d = dep; m() { return Inner; } }; }"#,
        r#"
class 0 Inner constructor=f3
  m() = f2
  d
fn f0 <module> module ()
  const make:1 captured
 b0:
  t0 = func f1
  store make:1@0 = t0
  return
fn f1 make in f0 (dep:0)
  const dep:1 captured
  const Inner:3 captured
 b0:
  store dep:1@1 = dep:0
  t2 = class 0
  store Inner:3@1 = t2
  return t2
fn f2 m method in f1 of 0 ()
 b0:
  t0 = load Inner:3@1
  return t0
fn f3 constructor constructor in f1 of 0 ()
 b0:
  t0 = load dep:1@1
  t1 = this
  t1.d = t0
  return
"#,
    );
}

#[test]
fn interfaces_and_aliases() {
    check(
        r#"export interface Store<T> extends Base, Other { items: Item[]; readonly map: Map<string, Item>; load(key: string): Promise<Item>; cb?: () => void; n: number } type Shape = { a: Foo | null; b?: string }; type Mixed = Base & { c: Foo }; type Alias = Promise<Foo>; type Fn = () => void; type Id = string;"#,
        r#"
type Store = class 0
type Shape = class 1
type Mixed = class 2
type Alias = Foo
interface 0 Store exported extends Base implements Other
  items: Array<Item>
  readonly map: Map<Item>
  load: Item
  cb
  n
interface 1 Shape
  a: Foo
  b
interface 2 Mixed extends Base
  c: Foo
fn f0 <module> module ()
 b0:
  return
"#,
    );
}

#[test]
fn types() {
    check(
        r#"let a: Promise<Store>, b: Store[], c: Set<Store> | undefined, d: Record<string, fs.FileHandle>, e: typeof store, f: string, g: { x: 1 }, h: Readonly<Partial<Store>>, i: null | 'x' | Foo, j: ReadonlyArray<Store>, k: InstanceType<typeof Store>, l = x as Store;"#,
        r#"
fn f0 <module> module ()
  const a:0 captured: Store
  const b:2 captured: Array<Store>
  const c:4 captured: Set<Store>
  const d:6 captured: Record<fs.FileHandle>
  const e:8 captured: typeof store
  const f:11 captured
  const g:13 captured
  const h:14 captured: Store
  const i:16 captured: Foo
  const j:18 captured: Array<Store>
  const k:20 captured: Store
  const l:22 captured: Store
 b0:
  t1 = null
  store a:0@0 = t1
  t3 = null
  store b:2@0 = t3
  t5 = null
  store c:4@0 = t5
  t7 = null
  store d:6@0 = t7
  t9 = null
  store e:8@0 = t9
  t10 = null
  store f:11@0 = t10
  t12 = null
  store g:13@0 = t12
  t15 = null
  store h:14@0 = t15
  t17 = null
  store i:16@0 = t17
  t19 = null
  store j:18@0 = t19
  t21 = null
  store k:20@0 = t21
  t23 = global x
  store l:22@0 = t23
  return
"#,
    );
}

#[test]
fn enums_and_namespaces() {
    check(
        r#"enum Color { Red, Green = 5, Blue, Name = 'x', Mix = Red | Green } namespace N { export const x = 1; export function f() { return x; } export class C {} } f(Color.Red, N.f);"#,
        r#"
type N.C = class 0
class 0 C
fn f0 <module> module ()
  const Color:8 captured
  const x:9 captured
  const N:17 captured
 b0:
  t0 = 0
  Red:1 = t0
  t2 = 5
  Green:3 = t2
  t4 = 6
  t5 = "x"
  t6 = Red:1 arith Green:3
  t7 = {Red: t0, Green: t2, Blue: t4, Name: t5, Mix: t6}
  store Color:8@0 = t7
  f:11 = func f1
  t12 = 1
  store x:9@0 = t12
  t13 = class 0
  C:14 = t13
  t15 = load x:9@0
  t16 = {x: t15, f: f:11, C: C:14}
  store N:17@0 = t16
  t18 = global f
  t19 = load Color:8@0
  t20 = t19.Red
  t21 = load N:17@0
  t22 = t21.f
  t23 = call t18(t20, t22)
  return
fn f1 f in f0 ()
 b0:
  t0 = load x:9@0
  return t0
"#,
    );
}
