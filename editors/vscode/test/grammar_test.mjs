// SPDX-License-Identifier: Apache-2.0
// The TextMate grammars, by the library of VS Code: node grammar_test.mjs
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { Registry, INITIAL, parseRawGrammar } = require("vscode-textmate");
const oniguruma = require("vscode-oniguruma");

const wasm = readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm"));
await oniguruma.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength));
const registry = new Registry({
  onigLib: Promise.resolve({
    createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
    createOnigString: (s) => new oniguruma.OnigString(s),
  }),
  loadGrammar: async (scope) => {
    const path = new URL(`../syntaxes/${scope.replace("source.", "")}.tmLanguage.json`, import.meta.url);
    return parseRawGrammar(readFileSync(path, "utf8"), path.pathname);
  },
});

let passed = 0;
// Checks the innermost scopes of words of a text.
async function check(scope, text, wanted) {
  const grammar = await registry.loadGrammar(scope);
  const found = new Map();
  let state = INITIAL;
  for (const line of text.split("\n")) {
    const result = grammar.tokenizeLine(line, state);
    state = result.ruleStack;
    for (const token of result.tokens) {
      const word = line.slice(token.startIndex, token.endIndex).trim();
      if (!found.has(word)) found.set(word, []);
      found.get(word).push(token.scopes.at(-1));
    }
  }
  for (const [word, kind] of Object.entries(wanted)) {
    assert.ok(found.get(word)?.some((each) => each.startsWith(kind)), `${word}: ${kind}, not ${found.get(word)}`);
    passed += 1;
  }
}

await check("source.hlo", `HloModule model, is_scheduled=true
%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  ROOT %r = f32[] add(f32[] %a, f32[] %b)
}
// A comment.
ENTRY %main (x: f32[8]) -> f32[] {
  %h = f32[8]{0} all-reduce-start(%x), replica_groups={}, to_apply=%sum, metadata={op_name="jit(f)/\\"q\\""}
  /* two
  lines */ %c = pred[8] compare(%h, %h), direction=LT, frontend_attributes={k="v"}
  %n = f32[] constant(-1.5e-3)
  %w = f32[] no-such-opcode(%c)
}`, {
  HloModule: "keyword.control", model: "entity.name.namespace", "%sum": "entity.name.function", f32: "storage.type",
  pred: "storage.type", add: "support.function", "all-reduce-start": "support.function", compare: "support.function",
  ENTRY: "keyword.control", ROOT: "keyword.control", "%main": "entity.name.function", "%h": "variable.other.declaration",
  "// A comment.": "comment.line", two: "comment.block", LT: "constant.other.enum", to_apply: "variable.parameter.attribute",
  direction: "variable.parameter.attribute", op_name: "variable.parameter", '"': "string.quoted", '\\"': "constant.character.escape",
  "-1.5e-3": "constant.numeric", true: "constant.language", "no-such-opcode": "invalid.illegal",
});
await check("source.tpu-machine", "tpu mine\n  like v5e\n  hbm_rate 800 GB/s # measured", {
  tpu: "keyword.control", mine: "entity.name.type", hbm_rate: "variable.parameter", "800": "constant.numeric",
  "GB/s": "keyword.other.unit", "# measured": "comment.line",
});
await check("source.hlo-pipeline", "algsimp,loop(licm,dce)*,fusion{max-operands=16}", {
  algsimp: "support.function", loop: "entity.name.type.group", "*": "keyword.operator", "max-operands": "variable.parameter",
  "16": "constant.other",
});
console.log(`${passed} passed, 0 failed`);
