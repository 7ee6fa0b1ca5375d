"""fake_ingest.py - ingest nodes of paper: they speak what docs/PROTOCOL.md says of heads, and do what a
test tells them to.

A head is a range of lines in the notation of load_series. It is served out of segments that the loader
makes of these lines, one store for each number of shards that is asked for."""
import glob
import http.server
import json
import re
import shutil
import tempfile
import threading

from harness import load


class Range:
    """Unsealed samples of a tenant."""

    def __init__(self, generation, lines, start, tenant, step=15, length=1):
        self.generation, self.lines, self.start, self.tenant = generation, lines, start, tenant
        self.step, self.length = step, length
        self.stores = {}

    def times(self):
        return self.start * 1000, (self.start + self.step * (self.length - 1)) * 1000

    def file(self, folder, shard, shards):
        """The bytes of the segment with the series of a shard, or None."""
        if shards not in self.stores:
            self.stores[shards] = tempfile.mkdtemp(dir=folder)
            load(self.stores[shards], self.lines, tenant=self.tenant, shards=shards,
                 start=self.start, step=self.step, window=100 * 86400)
        found = glob.glob(f"{self.stores[shards]}/**/*_s{shard}of{shards}_*.parquet", recursive=True)
        assert len(found) <= 1, found
        if not found:
            return None
        with open(found[0], "rb") as file:
            return file.read()


class FakeIngest:
    """A cluster whose nodes all know the same. What is public may be changed at any time."""

    def __init__(self, partitions=1, shards=4, nodes=1):
        self.folder = tempfile.mkdtemp(prefix="pf-fake-ingest-")
        self.partitions, self.shards = partitions, shards
        self.cluster = "c0ffee"
        self.queues = [f"{p:032x}" for p in range(partitions)]
        self.applied, self.sealed_index, self.floor = 1, 0, None
        self.list = False
        self.query_timeout_ms = 600000
        self.files = []
        self.ranges = []
        self.unavailable = None  # (partition, message) of every status
        self.gone = 0            # so many reads are 410
        self.busy = 0            # so many reads are 503
        self.statuses, self.reads, self.others = [], [], []
        self.lock = threading.Lock()
        self.nodes = [self.serve() for _ in range(nodes)]

    def serve(self):
        fake = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def setup(self):
                super().setup()
                self.connection.setsockopt(6, 1, 1)  # TCP_NODELAY

            def reply(self, status, body=b"", kind="application/json", **headers):
                if not isinstance(body, bytes):
                    body = json.dumps(body, separators=(",", ":")).encode()
                head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\n"
                head += "".join(f"{key}: {value}\r\n" for key, value in headers.items())
                if status != 204:
                    head += f"Content-Length: {len(body)}\r\n"
                self.wfile.write(head.encode() + b"\r\n" + body)

            def do_GET(self):  # as a node that knows nothing of settings of tenants
                self.reply(404)

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if not body:  # who asked has gone away
                    self.close_connection = True
                    return
                ask = json.loads(body)
                with fake.lock:
                    if self.path == "/v1/heads/status":
                        fake.statuses.append(ask)
                        self.reply(*fake.status(ask))
                    elif self.path == "/v1/heads/read":
                        fake.reads.append(ask)
                        fake.read(self, ask)
                    elif fake.unavailable:
                        self.reply(*fake.status(ask))
                    elif self.path == "/v1/heads/metadata":
                        fake.others.append(ask)
                        self.reply(200, {"data": {"up": [{"type": "gauge", "help": "h", "unit": ""}]}})
                    elif self.path == "/v1/heads/exemplars":
                        fake.others.append(ask)
                        self.reply(200, {"data": [{"seriesLabels": {"a": "b"}, "exemplars": [
                            {"labels": {"trace_id": "x"}, "value": "0.5", "timestamp": 1.5}]}]})
                    else:
                        self.reply(404)

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def addresses(self):
        return [f"127.0.0.1:{node.server_address[1]}" for node in self.nodes]

    def flags(self):
        return [f"--ingest={address}" for address in self.addresses()]

    def close(self):
        for node in self.nodes:
            node.shutdown()
            node.server_close()
        shutil.rmtree(self.folder, True)

    def add(self, generation, lines, start, tenant="default", step=15, length=1):
        with self.lock:
            self.ranges.append(Range(generation, lines, start, tenant, step, length))
            self.applied += 1

    def seal(self, store):
        """What is in heads is in the store from now on."""
        with self.lock:
            for r in self.ranges:
                load(store, r.lines, tenant=r.tenant, shards=self.shards, start=r.start, step=r.step)
            self.ranges = []
            self.applied += 1
            self.sealed_index = self.applied

    def status(self, ask):
        if self.unavailable:
            partition, message = self.unavailable
            return 503, {"error": "unavailable", "message": message, "partition": partition}
        ranges = []
        for r in self.ranges:
            low, high = r.times()
            if r.tenant == ask["tenant"] and low <= ask["max_ts"] and high >= ask["min_ts"]:
                ranges.append({"generation": r.generation, "from": 1, "to": 0, "min_ts": low,
                               "max_ts": high, "samples": len(r.lines) * r.length})
        covered = {c["partition"]: c for c in ask.get("covered", [])}
        parts = []
        for p in range(self.partitions):
            known = p in covered and covered[p]["queue"] == self.queues[p]
            parts.append({"partition": p, "queue": self.queues[p], "applied": self.applied,
                          "sealed_index": self.sealed_index, "list": self.list or not known,
                          "files": [f for f in self.files if known and f["index"] > covered[p]["index"]],
                          "floor": self.floor, "shards": self.shards, "ranges": ranges,
                          "replicas": ["http://" + a for a in self.addresses()]})
        return 200, {"cluster": self.cluster, "epoch": 1, "query_timeout_ms": self.query_timeout_ms,
                     "partitions": parts}

    def read(self, handler, ask):
        if self.gone > 0:
            self.gone -= 1
            handler.reply(410, {"error": "gone"})
            return
        if self.busy > 0:
            self.busy -= 1
            handler.reply(503, {"error": "busy"}, **{"Retry-After": "1"})
            return
        p, shard, shards = ask["partition"], ask["shard"], ask["shards"]
        found = [r for r in self.ranges
                 if r.generation == ask["generation"] and r.tenant == ask["tenant"]]
        if not found or ask["queue"] != self.queues[p] or ask["cut"] > self.applied:
            handler.reply(410, {"error": "gone"})
            return
        assert re.match(r"\{.+\}", ask["match"]), ask
        assert shards >= self.partitions and shard % self.partitions == p, ask
        data = found[0].file(self.folder, shard, shards)
        if data is None:
            handler.reply(204)
        else:
            handler.reply(200, data, "application/vnd.apache.parquet",
                          **{"X-Promfabric-Samples": str(len(found[0].lines) * found[0].length)})
