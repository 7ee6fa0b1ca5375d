#!/usr/bin/env python3
"""one_node.py - what one node's queue takes, against what its disk can sync; and how long a restart takes.

usage: one_node.py PROMFABRIC BENCH_QUEUE [--folder DIR] [--seconds N] [--restart-bytes N]

DIR (default: the current folder) decides which disk is measured."""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from ports import free_port  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")


def sync_rate(folder, record_bytes, per_sync, seconds):
    """Appends of @per_sync records and an fdatasync each, by one writer."""
    path = pathlib.Path(folder) / "sync"
    data, count = b"x" * record_bytes * per_sync, 0
    with open(path, "wb", buffering=0) as file:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            file.write(data)
            os.fdatasync(file.fileno())
            count += 1
    path.unlink()
    return count / seconds


class Node:
    def __init__(self, binary, folder):
        self.binary, self.folder, self.port = binary, folder, free_port()

    def start(self):
        began = time.monotonic()
        self.process = subprocess.Popen(
            [self.binary, "ingest", "--data", f"{self.folder}/data", "--ingest-id", "bench", "--bootstrap",
             "--http-listen", f"127.0.0.1:{self.port}", "--peer-listen", "127.0.0.1:0"],
            stdout=subprocess.DEVNULL)
        while True:
            try:
                self.request("GET", "/readyz")
                return time.monotonic() - began
            except OSError:
                time.sleep(0.01)

    def request(self, method, path):
        return urllib.request.urlopen(urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", method=method)).read()

    def cpu(self):
        fields = open(f"/proc/{self.process.pid}/stat").read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def syncs(self):
        for line in self.request("GET", "/metrics").decode().splitlines():
            if line.startswith("promfabric_ingest_queue_syncs_total "):
                return float(line.split()[1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("promfabric")
    parser.add_argument("bench_queue")
    parser.add_argument("--folder", default=".")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--restart-bytes", type=int, default=1 << 30)
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="bench-queue-", dir=options.folder)
    node = Node(options.promfabric, folder)
    try:
        print(f"disk: {sync_rate(folder, 4096, 1, 3):.0f} fdatasync/s of 4 KiB, "
              f"{sync_rate(folder, 4096, 16, 3):.0f} of 64 KiB")
        node.start()
        node.request("PUT", "/v1/queues/bench")
        for clients, batch in ((32, 1), (32, 16), (1, 1)):
            cpu, syncs = node.cpu(), node.syncs()
            result = json.loads(subprocess.check_output(
                [options.bench_queue, str(node.port), "bench", str(clients), str(options.seconds), "4096",
                 str(batch)]))
            cpu, syncs = node.cpu() - cpu, node.syncs() - syncs
            print(f"{clients} clients, {batch} records a request: {result['records_per_second']} records/s, "
                  f"{syncs / options.seconds:.0f} syncs/s, {result['records'] / max(syncs, 1):.1f} records a "
                  f"sync, p50 {result['p50_ms']} ms, p99 {result['p99_ms']} ms, "
                  f"{cpu / max(result['records'], 1) * 1e6:.1f} us of processor time a record, "
                  f"{result['failed']} failed", flush=True)
        while json.loads(node.request("GET", "/v1/queues/bench/status"))["bytes"] < options.restart_bytes:
            subprocess.check_output([options.bench_queue, str(node.port), "bench", "8", "2", "4096", "64"])
        size = json.loads(node.request("GET", "/v1/queues/bench/status"))["bytes"]
        node.process.kill()
        node.process.wait()
        print(f"restart with {size / 1e9:.2f} GB of log: ready after {node.start():.2f} s")
    finally:
        node.process.kill()
        node.process.wait()
        shutil.rmtree(folder)


main()
