#!/usr/bin/env python3
"""head_load.py - how long acknowledgements take while heads are read without a pause.

usage: head_load.py PROMFABRIC [SECONDS]    one node on /dev/shm, 100,000 series in its head; rounds without
and with readers alternate, SECONDS each (10). Prints p50 and p99 of both, and elections."""
import http.client
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

SERIES, READERS, ROUNDS = 100_000, 4, 3


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Client:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def post(self, path, body):
        self.connection.request("POST", path, body=body)
        answer = self.connection.getresponse()
        return answer.status, answer.read()


def fill(client, now):
    for first in range(0, SERIES, 5000):
        text = "".join(f'm{{instance="i{s % 200}",le="{s // 200}"}} {s} {now}\n'
                       for s in range(first, first + 5000))
        assert client.post("/api/v1/import/prometheus", text.encode())[0] == 204


def read_on(port, stop, counts):
    client = Client(port)
    status = json.loads(client.post("/v1/heads/status", json.dumps(
        {"tenant": "default", "min_ts": 0, "max_ts": 1 << 50}))[1])["partitions"][0]
    ask = {"tenant": "default", "partition": 0, "queue": status["queue"], "cut": status["applied"],
           "generation": status["ranges"][0]["generation"], "shard": 0, "shards": 1, "min_ts": 0,
           "max_ts": 1 << 50}
    while not stop.is_set():
        counts.append(client.post("/v1/heads/read", json.dumps(ask))[0])


def write_for(client, seconds, now, number):
    times, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        number[0] += 1
        text = "".join(f'w{{s="{s}"}} {number[0]} {now + number[0]}\n' for s in range(100)).encode()
        began = time.monotonic()
        status = client.post("/api/v1/import/prometheus", text)[0]
        times.append(time.monotonic() - began)
        assert status == 204, status
        time.sleep(0.005)
    return times


def report(name, times):
    times.sort()
    print(f"{name}: {len(times)} writes, p50 {times[len(times) // 2] * 1e3:.1f} ms, "
          f"p99 {times[len(times) * 99 // 100] * 1e3:.1f} ms, longest {times[-1] * 1e3:.1f} ms")


def main():
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 10
    folder, port = tempfile.mkdtemp(dir="/dev/shm"), free_port()
    node = subprocess.Popen([sys.argv[1], "ingest", "--data", folder + "/data", "--bootstrap", "--ingest-id", "a",
                             "--http-listen", f"127.0.0.1:{port}", "--peer-listen", "127.0.0.1:0",
                             "--seal-age", "1h"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            try:
                if Client(port).post("/v1/heads/status", json.dumps(
                        {"tenant": "default", "min_ts": 0, "max_ts": 0}))[0] == 200:
                    break
            except OSError:
                pass
            time.sleep(0.1)
        client, now, number = Client(port), int(time.time() * 1000) - 600_000, [0]
        fill(client, now)
        alone, beside, reads = [], [], []
        for _ in range(ROUNDS):
            alone += write_for(client, seconds, now, number)
            stop = threading.Event()
            threads = [threading.Thread(target=read_on, args=(port, stop, reads)) for _ in range(READERS)]
            for thread in threads:
                thread.start()
            beside += write_for(client, seconds, now, number)
            stop.set()
            for thread in threads:
                thread.join()
        report("without reads", alone)
        report("with reads   ", beside)
        print(f"{len(reads)} reads of {SERIES} series, {reads.count(200)} answered")
    finally:
        node.kill()
        node.wait()
        shutil.rmtree(folder)


main()
