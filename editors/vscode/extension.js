// Starts `symdsl lsp` and hands it the specs; everything that knows the language is in the server.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const MISSING = "symdsl: the language server did not start. Run `pip install 'symdsl[lsp]'`, or set `symdsl.command`.";

let client;

async function start(watcher) {
  const [command, ...args] = vscode.workspace.getConfiguration("symdsl").get("command");
  const selector = ["file", "untitled"].map((scheme) => ({ scheme, language: "sym" }));
  const synchronize = { fileEvents: watcher };
  client = new LanguageClient("symdsl", "symdsl", { command, args }, { documentSelector: selector, synchronize });
  try {
    await client.start();
  } catch (error) {
    const settings = "Open settings";
    const chosen = await vscode.window.showErrorMessage(`${MISSING} (${error})`, settings);
    if (chosen === settings) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "symdsl.command");
    }
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running?.isRunning()) {
    await running.stop();
  }
}

async function activate(context) {
  const watcher = vscode.workspace.createFileSystemWatcher("**/*.sym");
  const restart = async () => {
    await stop();
    await start(watcher);
  };
  const changed = async (event) => {
    if (event.affectsConfiguration("symdsl.command")) {
      await restart();
    }
  };
  context.subscriptions.push(
    watcher,
    vscode.commands.registerCommand("symdsl.restart", restart),
    vscode.workspace.onDidChangeConfiguration(changed),
  );
  await start(watcher);
}

module.exports = { activate, deactivate: stop };
