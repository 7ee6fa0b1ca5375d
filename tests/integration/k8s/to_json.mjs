// to_json.mjs - rendered YAML as JSON, for tests in languages without a YAML reader of their own.
//
// usage: node to_json.mjs FILE.yaml...       writes FILE.json, a list of objects, beside each
import { readFileSync, writeFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";

for (const file of process.argv.slice(2)) {
  const objects = parseAllDocuments(readFileSync(file, "utf8")).map((d) => d.toJS()).filter(Boolean);
  writeFileSync(file.replace(/\.yaml$/, ".json"), JSON.stringify(objects));
}
