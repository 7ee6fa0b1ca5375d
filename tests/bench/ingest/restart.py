"""restart.py - how long a node takes to be there again when its log is full of samples that are not in the store.

usage: restart.py PROMFABRIC [--log-bytes N] [--folder DIR] [--nice N] [FLAG-OF-INGEST...]     1 GB, /dev/shm

Writes hot series of 10 labels until the log has so many bytes, ends the node with SIGKILL and starts it again. Figures:
wall and processor time until /readyz says yes, until a write is acknowledged, and until a status is answered; the
samples; memory before and after. Without --store nothing is ever sealed: all of it is read again, but what is in
files of closed ranges (--seal-bytes)."""
import argparse
import http.client
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import tempfile
import time

from three_nodes import TICKS, TYPE, field, free_port, snappy, template, varint

PER_SERIES = 20


class Node:
    def __init__(self, program, folder, flags):
        self.port, self.began = free_port(), 0.0
        self.command = [program, "ingest", f"--data={folder}/data", "--ingest-id=a", "--bootstrap", "--head-bytes=0",
                        f"--http-listen=127.0.0.1:{self.port}", f"--peer-listen=127.0.0.1:{free_port()}", *flags]
        self.log, self.process = open(f"{folder}/log", "ab"), None

    def start(self, nice=0):
        self.began = time.monotonic()
        self.process = subprocess.Popen(["nice", "-n", str(nice), *self.command], stdout=self.log, stderr=self.log,
                                        stdin=subprocess.DEVNULL)

    def request(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except OSError:
            return 0, b""
        finally:
            connection.close()

    def until(self, what, *request):
        """Wall and processor seconds since the start until it works."""
        while (got := self.request(*request))[0] // 100 != 2:
            if self.process.poll() is not None or time.monotonic() > self.began + 600:
                raise SystemExit(f"{what}: {got}")
            time.sleep(0.02)
        return f"{what} after {time.monotonic() - self.began:.2f} s ({self.cpu():.2f} s of processor)"

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as stat:
            parts = stat.read().rsplit(") ", 1)[1].split()
        return (int(parts[11]) + int(parts[12])) / TICKS

    def memory_mib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024

    def log_bytes(self):
        return json.loads(self.request("GET", "/v1/queues/metrics-0/status")[1])["bytes"]


def write(body):
    return "POST", "/api/v1/write", body, {"Content-Type": TYPE, "Content-Encoding": "snappy"}


def make_request(symbols, refs, ts, i):
    samples = b"".join(field(2, b"\x09" + struct.pack("<d", (i + k) * 1.5) + b"\x10" + varint(ts + (i + k) * 10))
                       for k in range(PER_SERIES))
    return write(snappy(symbols + b"".join(field(5, r + samples) for r in refs)))


def fill(node, log_bytes):
    """Requests until the log has so much; how many samples, and another request."""
    symbols, refs = template(0)
    ts, i, size = int(time.time() * 1000) - 3600_000, 0, 0
    while size < log_bytes:
        for _ in range(10):
            status, text = node.request(*make_request(symbols, refs, ts, i))
            if status != 204:
                raise SystemExit(f"a write is {status}: {text[:300]}")
            i += PER_SERIES
        size = node.log_bytes()
    return i * len(refs), make_request(symbols, refs, ts, i)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("promfabric")
    parser.add_argument("--log-bytes", type=int, default=10**9)
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--nice", type=int, default=0, help="of the node that is started again, on a busy machine")
    args, flags = parser.parse_known_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-restart-", dir=args.folder))
    node = Node(args.promfabric, folder, flags)
    try:
        node.start()
        node.until("ready", "GET", "/readyz")
        samples, another = fill(node, args.log_bytes)
        size, memory = node.log_bytes(), node.memory_mib()
        node.process.send_signal(signal.SIGKILL)
        node.process.wait()
        node.start(args.nice)
        steps = [node.until("ready", "GET", "/readyz"), node.until("a write acknowledged", *another),
                 node.until("a status", "POST", "/v1/heads/status", json.dumps(
                     {"tenant": "default", "min_ts": -(1 << 58), "max_ts": 1 << 58}))]
        print(f"{samples / 1e6:.1f} M samples, {size / 1e9:.2f} GB of log, {memory:.0f} MiB before the kill: " +
              ", ".join(steps) + f", {node.memory_mib():.0f} MiB then; load {os.getloadavg()[0]:.0f}")
    finally:
        if node.process:
            node.process.kill()
            node.process.wait()
        shutil.rmtree(folder, True)


if __name__ == "__main__":
    main()
