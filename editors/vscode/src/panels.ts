// SPDX-License-Identifier: Apache-2.0
// Webviews beside a document, one of each kind, whose selection follows the text and is followed by it.
import { readFile } from "node:fs/promises";
import * as vscode from "vscode";
import { instructionOf, lineOf, Select, Selected, withBridge } from "./pages";

export type Kind = "graph" | "report" | "diff";
const titles: Record<Kind, string> = { graph: "Graph", report: "Report", diff: "Differences" };

interface Open { panel: vscode.WebviewPanel; shown: string | undefined }

export class Panels implements vscode.Disposable {
  private readonly open = new Map<string, Open>();  // by kind and document
  private readonly subscription: vscode.Disposable;

  constructor() {
    this.subscription = vscode.window.onDidChangeTextEditorSelection((event) => this.follow(event.textEditor));
  }

  dispose() {
    this.subscription.dispose();
    for (const { panel } of this.open.values()) panel.dispose();
  }

  // Shows the page at `path`, which belongs to the document.
  async show(kind: Kind, document: vscode.Uri, path: string) {
    const key = `${kind} ${document.toString()}`;
    const html = withBridge(await readFile(path, "utf8"), kind === "report" ? "report" : "graph");
    let open = this.open.get(key);
    if (!open) {
      const name = document.path.slice(document.path.lastIndexOf("/") + 1);
      const panel = vscode.window.createWebviewPanel(`hlo.${kind}`, `${titles[kind]}: ${name}`,
        { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true }, { enableScripts: true, retainContextWhenHidden: true });
      open = { panel, shown: undefined };
      this.open.set(key, open);
      panel.onDidDispose(() => this.open.delete(key));
      panel.webview.onDidReceiveMessage((message: Selected) => { void this.reveal(key, document, message.selected); });
    }
    open.panel.webview.html = html;
    open.panel.reveal(undefined, true);
  }

  // The text's selection, in the pages.
  private follow(editor: vscode.TextEditor) {
    const line = editor.document.lineAt(editor.selection.active.line).text;
    const name = instructionOf(line);
    if (!name) return;
    for (const kind of ["graph", "report", "diff"]) {
      const open = this.open.get(`${kind} ${editor.document.uri.toString()}`);
      if (!open || open.shown === name) continue;
      open.shown = name;
      void open.panel.webview.postMessage({ select: name } satisfies Select);
    }
  }

  // A page's selection, in the text.
  private async reveal(key: string, uri: vscode.Uri, name: unknown) {
    const open = this.open.get(key);
    if (!open || typeof name !== "string" || open.shown === name) return;
    open.shown = name;
    const document = await vscode.workspace.openTextDocument(uri);
    const line = lineOf(document.getText(), name);
    if (line === undefined) return;
    const visible = vscode.window.visibleTextEditors.find((editor) => editor.document.uri.toString() === uri.toString());
    const range = document.lineAt(line).range;
    await vscode.window.showTextDocument(document, { selection: range, preserveFocus: true, viewColumn: visible?.viewColumn ?? vscode.ViewColumn.One });
  }
}
