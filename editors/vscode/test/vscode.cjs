// SPDX-License-Identifier: Apache-2.0
// The part of VS Code's interface that the extension and vscode-languageclient use, for tests under Node: positions and
// documents as they are, providers and commands as the client registers them, everything else as an empty class.
const { EventEmitter: Emitter } = require("node:events");
const { readFileSync } = require("node:fs");
const { fileURLToPath, pathToFileURL } = require("node:url");

class Disposable {
  constructor(dispose) { this.end = dispose; }
  dispose() { this.end?.(); }
  static from(...all) { return new Disposable(() => all.forEach((each) => each.dispose())); }
}
class EventEmitter {
  constructor() {
    this.emitter = new Emitter();
    this.event = (listener, self) => {
      const bound = self ? listener.bind(self) : listener;
      this.emitter.on("event", bound);
      return new Disposable(() => this.emitter.off("event", bound));
    };
  }
  fire(value) { this.emitter.emit("event", value); }
  dispose() { this.emitter.removeAllListeners(); }
}
class CancellationTokenSource {
  constructor() {
    this.emitter = new EventEmitter();
    this.token = { isCancellationRequested: false, onCancellationRequested: this.emitter.event };
  }
  cancel() { this.token.isCancellationRequested = true; this.emitter.fire(); }
  dispose() {}
}
class Position {
  constructor(line, character) { this.line = line; this.character = character; }
}
class Range {
  constructor(a, b, c, d) {
    this.start = typeof a === "number" ? new Position(a, b) : a;
    this.end = typeof a === "number" ? new Position(c, d) : b;
  }
  get isEmpty() { return this.start.line === this.end.line && this.start.character === this.end.character; }
}
class Selection extends Range {
  get active() { return this.end; }
}
class Uri {
  constructor(text) { this.text = text; }
  static parse(text) { return new Uri(text); }
  static file(path) { return new Uri(pathToFileURL(path).href); }
  get scheme() { return this.text.slice(0, this.text.indexOf(":")); }
  get fsPath() { return fileURLToPath(this.text); }
  get path() { return new URL(this.text).pathname; }
  toString() { return this.text; }
}
class TextDocument {
  constructor(uri, languageId, text) { Object.assign(this, { uri, languageId, text, version: 1, isClosed: false, lineCount: text.split("\n").length }); }
  getText() { return this.text; }
  lineAt(line) {
    const text = this.text.split("\n")[line];
    return { text, range: new Range(line, 0, line, text.length) };
  }
}
class TabInputText { constructor(uri) { this.uri = uri; } }
class WorkspaceEdit {
  constructor() { this.edits = []; }
  set(uri, edits) { this.edits.push([uri, edits]); }
  replace(uri, range, newText) { this.edits.push([uri, [{ range, newText }]]); }
  entries() { return this.edits; }
}

const state = { providers: new Map(), commands: new Map(), panels: [], output: "", diagnostics: new Map(), shown: [], errors: [], configuration: {}, applied: [] };
const events = Object.fromEntries(["onDidOpenTextDocument", "onDidChangeTextDocument", "onDidCloseTextDocument", "onDidSaveTextDocument", "onWillSaveTextDocument",
  "onWillSaveTextDocumentWaitUntil", "onDidChangeConfiguration", "onDidChangeWorkspaceFolders", "onDidCreateFiles", "onDidRenameFiles", "onDidDeleteFiles", "onWillCreateFiles",
  "onWillRenameFiles", "onWillDeleteFiles", "onDidOpenNotebookDocument", "onDidChangeNotebookDocument", "onDidCloseNotebookDocument", "onDidSaveNotebookDocument", "onDidChangeTextEditorSelection", "onDidChangeActiveTextEditor",
  "onDidChangeVisibleTextEditors", "onDidChangeTabs"].map((name) => [name, new EventEmitter()]));
const listen = (...names) => Object.fromEntries(names.map((name) => [name, events[name].event]));

