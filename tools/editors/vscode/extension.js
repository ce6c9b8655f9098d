// Starts `sinter lsp` for model files.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = async () => {
  const command = workspace.getConfiguration("sinter").get("path");
  client = new LanguageClient(
    "sinter",
    { command, args: ["lsp"] },
    { documentSelector: [{ scheme: "file", language: "sinter" }] });
  await client.start();
};

exports.deactivate = () => client?.stop();
