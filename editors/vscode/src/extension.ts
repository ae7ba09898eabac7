// SPDX-License-Identifier: Apache-2.0
// The extension: the language server's client, and what its commands produce in panels.
import * as vscode from "vscode";
import { ExecuteCommandSignature, LanguageClient, TransportKind } from "vscode-languageclient/node";
import { instructionOf } from "./pages";
import { Kind, Panels } from "./panels";

let client: LanguageClient | undefined;

interface Result { text?: string; uri?: string }
interface Options { name?: string; other?: string; show: false }

const pages: Record<string, Kind> = { "hlo.graph": "graph", "hlo.report": "report", "hlo.diff": "diff" };
const ofInstruction = ["hlo.extract", "hlo.reduce"];

// Fills in what the palette does not give: the document, the instruction, the other file. Undefined: the user gave up.
async function complete(command: string, args: unknown[]): Promise<[string, Options] | undefined> {
  const editor = vscode.window.activeTextEditor;
  const uri = typeof args[0] === "string" ? args[0] : editor?.document.uri.toString();
  if (!uri) {
    void vscode.window.showErrorMessage("HLO: no document is open.");
    return undefined;
  }
  const options: Options = { ...(args[1] as object | undefined), show: false };
  if (ofInstruction.includes(command) && options.name === undefined) {
    options.name = editor && instructionOf(editor.document.lineAt(editor.selection.active.line).text);
    if (options.name === undefined) {
      void vscode.window.showErrorMessage("HLO: there is no instruction on this line.");
      return undefined;
    }
  }
  if (command === "hlo.diff" && options.other === undefined) {
    const [file] = await vscode.window.showOpenDialog({ openLabel: "Compare" }) ?? [];
    if (!file) return undefined;
    options.other = file.fsPath;
  }
  return [uri, options];
}

async function present(command: string, uri: string, result: Result, panels: Panels, output: vscode.OutputChannel) {
  const kind = pages[command];
  if (kind && result.uri) {
    await panels.show(kind, vscode.Uri.parse(uri), vscode.Uri.parse(result.uri).fsPath);
  } else if (result.uri) {
    await vscode.window.showTextDocument(vscode.Uri.parse(result.uri), { viewColumn: vscode.ViewColumn.Beside });
  } else if (result.text) {
    output.replace(result.text);
    output.show(true);
  }
}

export async function activate(context: vscode.ExtensionContext) {
  const panels = new Panels();
  const output = vscode.window.createOutputChannel("HLO", "hlo");
  context.subscriptions.push(panels, output);
  const configuration = vscode.workspace.getConfiguration("hlo");
  const executeCommand = async (command: string, args: unknown[], next: ExecuteCommandSignature) => {
    const completed = await complete(command, args);
    if (!completed) return;
    const result = await vscode.window.withProgress(
      { location: vscode.ProgressLocation.Window, title: `HLO: ${command.slice(4)}` },
      async () => next(command, completed) as Promise<Result | null>);
    if (result) await present(command, completed[0], result, panels, output);
  };
  client = new LanguageClient("hlo", "HLO",
    { command: configuration.get<string>("server.path", "hlo-lsp-server"), args: [], transport: TransportKind.stdio },
    {
      documentSelector: ["hlo", "stablehlo", "mlir", "hlo-pipeline", "tpu-machine"].map((language) => ({ language })),
      synchronize: { configurationSection: "hlo" },
      initializationOptions: configuration,
      middleware: { executeCommand },
    });
  await client.start();
}

export async function deactivate() {
  await client?.stop();
}
