/* build.mjs - bundle the page and write it as a C file that takes it in.
 *
 * usage: node build.mjs --modules FOLDER --out FOLDER
 *
 * --modules: the node_modules that `npm ci` made of the lock file. --out: gets files/ (with gzip and Brotli copies)
 * and assets.c, the table that queryapi/http/assets.h declares. Equal sources give equal bytes. */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const here = dirname(fileURLToPath(import.meta.url));
const args = Object.fromEntries(process.argv.slice(2).map((arg, i, all) => (arg.startsWith("--") ? [arg.slice(2), all[i + 1]] : [])).filter((pair) => pair.length));
const modules = resolve(args.modules), out = resolve(args.out), files = join(out, "files");
const esbuild = createRequire(join(modules, "_"))("esbuild");

const TYPES = { ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8", ".txt": "text/plain; charset=utf-8" };

rmSync(files, { recursive: true, force: true });
mkdirSync(files, { recursive: true });
const result = await esbuild.build({
  entryPoints: [join(here, "src/boot.ts"), join(here, "src/main.tsx")],
  absWorkingDir: here,
  nodePaths: [modules],
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  minify: true,
  legalComments: "none",
  charset: "utf8",
  outdir: files,
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  metafile: true,
  write: false,
  logLevel: "warning",
});

const assets = []; /* { path, bytes, type } */
const add = (path, bytes) => assets.push({ path, bytes: Buffer.from(bytes), type: TYPES[/\.[a-z]+$/.exec(path)[0]] });
for (const file of result.outputFiles)
  if (!/boot-[^/]*\.css$/.test(file.path)) add(basename(file.path), file.contents); /* styles come with main's */
const named = (pattern) => assets.find((asset) => pattern.test(asset.path)).path;
add("licences.txt", licences(result.metafile));
/* What the first script leads to is asked for with it, not when it was read. */
const output = (pattern) => Object.entries(result.metafile.outputs).find(([path]) => pattern.test(path));
const [mainPath, main] = output(/main-[^/]*\.js$/), [, boot] = output(/boot-[^/]*\.js$/);
const early = [...[...boot.imports, ...main.imports].filter((one) => one.kind === "import-statement").map((one) => one.path), mainPath];
const preload = [...new Set(early.map((path) => basename(path)))].map((name) => `<link rel="modulepreload" href="/assets/${name}">`);
const html = readFileSync(join(here, "src/index.html"), "utf8")
  .replace("@PRELOAD@", preload.join("\n"))
  .replace("@STYLE@", "/assets/" + named(/^main-.*\.css$/))
  .replace("@SCRIPT@", "/assets/" + named(/^boot-.*\.js$/));
add("index.html", html);
assets.sort((a, b) => (a.path < b.path ? -1 : 1));

/* The licence of every package that is in a bundle. */
function licences(metafile) {
  const packages = new Set();
  for (const input of Object.keys(metafile.inputs)) {
    const found = /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(resolve(here, input));
    if (found) packages.add(found[1]);
  }
  return [...packages].sort().map((name) => {
    const about = JSON.parse(readFileSync(join(modules, name, "package.json"), "utf8"));
    const text = ["LICENSE", "LICENSE.md", "LICENSE.txt", "license"].map((file) => {
      try {
        return readFileSync(join(modules, name, file), "utf8");
      } catch {
        return "";
      }
    }).find((content) => content) ?? "";
    return `${name} ${about.version} (${about.license})\n\n${text.trim()}\n`;
  }).join("\n" + "-".repeat(80) + "\n\n");
}

/* The assembler reads the files: a C compiler would take long over so many numbers. A statement for each, as a text in C
 * must not be too long. */
const symbols = [], rows = [];
let assembly = "";
assets.forEach((asset, i) => {
  const file = join(files, asset.path), name = "qa_asset_" + i;
  writeFileSync(file, asset.bytes);
  writeFileSync(file + ".gz", gzipSync(asset.bytes, { level: 9 }));
  writeFileSync(file + ".br", brotliCompressSync(asset.bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: asset.bytes.length } }));
  for (const [symbol, path] of [[name, file], [name + "_gz", file + ".gz"], [name + "_br", file + ".br"]]) {
    symbols.push(symbol + "[]", symbol + "_end[]");
    assembly += `__asm__(".pushsection .rodata\\n.global ${symbol}\\n${symbol}:\\n.incbin \\"${path}\\"\\n"\n        ".global ${symbol}_end\\n${symbol}_end:\\n.byte 0\\n.popsection\\n");\n`;
  }
  const etag = createHash("sha256").update(asset.bytes).digest("hex").slice(0, 16);
  rows.push(`    { "${asset.path}", "${asset.type}", "\\"${etag}\\"", ${name}, ${name}_end, ${name}_gz, ${name}_gz_end, ${name}_br, ${name}_br_end },`);
});
writeFileSync(
  join(out, "assets.c"),
  `/* assets.c - made by web/build.mjs. */
#include "queryapi/http/assets.h"

${assembly}
extern const char ${symbols.join(", ")};

const struct qa_asset qa_assets[] = {
${rows.join("\n")}
};
const size_t qa_asset_count = ${assets.length};
`,
);
