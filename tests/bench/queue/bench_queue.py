"""bench_queue.py - records per second of one ingest node and of three, on disks of a given speed.

usage: bench_queue.py --promfabric PROGRAM --slow-sync LIBRARY [--seconds N] [--clients N] [--bytes N]
                      [--batch N] [--sync-ms N]

Every node has a tmpfs, and each of its fdatasyncs takes --sync-ms (an LD_PRELOAD shim). Clients offer as
fast as they are answered, each on a connection of its own to the leader, which answers when a quorum
has the records on its disk. A figure of the disk alone: what --clients x --batch records per sync would be."""
import argparse
import http.client
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(TOP, "..", "..", "lib"))
from ports import free_port  # noqa: E402


class Node:
    def __init__(self, args, folder, name):
        self.args, self.name, self.data = args, name, os.path.join(folder, name)
        self.http, self.peer = free_port(), free_port()
        self.log = open(os.path.join(folder, f"{name}.log"), "wb")

    def start(self, others, *more):
        env = {**os.environ, "LD_PRELOAD": self.args.slow_sync, "SLOW_SYNC_US": str(int(self.args.sync_ms * 1000))}
        self.process = subprocess.Popen(
            [self.args.promfabric, "ingest", "--data", self.data, "--ingest-id", self.name,
             "--http-listen", f"127.0.0.1:{self.http}", "--peer-listen", f"127.0.0.1:{self.peer}",
             *[x for n in others for x in ("--peer", f"{n.name}=127.0.0.1:{n.peer}")], *more],
            env=env, stdout=self.log, stderr=self.log)

    def request(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.http, timeout=30)
        try:
            connection.request(method, path, body=body)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def wait(self, path):
        deadline = time.monotonic() + 30
        while True:
            try:
                if self.request("GET", path)[0] == 200:
                    return
            except OSError:
                pass
            if time.monotonic() > deadline:
                raise SystemExit(f"node {self.name}: {path} is not 200")
            time.sleep(0.05)

    def cpu_s(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def metric(self, name):
        for line in self.request("GET", "/metrics")[1].decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split(" ")[1])
        return float("nan")


def retry(what, call):
    for _ in range(200):
        status, text = call()
        if status == 200:
            return
        time.sleep(0.1)
    raise SystemExit(f"{what}: {status} {text}")


def offer_until(node, args, end, latencies):
    connection = http.client.HTTPConnection("127.0.0.1", node.http, timeout=30)
    kind = "application/x-ndjson" if args.batch > 1 else "application/octet-stream"
    body = b"\n".join([b"x" * args.bytes] * args.batch)
    while time.monotonic() < end:
        began = time.monotonic()
        connection.request("POST", "/v1/queues/bench", body=body, headers={"Content-Type": kind})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{answer.status}: {text}")
        latencies.append(time.monotonic() - began)


def leader_of(nodes):
    for node in nodes:
        state = json.loads(node.request("GET", "/v1/queues/bench/status")[1])
        for other in nodes:
            if state.get("leader") == other.name:
                return other
    return nodes[0]


def measure(args, folder, count):
    nodes = [Node(args, folder, f"n{count}{i}") for i in range(count)]
    try:
        nodes[0].start(nodes[1:], "--bootstrap")
        nodes[0].wait("/readyz")
        for node in nodes[1:]:
            node.start([n for n in nodes if n is not node])
            node.wait("/livez")
            for change in ("add", "promote"):
                retry(f"{change} {node.name}",
                      lambda: nodes[0].request("POST", f"/v1/members?change={change}&name={node.name}"))
        retry("queue", lambda: nodes[0].request("PUT", "/v1/queues/bench"))
        time.sleep(2)
        leader = leader_of(nodes)
        latencies = [[] for _ in range(args.clients)]
        cpu, syncs = [n.cpu_s() for n in nodes], leader.metric("promfabric_ingest_queue_syncs_total")
        began = time.monotonic()
        threads = [threading.Thread(target=offer_until, args=(leader, args, began + args.seconds, l)) for l in latencies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.monotonic() - began
        every = sorted(x for l in latencies for x in l)
        records = len(every) * args.batch
        spent = sum(n.cpu_s() - c for n, c in zip(nodes, cpu))
        syncs = leader.metric("promfabric_ingest_queue_syncs_total") - syncs
        print(f"{count} node(s): {records / took:.0f} records/s of {args.bytes} bytes, {args.clients} clients x "
              f"{args.batch}; acknowledgement p50 {every[len(every) // 2] * 1000:.1f} ms, "
              f"p99 {every[len(every) * 99 // 100] * 1000:.1f} ms; {syncs / took:.0f} syncs/s of the leader, "
              f"{records / max(syncs, 1):.1f} records each; processor {spent / records * 1e6:.0f} us a record in all")
        return records / took
    finally:
        for node in nodes:
            node.process.kill()
            node.process.wait()
            node.log.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--promfabric", required=True)
    parser.add_argument("--slow-sync", required=True)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--bytes", type=int, default=4096)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--sync-ms", type=float, default=4)
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="bench-queue-", dir="/dev/shm")
    try:
        one = measure(args, folder, 1)
        three = measure(args, folder, 3)
        print(f"three nodes give {100 * three / one:.0f} % of one")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
