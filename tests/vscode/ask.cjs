// Asks VS Code's JSON service about one document. Standard input: {"schema", "text", "cursor"}; `cursor` is an offset,
// or null to validate. The schema is also what any `$schema` key resolves to. Standard output: a list of problems, or a list of completions.
const { getLanguageService } = require("vscode-json-languageservice");
const { TextDocument } = require("vscode-languageserver-textdocument");

async function main() {
  const asked = JSON.parse(require("fs").readFileSync(0, "utf8"));
  const service = getLanguageService({
    schemaRequestService: async () => JSON.stringify(asked.schema),
    workspaceContext: { resolveRelativePath: (path, base) => new URL(path, base).toString() },
  });
  service.configure({
    validate: true,
    schemas: [{ uri: "test://schema.json", fileMatch: ["*.json"], schema: asked.schema }],
  });
  const document = TextDocument.create("file:///commands/x.json", "json", 1, asked.text);
  const parsed = service.parseJSONDocument(document);
  if (asked.cursor === null) {
    const found = await service.doValidation(document, parsed);
    console.log(JSON.stringify(found.map(({ message, range }) => ({ message, text: document.getText(range) }))));
  } else {
    const found = await service.doComplete(document, document.positionAt(asked.cursor), parsed);
    console.log(JSON.stringify(found.items.map(({ label, documentation }) => ({ label, documentation }))));
  }
}

main();
