// duckdb_page.js - run the SQL of a page on stores. usage: node duckdb_page.js PAGE, in the folder of the stores
const assert = require("node:assert/strict");
const { readFileSync } = require("node:fs");
const { DuckDBInstance } = require("@duckdb/node-api");

// The indented statements, from the line that speaks of DuckDB up to the next paragraph.
function statements(page) {
  const lines = page.slice(page.indexOf("with DuckDB")).split("\n").slice(1);
  const end = lines.findIndex((line) => line !== "" && !line.startsWith("    "));
  const sql = lines.slice(0, end).join("\n").replace(/--.*$/gm, "");
  return sql.split(";").map((text) => text.trim()).filter(Boolean);
}

const all = statements(readFileSync(process.argv[2], "utf8"));
assert.equal(all.length, 5, "the page's statements: two views and three questions");

// Each statement's rows on one store, and a way to ask more.
async function run(store) {
  const connection = await (await DuckDBInstance.create(":memory:")).connect();
  const rows = async (sql) => (await connection.runAndReadAll(sql)).getRowObjectsJson();
  const answers = [];
  for (const sql of all) answers.push(await rows(sql.replaceAll("'store/", `'${store}/`)));
  return { listed: answers[2], growth: answers[3], told: answers[4], rows };
}

async function main() {
  // No file has an optional column; two overlap, and a counter was reset.
  const plain = await run("plain");
  const of = (rows, path) => rows.filter((row) => row.labels.some((l) => l.value === path)).map((row) => row.value);
  assert.deepEqual(of(plain.listed, "/"), [10, 80, 5, 8]);
  assert.deepEqual(of(plain.listed, "/a"), [1.5, 2.25, "NaN"]);
  assert.deepEqual(plain.listed.filter((row) => row.metric === "odd").map((row) => row.value), [0.1, 1e300, "Infinity"]);
  assert.equal(plain.listed.length, 10);
  assert.equal(plain.listed[0].time, "2026-01-01 00:00:00");
  assert.deepEqual(plain.growth, [{ path: "/", requests: 78 }, { path: "/a", requests: 0.75 }]);
  assert.ok(plain.told.some((row) => row.key === "promfabric.tenant" && row.value === "default"));
  assert.deepEqual(await plain.rows("SELECT count(start_ts) AS a, count(histogram) AS b FROM samples"), [{ a: "0", b: "0" }]);

  // Some files have them.
  const made = await run("made");
  assert.equal(made.listed.length, 12);
  assert.deepEqual(made.growth, plain.growth);
  assert.deepEqual(await made.rows("SELECT metric, start_ts FROM samples WHERE start_ts > 0"), [
    { metric: "started", start_ts: "1767222000000" }]);
  assert.deepEqual(await made.rows("SELECT metric FROM samples WHERE octet_length(histogram) > 0"), [{ metric: "latency" }]);

  // The demo: every sample that the files count is there.
  const demo = await run("demo");
  const [{ counted, seen }] = await demo.rows(
    "SELECT (SELECT sum(samples) FROM files) AS counted, (SELECT count(*) FROM samples) AS seen");
  assert.equal(counted, seen);
  assert.ok(demo.listed.length > 1000 && String(demo.listed.length) === seen);
  assert.ok(demo.growth.length > 1 && demo.growth.every((row) => row.requests > 0));
  console.log(`${all.length} statements, 3 stores, ${seen} samples of the demo`);
}

main().catch((error) => {
  console.error(String(error));
  process.exit(1);
});