const workspace = {
  ...listen(...Object.keys(events).filter((name) => !/TextEditor|Tabs/.test(name))),
  textDocuments: [],
  notebookDocuments: [],
  workspaceFolders: undefined,
  getConfiguration: (section) => ({ ...(section ? state.configuration[section] : state.configuration), get: (key, absent) => {
    let at = section ? state.configuration[section] : state.configuration;
    for (const part of (key ?? "").split(".").filter(Boolean)) at = at?.[part];
    return at ?? absent;
  } }),
  openTextDocument: async (uri) => workspace.textDocuments.find((d) => d.uri.toString() === uri.toString())
    ?? new TextDocument(uri, "hlo", readFileSync(uri.fsPath, "utf8")),
  applyEdit: async (edit) => { state.applied.push(edit); return true; },
  createFileSystemWatcher: () => ({ onDidCreate: () => new Disposable(), onDidChange: () => new Disposable(), onDidDelete: () => new Disposable(), dispose() {} }),
  isTrusted: true,
};
const window = {
  ...listen("onDidChangeTextEditorSelection", "onDidChangeActiveTextEditor", "onDidChangeVisibleTextEditors"),
  activeTextEditor: undefined,
  visibleTextEditors: [],
  tabGroups: {
    get all() { return [{ tabs: workspace.textDocuments.map((document) => ({ input: new TabInputText(document.uri) })) }]; },
    onDidChangeTabs: events.onDidChangeTabs.event,
  },
  createOutputChannel: () => ({ append() {}, appendLine() {}, clear() {}, show() {}, dispose() {}, replace: (text) => { state.output = text; } }),
  createWebviewPanel: (kind, title) => {
    const [received, disposed] = [new EventEmitter(), new EventEmitter()];
    const panel = { kind, title, received, posted: [], reveal() {}, onDidDispose: disposed.event, dispose: () => disposed.fire(),
      webview: { html: "", onDidReceiveMessage: received.event, postMessage: async (message) => { panel.posted.push(message); return true; } } };
    state.panels.push(panel);
    return panel;
  },
  showTextDocument: async (document, options) => { state.shown.push({ document, options }); },
  showErrorMessage: async (text) => { state.errors.push(text); },
  showInformationMessage: async () => undefined,
  showWarningMessage: async () => undefined,
  showOpenDialog: async () => state.chosen && [Uri.file(state.chosen)],
  withProgress: async (_, task) => task({ report() {} }, new CancellationTokenSource().token),
};
const languages = {
  match: (selectors, document) => [selectors].flat().some((s) => s.language === document.languageId) ? 10 : 0,
  createDiagnosticCollection: () => ({ set: (uri, all) => state.diagnostics.set(uri.toString(), all), delete: (uri) => state.diagnostics.delete(uri.toString()), clear() {}, dispose() {} }),
};
const registered = (name) => (...args) => { state.providers.set(name, args); return new Disposable(); };
const commands = {
  registerCommand: (name, run) => {
    if (state.commands.has(name)) throw new Error(`command ${name} is registered twice`);
    state.commands.set(name, run);
    return new Disposable(() => state.commands.delete(name));
  },
  executeCommand: (name, ...args) => state.commands.get(name)(...args),
};

// Names that are asked for and not here: enumerations and classes that are only extended or compared.
const empty = new Map();
const others = (known) => new Proxy(known, {
  get(target, name) {
    if (name in target || typeof name !== "string") return target[name];
    if (!empty.has(name)) empty.set(name, class { constructor(...values) { this.values = values; } });
    return empty.get(name);
  },
});
const members = (known) => new Proxy(known, {
  get: (target, name) => name in target || typeof name !== "string" ? target[name]
    : name.startsWith("register") ? registered(name) : name.startsWith("on") ? () => new Disposable() : undefined,
});
class CompletionItem { constructor(label) { this.label = label; } }
class CompletionList { constructor(items, isIncomplete) { Object.assign(this, { items, isIncomplete }); } }
class Diagnostic { constructor(range, message, severity) { Object.assign(this, { range, message, severity }); } }
class Hover { constructor(contents, range) { Object.assign(this, { contents: [contents].flat(), range }); } }
class MarkdownString { constructor(value = "") { this.value = value; } appendCodeblock() { return this; } }
class Location { constructor(uri, range) { Object.assign(this, { uri, range }); } }
class TextEdit { constructor(range, newText) { Object.assign(this, { range, newText }); } }
class CodeLens { constructor(range, command) { Object.assign(this, { range, command }); } }
class InlayHint { constructor(position, label) { Object.assign(this, { position, label }); } }
class FoldingRange { constructor(start, end) { Object.assign(this, { start, end }); } }
class SymbolInformation {}
class DocumentSymbol { constructor(name, detail) { Object.assign(this, { name, detail }); } }
class SemanticTokens { constructor(data) { this.data = data; } }
class SemanticTokensLegend { constructor(types) { this.tokenTypes = types; } }
class CodeAction { constructor(title) { this.title = title; } }
class CodeActionKind { constructor(value) { this.value = value; } static Empty = new CodeActionKind(""); static QuickFix = new CodeActionKind("quickfix"); append(part) { return new CodeActionKind(this.value ? `${this.value}.${part}` : part); } }
class CancellationError extends Error {}
class FileSystemError extends Error {}

module.exports = others({
  state, events, TextDocument, TabInputText,
  Disposable, EventEmitter, CancellationTokenSource, Position, Range, Selection, Uri, WorkspaceEdit, CompletionItem, CompletionList, Diagnostic, Hover, MarkdownString, Location, TextEdit,
  CodeLens, InlayHint, FoldingRange, SymbolInformation, DocumentSymbol, SemanticTokens, SemanticTokensLegend, CodeAction, CodeActionKind, CancellationError, FileSystemError,
  workspace: members(workspace), window: members(window), languages: members(languages), commands: members(commands),
  env: { language: "en", appName: "test", openExternal: async () => true },
  version: "1.82.0",
  ViewColumn: { One: 1, Beside: -2 },
  ProgressLocation: { Window: 10, Notification: 15 },
  DiagnosticSeverity: { Error: 0, Warning: 1, Information: 2, Hint: 3 },
  CompletionTriggerKind: { Invoke: 0, TriggerCharacter: 1, TriggerForIncompleteCompletions: 2 },
  TextDocumentSaveReason: { Manual: 1 },
  TextDocumentChangeReason: { Undo: 1, Redo: 2 },
  CompletionItemKind: {}, SymbolKind: {}, CompletionItemTag: {}, SymbolTag: {}, DiagnosticTag: {}, InlayHintKind: {}, FoldingRangeKind: {},
  extensions: { getExtension: () => undefined },
});
