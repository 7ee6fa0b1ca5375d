// client.mjs - drives a real worker through its life, as an API written in another language would.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import grpc from "@grpc/grpc-js";
import { load, Stream } from "./stream.mjs";

const [promfabric, fixtureProgram, protoDir] = process.argv.slice(2);
const packages = load(protoDir);
const dir = mkdtempSync(join(tmpdir(), "pf-grpcjs-"));
const children = new Set();
process.on("exit", () => {
  children.forEach((child) => child.kill("SIGKILL"));
  rmSync(dir, { recursive: true, force: true });
});

const made = spawnSync(fixtureProgram, { env: { ...process.env, FIXTURE_DIR: dir }, encoding: "utf8" });
assert.equal(made.status, 0, made.stderr);
const fixture = JSON.parse(made.stdout.split("\n").find((line) => line.startsWith("{")));

function start(...flags) {
  const args = ["worker", "--store", join(dir, "store"), "--spool", join(dir, "spool"), "--http-listen", "127.0.0.1:0",
    "--control-listen", "127.0.0.1:0", "--work-samples-max", "1000000000000", "--log-level", "error", ...flags];
  const child = spawn(promfabric, args, { stdio: ["ignore", "pipe", "inherit"] });
  children.add(child);
  const exited = new Promise((resolve) => child.on("exit", (code, signal) => {
    children.delete(child);
    resolve(signal ?? code);
  }));
  return new Promise((resolve, reject) => {
    exited.then((why) => reject(new Error(`the worker ended: ${why}`)));
    child.stdout.once("data", (line) => {
      const [, http, control] = /http=(\S+) control=(\S+)/.exec(String(line));
      resolve({ child, http: `http://${http}`, control, exited });
    });
  });
}

const work = (id, spec, attempt = 1) => ({
  query_id: "js-query", work_id: String(id), attempt, tenant: "t", spec, segments: [fixture.segment], timeout_ms: "60000",
  traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
});

async function metric(worker, name) {
  const text = await (await fetch(`${worker.http}/metrics`)).text();
  const line = text.split("\n").find((l) => l.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.slice(name.length + 1));
}

async function becomes(worker, name, value, timeoutMs) {
  const until = Date.now() + timeoutMs;
  while ((await metric(worker, name)) !== value) assert.ok(Date.now() < until, `${name} is not ${value} in ${timeoutMs} ms`);
}

async function terminate(worker) {
  worker.child.kill("SIGTERM");
  assert.equal(await worker.exited, 0);
}

async function fetchAndAck(stream, ready) {
  const response = await fetch(ready.artifact_url);
  assert.equal(response.status, 200);
  const bytes = Buffer.from(await response.arrayBuffer());
  assert.equal(String(bytes.length), ready.artifact_size_bytes);
  assert.equal(bytes.subarray(0, 4).toString(), "PAR1");
  assert.equal(bytes.subarray(-4).toString(), "PAR1");
  stream.send({ artifact_ack: { work_id: ready.work_id, attempt: ready.attempt, artifact_checksum: ready.artifact_checksum } });
}

