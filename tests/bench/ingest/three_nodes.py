"""three_nodes.py - samples into one node and into three, on disks of a given speed.

usage: three_nodes.py --promfabric P --slow-sync LIBRARY [--seconds N] [--connections N] [--sync-ms N] [--nodes N]

Every node has its data on a tmpfs, and each of its fdatasyncs takes --sync-ms (an LD_PRELOAD shim). Clients, which
are this process, send remote write 2.0 with 2,000 samples of hot series with 10 labels to all nodes in turn, as
fast as they are answered. Figures: samples a second, latencies, processor time of all nodes per sample."""
import argparse
import http.client
import multiprocessing
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from ports import free_port  # noqa: E402

TYPE = "application/x-protobuf;proto=io.prometheus.write.v2.Request"
TICKS = os.sysconf("SC_CLK_TCK")
AT_ONCE = 2000


def varint(n):
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def template(client):
    """Symbols, and the series without their samples."""
    symbols, refs = {b"": 0}, []

    def ref(text):
        return varint(symbols.setdefault(text.encode(), len(symbols)))
    for i in range(AT_ONCE):
        labels = {"__name__": f"bench_metric_{i % 50}", "client": str(client), "code": "200",
                  "instance": "host:9100", "job": "bench", "method": "GET", "path": f"/api/{i % 100}",
                  "pod": f"pod-{i // 50}", "version": "1.2.3", "zone": f"zone-{i % 7}"}
        refs.append(field(1, b"".join(ref(n) + ref(v) for n, v in sorted(labels.items()))))
    return b"".join(field(4, s) for s in symbols), refs


def snappy(data):
    out = bytearray(varint(len(data)))
    for at in range(0, len(data), 65536):
        piece = data[at:at + 65536]
        out += b"\xf4" + struct.pack("<H", len(piece) - 1) + piece
    return bytes(out)


def client(number, ports, seconds, results):
    symbols, refs = template(number)
    connections = [http.client.HTTPConnection("127.0.0.1", p, timeout=60) for p in ports]
    headers = {"Content-Type": TYPE, "Content-Encoding": "snappy"}
    latencies, i, end = [], 0, time.monotonic() + seconds
    ts = int(time.time() * 1000) - 3600_000
    while time.monotonic() < end:
        i += 1
        sample = field(2, b"\x09" + struct.pack("<d", i * 1.5) + b"\x10" + varint(ts + i * 100))
        body = snappy(symbols + b"".join(field(5, r + sample) for r in refs))
        connection = connections[(number + i) % len(connections)]
        began = time.perf_counter()
        connection.request("POST", "/api/v1/write", body=body, headers=headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 204:
            results.put((number, f"status {answer.status}: {text[:200]}", []))
            return
        latencies.append(time.perf_counter() - began)
    results.put((number, None, latencies))


class Node:
    def __init__(self, args, folder, name):
        self.args, self.name, self.data = args, name, folder / name
        self.http, self.peer = free_port(), free_port()
        self.log = open(folder / f"{name}.log", "wb")

    def start(self, others, *more):
        env = {**os.environ, "LD_PRELOAD": self.args.slow_sync,
               "SLOW_SYNC_US": str(int(self.args.sync_ms * 1000))}
        self.process = subprocess.Popen(
            [self.args.promfabric, "ingest", "--data", self.data, "--ingest-id", self.name,
             "--http-listen", f"127.0.0.1:{self.http}", "--peer-listen", f"127.0.0.1:{self.peer}",
             *[x for n in others for x in ("--peer", f"{n.name}=127.0.0.1:{n.peer}")], *more],
            env=env, stdout=self.log, stderr=self.log)

    def request(self, method, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.http, timeout=30)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except OSError:
            return 0, b""
        finally:
            connection.close()

    def until(self, method, path):
        deadline = time.monotonic() + 60
        while self.request(method, path)[0] != 200:
            if time.monotonic() > deadline:
                raise SystemExit(f"node {self.name}: {path} is not 200")
            time.sleep(0.1)

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            parts = stat.read().rsplit(") ", 1)[1].split()
        return (int(parts[11]) + int(parts[12])) / TICKS


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--promfabric", required=True)
    parser.add_argument("--slow-sync", required=True)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--sync-ms", type=float, default=4)
    parser.add_argument("--nodes", type=int, default=3)
    args = parser.parse_args()
    args.slow_sync = str(pathlib.Path(args.slow_sync).resolve())
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-three-", dir="/dev/shm"))
    nodes = [Node(args, folder, name) for name in "abc"[:args.nodes]]
    try:
        for node in nodes:
            node.start([n for n in nodes if n is not node], *(["--bootstrap"] if node is nodes[0] else []))
        nodes[0].until("GET", "/readyz")
        for node in nodes[1:]:
            for change in ("add", "promote"):
                nodes[0].until("POST", f"/v1/members?change={change}&name={node.name}")
            node.until("GET", "/readyz")
        time.sleep(3)
        before = sum(n.cpu() for n in nodes)
        results = multiprocessing.Queue()
        clients = [multiprocessing.Process(target=client, args=(
            i, [n.http for n in nodes], args.seconds, results)) for i in range(args.connections)]
        for process in clients:
            process.start()
        latencies = []
        for _ in clients:
            _, error, taken = results.get()
            if error:
                raise SystemExit(error)
            latencies += taken
        cpu = sum(n.cpu() for n in nodes) - before
        latencies.sort()
        samples = len(latencies) * AT_ONCE
        print(f"{args.nodes} nodes, {args.sync_ms} ms a sync, {args.connections} connections: "
              f"{samples / args.seconds / 1e3:.0f} k samples/s, p50 {latencies[len(latencies) // 2] * 1e3:.0f} ms, "
              f"p99 {latencies[int(len(latencies) * 0.99)] * 1e3:.0f} ms, "
              f"{cpu / samples * 1e9:.0f} ns of processor a sample on all nodes together")
    finally:
        for node in nodes:
            node.process.kill()
            node.process.wait()
        shutil.rmtree(folder, True)


if __name__ == "__main__":
    main()
