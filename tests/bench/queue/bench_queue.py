"""bench_queue.py - records per second of one ingest node and of three, on disks of a given speed.

usage: bench_queue.py --promfabric PROGRAM --client PROGRAM --slow-sync LIBRARY [--seconds N] [--clients N]
                      [--bytes N] [--batch N] [--sync-ms N] [--profile FILE]

Every node has a tmpfs, and each of its fdatasyncs takes --sync-ms (an LD_PRELOAD shim). Clients offer as
fast as they are answered, each on a connection of its own to the leader, which answers when a quorum
has the records on its disk. --client is the program bench_queue. --profile: perf records the leader."""
import argparse
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
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


def offer(node, args):
    """What the clients saw: records, seconds, p50_ms, p99_ms."""
    profile = None
    if args.profile:
        profile = subprocess.Popen(["perf", "record", "-g", "-o", args.profile, "-p", str(node.process.pid)],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        result = json.loads(subprocess.check_output(
            [args.client, str(node.http), "bench", str(args.clients), str(args.seconds), str(args.bytes),
             str(args.batch)]))
    finally:
        if profile:
            profile.send_signal(signal.SIGINT)
            profile.wait()
    if result["failed"]:
        raise SystemExit(f"{result['failed']} offers failed")
    return result


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
        cpu, syncs = [n.cpu_s() for n in nodes], leader.metric("promfabric_ingest_queue_syncs_total")
        result = offer(leader, args)
        spent = sum(n.cpu_s() - c for n, c in zip(nodes, cpu))
        syncs = leader.metric("promfabric_ingest_queue_syncs_total") - syncs
        records = max(result["records"], 1)
        print(f"{count} node(s): {result['records_per_second']} records/s of {args.bytes} bytes, "
              f"{args.clients} clients x {args.batch}; acknowledgement p50 {result['p50_ms']} ms, "
              f"p99 {result['p99_ms']} ms; {syncs / args.seconds:.0f} syncs/s of the leader, "
              f"{records / max(syncs, 1):.1f} records each; processor {spent / records * 1e6:.0f} us a record in all",
              flush=True)
        return result["records_per_second"]
    finally:
        for node in nodes:
            node.process.kill()
            node.process.wait()
            node.log.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--promfabric", required=True)
    parser.add_argument("--client", required=True)
    parser.add_argument("--slow-sync", required=True)
    parser.add_argument("--profile")
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