const tests = {
  async "a work is assigned, accepted, announced, fetched and acknowledged"() {
    const worker = await start("--artifact-ttl-after-ack", "100ms");
    const stream = new Stream(packages, worker.control);
    const status = await stream.receiveBody("worker_status");
    assert.equal(status.protocol_version, 2);
    assert.equal(status.accepting_work, true);
    assert.equal(status.draining, false);
    stream.send({ assign_work: work(1, fixture.instant) });
    await stream.receiveBody("work_accepted", 1);
    const ready = await stream.receiveBody("work_ready", 1);
    assert.equal(ready.row_count, "600");
    assert.equal(ready.min_ts, "0");
    assert.equal(ready.max_ts, "50000");
    assert.match(ready.artifact_checksum, /^xxh3:[0-9a-f]{32}$/);
    await fetchAndAck(stream, ready);
    await becomes(worker, "promfabric_worker_artifacts", 0, 3000);
    assert.equal((await fetch(ready.artifact_url)).status, 404);
    stream.close();
    await terminate(worker);
  },

  async "running and queued works are canceled"() {
    const worker = await start("--slots", "1");
    const stream = new Stream(packages, worker.control);
    for (const id of [1, 2]) stream.send({ assign_work: work(id, fixture.slow) });
    await stream.receiveBody("work_accepted", 2);
    for (const id of [2, 1]) stream.send({ cancel_work: { work_id: String(id), attempt: 1, reason: "test" } });
    stream.send({ assign_work: work(3, fixture.instant) });
    const started = Date.now();
    await stream.receiveBody("work_ready", 3);
    assert.ok(Date.now() - started < 1500);
    stream.close();
    await terminate(worker);
  },

  async "a draining worker rejects, finishes and exits"() {
    const worker = await start();
    const stream = new Stream(packages, worker.control);
    stream.send({ assign_work: work(1, fixture.instant) });
    const ready = await stream.receiveBody("work_ready", 1);
    worker.child.kill("SIGTERM");
    await stream.receive((m) => m.body === "worker_status" && m.worker_status.draining && !m.worker_status.accepting_work);
    stream.send({ assign_work: work(2, fixture.instant) });
    assert.equal((await stream.receiveBody("work_rejected", 2)).reason, "draining");
    assert.equal((await fetch(`${worker.http}/readyz`)).status, 503);
    await fetchAndAck(stream, ready);
    assert.equal(await worker.exited, 0);
    stream.close();
  },

  async "a client that is stopped is lost and its work canceled"() {
    const worker = await start();
    const script = fileURLToPath(new URL("silent.mjs", import.meta.url));
    const child = spawn(process.execPath, [script, protoDir, worker.control, JSON.stringify(work(1, fixture.slow))],
      { stdio: ["ignore", "pipe", "inherit"] });
    children.add(child);
    await new Promise((resolve) => child.stdout.once("data", resolve));
    await becomes(worker, 'promfabric_worker_works{state="running"}', 1, 2000);
    child.kill("SIGSTOP");
    const started = Date.now();
    await becomes(worker, "promfabric_worker_sessions", 0, 5000);
    assert.ok(Date.now() - started < 4500, "detection took too long");
    await becomes(worker, 'promfabric_worker_works{state="stopping"}', 0, 1000);
    assert.equal(await metric(worker, 'promfabric_worker_sessions_closed_total{reason="silent"}'), 1);
    child.kill("SIGKILL");
    children.delete(child);
    await terminate(worker);
  },

  async "a lost stream takes its work and artifacts along, and no others"() {
    const worker = await start("--slots", "1");
    const stream = new Stream(packages, worker.control);
    const bystander = new Stream(packages, worker.control);
    stream.send({ assign_work: work(1, fixture.instant) });
    const own = await stream.receiveBody("work_ready", 1);
    bystander.send({ assign_work: work(1, fixture.instant) });
    const others = await bystander.receiveBody("work_ready", 1);
    for (const id of [2, 3]) stream.send({ assign_work: work(id, fixture.slow) });
    await becomes(worker, "promfabric_worker_queue_depth", 1, 3000);
    stream.close();
    await becomes(worker, "promfabric_worker_sessions", 1, 2000);
    await becomes(worker, 'promfabric_worker_works{state="stopping"}', 0, 2000);
    assert.equal(await metric(worker, 'promfabric_worker_works{state="running"}'), 0);
    assert.equal(await metric(worker, "promfabric_worker_queue_depth"), 0);
    assert.equal((await fetch(own.artifact_url)).status, 404);
    await fetchAndAck(bystander, others);
    bystander.close();
    await terminate(worker);
  },

  async "an artifact that nobody fetches expires and its work is said to have failed"() {
    const worker = await start("--artifact-ttl", "300ms");
    const stream = new Stream(packages, worker.control);
    stream.send({ assign_work: work(1, fixture.instant) });
    const ready = await stream.receiveBody("work_ready", 1);
    const failed = await stream.receiveBody("work_failed", 1);
    assert.equal(failed.code, "not_found");
    assert.equal(failed.retryable, true);
    assert.equal((await fetch(ready.artifact_url)).status, 404);
    stream.close();
    await terminate(worker);
  },

  async "only the token opens an artifact, whole or in part"() {
    const worker = await start();
    const stream = new Stream(packages, worker.control);
    stream.send({ assign_work: work(1, fixture.instant) });
    const { artifact_url: url, artifact_size_bytes: size } = await stream.receiveBody("work_ready", 1);
    const whole = Buffer.from(await (await fetch(url)).arrayBuffer());
    const part = await fetch(url, { headers: { Range: "bytes=4-99" } });
    assert.equal(part.status, 206);
    assert.equal(part.headers.get("content-range"), `bytes 4-99/${size}`);
    assert.deepEqual(Buffer.from(await part.arrayBuffer()), whole.subarray(4, 100));
    assert.equal((await fetch(url, { headers: { Range: `bytes=${size}-` } })).status, 416);
    const last = url.at(-1) === "0" ? "1" : "0";
    for (const wrong of [url.slice(0, -1) + last, url.slice(0, -1), url.replace(/[^/]*$/, ""), url.replace(/[^/]*$/, "..%2flock"),
      `${worker.http}/artifacts/%2e%2e/%2e%2e/store`]) assert.equal((await fetch(wrong)).status, 404, wrong);
    stream.close();
    await terminate(worker);
  },

  async "a small disk budget evicts the oldest artifacts and says so"() {
    let worker = await start();
    let stream = new Stream(packages, worker.control);
    stream.send({ assign_work: work(1, fixture.instant) });
    const size = Number((await stream.receiveBody("work_ready", 1)).artifact_size_bytes);
    stream.close();
    await terminate(worker);
    worker = await start("--disk-budget", String(4 * size), "--disk-floor", "0",
                         "--artifact-memory", "0B");
    stream = new Stream(packages, worker.control);
    for (const id of [1, 2, 3, 4]) {
      stream.send({ assign_work: work(id, fixture.instant) });
      await stream.receiveBody("work_ready", id);
    }
    const failed = await stream.receiveBody("work_failed", 1);
    assert.equal(failed.retryable, true);
    assert.ok((await metric(worker, 'promfabric_worker_evictions_total{reason="unacked"}')) >= 1);
    stream.close();
    await terminate(worker);
  },

  async "another protocol version is refused"() {
    const worker = await start();
    const stream = new Stream(packages, worker.control, { version: 7, heartbeat: false });
    const error = await stream.ended;
    assert.equal(error.code, grpc.status.FAILED_PRECONDITION);
    assert.match(error.details, /protocol version 7/);
    stream.close();
    await terminate(worker);
  },

  async "the standard health service answers"() {
    const worker = await start();
    const health = new packages.grpc.health.v1.Health(worker.control, grpc.credentials.createInsecure());
    const check = (service) => new Promise((resolve) => health.Check({ service }, (error, answer) => resolve(error ?? answer)));
    assert.equal((await check("")).status, "SERVING");
    assert.equal((await check("promfabric.control.v1.Control")).status, "SERVING");
    assert.equal((await check("other")).code, grpc.status.NOT_FOUND);
    const seen = [];
    const watch = health.Watch({ service: "" });
    watch.on("data", (answer) => seen.push(answer.status));
    watch.on("error", () => {});
    while (seen.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    await terminate(worker);
    assert.equal(seen[0], "SERVING");
    health.close();
  },

  async "four sessions run a thousand works at once"() {
    const worker = await start("--artifact-ttl-after-ack", "50ms");
    const session = async () => {
      const stream = new Stream(packages, worker.control);
      let next = 1;
      const lane = async () => {
        while (next <= 250) {
          const id = next++;
          stream.send({ assign_work: work(id, fixture.instant) });
          await fetchAndAck(stream, await stream.receiveBody("work_ready", id));
        }
      };
      await Promise.all(Array.from({ length: 8 }, lane));
      stream.close();
    };
    await Promise.all(Array.from({ length: 4 }, session));
    await becomes(worker, "promfabric_worker_artifacts", 0, 3000);
    assert.equal(await metric(worker, "promfabric_worker_works_ready_total"), 1000);
    await terminate(worker);
  },
};

let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  try {
    await test();
    console.log(`ok      ${name}`);
  } catch (error) {
    failed++;
    console.log(`FAILED  ${name}: ${error.stack}`);
  }
}
console.log(`${Object.keys(tests).length - failed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
