// validate.mjs - check rendered Kubernetes objects against the schemas of Kubernetes, KEDA, cert-manager and
// the Prometheus operator, offline.
//
// usage: node validate.mjs FILE.yaml...      with node_modules of package.json one folder up
//
// Twice: the models' own validation (values, formats, required fields), and TypeScript's check of the
// same objects as literals of the models' types, which also catches misspelt fields. Then rules of our
// own that no schema knows. Prints each fault; exit code 1 if there is any.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";

const here = dirname(fileURLToPath(import.meta.url));
const faults = [];

function moduleOf(object) {
  const [group, version] = object.apiVersion.includes("/") ? object.apiVersion.split("/") : ["", object.apiVersion];
  const packages = { "cert-manager.io": "@kubernetes-models/cert-manager", "keda.sh": "@kubernetes-models/keda", "monitoring.coreos.com": "@kubernetes-models/prometheus-operator" };
  const path = group ? `${group}/${version}` : version;
  return `${packages[group] ?? "kubernetes-models"}/${path}/${object.kind}`;
}

const nameOf = (object) => `${object.kind}/${object.metadata?.name}`;

async function checkModel(file, object) {
  const model = (await import(moduleOf(object)))[object.kind];
  try {
    new model(object).validate();
  } catch (error) {
    faults.push(`${file}: ${nameOf(object)}: ${error.message}`);
  }
}

function checkTypes(objects) {
  const lines = objects.flatMap(([file, object], i) => [
    `import type { I${object.kind} as T${i} } from "${moduleOf(object)}";`,
    `export const o${i}: T${i} = ${JSON.stringify(object)}; // ${file} ${nameOf(object)}`,
  ]);
  const folder = mkdtempSync(join(here, "types-"));
  try {
    const source = join(folder, "objects.ts");
    writeFileSync(source, lines.join("\n"));
    execFileSync(process.execPath, [join(here, "../node_modules/typescript/bin/tsc"), "--noEmit", "--strict",
      "--skipLibCheck", "--target", "es2022", "--module", "nodenext", source], { encoding: "utf8", cwd: here });
  } catch (error) {
    for (const line of String(error.stdout).split("\n").filter((l) => l.includes("error"))) {
      const at = /\((\d+),/.exec(line);
      const comment = at ? lines[Number(at[1]) - 1].split(" // ").pop() : "";
      faults.push(`${comment}: ${line.slice(line.indexOf("error")).slice(0, 400)}`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

// What must hold between objects; test_manifests.py has the rules that need the program.
function checkRules(file, objects) {
  const find = (kind, name) => objects.find((o) => o.kind === kind && o.metadata.name === name);
  const expect = (what, truth) => truth || faults.push(`${file}: ${what}`);
  for (const [kind, name] of [["Deployment", "promfabric-api"], ["StatefulSet", "promfabric-worker"]]) {
    const pod = find(kind, name)?.spec.template.spec;
    for (const source of pod?.containers[0].envFrom ?? [])
      if (source.configMapRef) expect(`${name}: config map ${source.configMapRef.name} is missing`, find("ConfigMap", source.configMapRef.name));
  }
  const scaled = find("ScaledObject", "promfabric-worker");
  if (scaled) {
    const target = find("StatefulSet", scaled.spec.scaleTargetRef.name);
    expect("ScaledObject must scale the worker StatefulSet", target);
    expect("replicas are KEDA's to say", target?.spec.replicas === undefined);
  }
  for (const trigger of scaled?.spec.triggers ?? []) {
    const url = new URL(trigger.metadata.url);
    const service = find("Service", url.hostname.split(".")[0]);
    expect(`trigger ${trigger.name}: no service behind ${url}`, service?.spec.ports.some((p) => String(p.port) === url.port));
  }
  if (find("StatefulSet", "promfabric-worker"))
    expect("the worker service must publish draining pods", find("Service", "promfabric-worker")?.spec.publishNotReadyAddresses);
}

const all = [];
for (const file of process.argv.slice(2)) {
  const objects = parseAllDocuments(readFileSync(file, "utf8")).map((d) => d.toJS()).filter(Boolean);
  for (const object of objects) await checkModel(file, object);
  if (objects.some((o) => o.kind === "Deployment")) checkRules(file, objects); // an overlay, not a part
  all.push(...objects.map((o) => [file, o]));
}
checkTypes(all);
for (const fault of faults) console.log(fault);
console.log(`${all.length - faults.length} passed, ${faults.length} failed`);
process.exit(faults.length || all.length === 0 ? 1 : 0);
