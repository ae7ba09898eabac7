// SPDX-License-Identifier: Apache-2.0
// The extension with its client, vscode-languageclient, against the language server: node client_test.mjs
// --server=PROGRAM, or HLO_LSP_SERVER. VS Code itself is test/vscode.cjs.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire, Module } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const require = createRequire(import.meta.url);
const resolve = Module._resolveFilename;
Module._resolveFilename = (name, ...rest) => (name === "vscode" ? require.resolve("./vscode.cjs") : resolve(name, ...rest));
const vscode = require("vscode");
const { state, events } = vscode;

const server = process.argv.find((a) => a.startsWith("--server="))?.slice(9) ?? process.env.HLO_LSP_SERVER ?? "hlo-lsp-server";
const folder = mkdtempSync(join(tmpdir(), "hlo-vscode-"));
let passed = 0;
const check = (what, condition) => { assert.ok(condition, what); passed += 1; };
const until = async (what, condition) => {
  for (let k = 0; k < 500 && !condition(); ++k) await new Promise((done) => setTimeout(done, 20));
  check(what, condition());
};

const text = `HloModule model

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = f32[8,16] parameter(0)
  w = f32[16,4] parameter(1)
  h = f32[8,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  zero = f32[] constant(0)
  idle = f32[8,4] tanhh(h)
  ROOT s = f32[8] reduce(h, zero), dimensions={1}, to_apply=sum
}
`;

try {
  state.configuration.hlo = { server: { path: server }, device: "v6e" };
  const extension = require("../dist/extension.js");
  const subscriptions = [];
  await extension.activate({ subscriptions });
  check("each command of the server is there", ["hlo.graph", "hlo.report", "hlo.simulate", "hlo.run", "hlo.diff", "hlo.extract", "hlo.reduce", "hlo.removeDead"].every((name) => state.commands.has(name)));

  const path = join(folder, "model.hlo");
  writeFileSync(path, text);
  const document = new vscode.TextDocument(vscode.Uri.file(path), "hlo", text);
  vscode.workspace.textDocuments.push(document);
  events.onDidOpenTextDocument.fire(document);
  events.onDidChangeTabs.fire({ opened: [document], closed: [], changed: [] });
  const uri = document.uri.toString();
  await until("errors are shown", () => state.diagnostics.get(uri)?.length === 1);
  check("with their hints", state.diagnostics.get(uri)[0].message.includes("did you mean `tanh`?"));

  const token = new vscode.CancellationTokenSource().token;
  const provider = (name) => { const args = state.providers.get(`register${name}Provider`); check(`${name} is provided`, args); return args[1]; };
  const at = (line, what) => new vscode.Position(line, document.lineAt(line).text.indexOf(what));

  // A change, as an editor reports it.
  const changed = document.text.replace("tanhh", "tanh");
  const from = at(13, "tanhh");
  document.text = changed;
  document.version = 2;
  events.onDidChangeTextDocument.fire({ document, contentChanges: [{ range: new vscode.Range(from.line, from.character, from.line, from.character + 5), rangeOffset: 0, rangeLength: 5, text: "tanh" }], reason: undefined });
  const hover = await provider("Hover").provideHover(document, at(11, "h ="), token);
  check("a hover has the shape", JSON.stringify(hover.contents).includes("f32[8,4]"));
  check("and the time on the target of the configuration", JSON.stringify(hover.contents).includes("roofline on v6e"));
  await until("the errors are gone", () => state.diagnostics.get(uri)?.length === 0);
  const definition = await provider("Definition").provideDefinition(document, at(13, "h)"), token);
  check("a definition", [definition].flat()[0].range.start.line === 11);
  check("references", (await provider("Reference").provideReferences(document, at(11, "h ="), { includeDeclaration: true }, token)).length === 3);
  check("an outline", (await provider("DocumentSymbol").provideDocumentSymbols(document, token)).length === 3);
  check("folding", (await provider("FoldingRange").provideFoldingRanges(document, {}, token)).length === 2);
  check("completion", (await provider("CompletionItem").provideCompletionItems(document, at(13, "h)"), token, { triggerKind: 0 })).items.length === 4);
  check("lenses", (await provider("CodeLens").provideCodeLenses(document, token)).length === 4);
  const rename = await provider("Rename").provideRenameEdits(document, at(11, "h ="), "hidden", token);
  check("renaming", rename.entries()[0][1].length === 3);
  check("formatting", (await provider("DocumentFormattingEdit").provideDocumentFormattingEdits(document, { tabSize: 2, insertSpaces: true }, token)).length === 1);

  // Commands, and the selection in both directions.
  const editor = { document, selection: new vscode.Selection(11, 3, 11, 3), viewColumn: 1 };
  vscode.window.activeTextEditor = editor;
  vscode.window.visibleTextEditors.push(editor);
  await vscode.commands.executeCommand("hlo.graph");
  const panel = state.panels[0];
  check("the graph is in a panel", panel.kind === "hlo.graph" && panel.webview.html.includes("graph-data"));
  check("with the script that connects it", panel.webview.html.indexOf("acquireVsCodeApi") < panel.webview.html.indexOf("</head>"));
  events.onDidChangeTextEditorSelection.fire({ textEditor: editor });
  check("the graph follows the text", panel.posted.at(-1)?.select === "h");
  panel.received.fire({ selected: "zero" });
  await until("the text follows the graph", () => state.shown.at(-1)?.options.selection.start.line === 12);
  await vscode.commands.executeCommand("hlo.graph");
  check("a graph that is open is shown again", state.panels.length === 1);
  await vscode.commands.executeCommand("hlo.report", uri);
  check("the report is in another panel", state.panels[1]?.kind === "hlo.report" && state.panels[1].webview.html.includes('"graph" && !location.hash'));
  await vscode.commands.executeCommand("hlo.simulate", uri);
  check("a simulation", state.output.includes("v6e"));
  state.chosen = join(folder, "other.hlo");
  writeFileSync(state.chosen, changed.replace("tanh(", "sine("));
  await vscode.commands.executeCommand("hlo.diff");
  check("differences", state.panels[2]?.kind === "hlo.diff");
  await vscode.commands.executeCommand("hlo.extract");
  check("an instruction in a file of its own", state.shown.at(-1).document.path.endsWith("model.h.hlo"));
  await vscode.commands.executeCommand("hlo.removeDead");
  await until("dead instructions are removed", () => state.applied.length === 1);
  editor.selection = new vscode.Selection(7, 0, 7, 0);
  await vscode.commands.executeCommand("hlo.extract");
  check("without an instruction, a message", state.errors.at(-1)?.includes("no instruction on this line"));

  await extension.deactivate();
  for (const each of subscriptions) each.dispose();
  console.log(`${passed} passed, 0 failed`);
} finally {
  rmSync(folder, { recursive: true });
}
