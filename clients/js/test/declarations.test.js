// index.d.ts declares what index.js exports, no more and no less, and the methods that it declares are there.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'

import * as exported from '../src/index.js'

const TEXT = readFileSync(new URL('../src/index.d.ts', import.meta.url), 'utf8')
const CLASSES = Object.fromEntries(
  [...TEXT.matchAll(/^export class (\w+)[^{]*\{(.*?)\}$/gms)].map(([, name, body]) => [name, body]))

test('every value that is exported is declared', () => {
  const declared = [...TEXT.matchAll(/^export (?:class|function|const) (\w+)/gm)].map(([, name]) => name)
  assert.deepEqual([...new Set(declared)].sort(), Object.keys(exported).sort())
})

for (const [name, body] of Object.entries(CLASSES)) {
  test(`${name} has the methods that are declared, and its parent`, () => {
    const found = exported[name]
    const methods = [...body.matchAll(/^ {2}(\w+)\(/gm)].map(([, method]) => method).filter((each) => each !== 'constructor')
    for (const method of methods) assert.equal(typeof found.prototype[method], 'function', method)
    const parent = new RegExp(`^export class ${name}(?:<.*?>)? extends (\\w+)`, 'm').exec(TEXT)?.[1]
    if (parent !== undefined) {
      assert.ok(found.prototype instanceof (exported[parent] ?? globalThis[parent]), parent)
    }
  })
}
