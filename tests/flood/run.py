#!/usr/bin/env python3
"""run.py - everything hostile at once against real processes, and one client that is polite.

usage: run.py [--seconds N] [--seed N] [--memory-mib N]

One tenant's clients read slowly, send half requests, flood with connections, ask for too much, cancel
and send garbage; half of one worker's artifacts arrive damaged, and some segments are no segments.
Meanwhile another tenant asks what it asked before the flood. Prints what happened; exit code 1 if a
process died, the API or a worker used more memory than --memory-mib, or an answer to the polite client
was wrong or missing. Needs PROMFABRIC_BINARY and PROMFABRIC_LOADER, as scripts/flood sets them."""
import argparse
import collections
import http.server
import os
import pathlib
import random
import sys
import threading
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration" / "api"))
from harness import START, Fabric, load, standard_lines, wait_for  # noqa: E402
from ports import free_port  # noqa: E402
from hostile import ATTACKS, Target  # noqa: E402

END = START + 7000
LIMITS = "hostile queries=2 queued=64 streams=24 work=2 memory=96MiB spool=64MiB samples=5000000\n"
API_FLAGS = ("--queries-active=8", "--queries-max=128", "--queries-memory=192MiB",
             "--query-memory=64MiB", "--spool-bytes=256MiB", "--http-connections-per-address=256",
             "--http-bodies-bytes=64MiB", "--http-idle-timeout=10s", "--log-level=warn",
             "--query-timeout=30s")
POLITE = (
    ("/api/v1/query", {"query": "up", "time": START + 3600}),
    ("/api/v1/query", {"query": "sum(rate(http_requests_total[5m]))", "time": START + 3600}),
    ("/api/v1/query_range", {"query": "sum by (job) (temperature)", "start": START,
                             "end": START + 3600, "step": 60}),
    ("/api/v1/labels", {}),
    ("/api/v1/label/job/values", {}),
)


class DamagingProxy(http.server.ThreadingHTTPServer):
    """Between a worker and the API: hands on artifacts, half of them changed, cut or late."""
    daemon_threads = True
    worker_port = 0
    damaged = 0

    def handle_error(self, *_):
        pass  # the API goes when it has seen enough of a damaged one

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            url = f"http://127.0.0.1:{self.server.worker_port}{self.path}"
            try:
                with urllib.request.urlopen(url, timeout=10) as answer:
                    data = bytearray(answer.read())
            except OSError:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            harm = random.choice(["change", "cut", "stall", None, None, None])
            self.server.damaged += harm is not None
            if harm == "change" and data:
                data[random.randrange(len(data))] ^= 0xff
            if harm == "cut":
                data = data[:len(data) // 2]
                self.close_connection = True
            if harm == "stall":
                time.sleep(random.uniform(0, 1))
            self.wfile.write(data)

        def log_message(self, *_):
            pass


class Watch(threading.Thread):
    """The most memory each process had, looked at often."""

    def __init__(self, processes, stop):
        super().__init__(daemon=True)
        self.processes, self.stop_event = processes, stop
        self.peak = collections.Counter()
        self.dead = set()

    def run(self):
        while not self.stop_event.wait(0.2):
            for process in self.processes:
                if process.process.poll() is not None:
                    self.dead.add(process.name)
                    continue
                try:
                    text = pathlib.Path(f"/proc/{process.pid}/status").read_text()
                except OSError:
                    continue
                rss = next(int(line.split()[1]) for line in text.splitlines()
                           if line.startswith("VmRSS"))
                self.peak[process.name] = max(self.peak[process.name], rss // 1024)


def attack(target, name, function, stop, counts):
    while not stop.is_set():
        try:
            status = function(target)
            counts[name, status or "done"] += 1
        except (OSError, ValueError, AssertionError) as error:
            counts[name, type(error).__name__] += 1
            time.sleep(0.05)
        except Exception as error:  # what http.client says of a cut answer
            counts[name, type(error).__name__] += 1


def ask_politely(fabric, want, stop, results):
    while not stop.is_set():
        for path, params in POLITE:
            began = time.monotonic()
            try:
                status, answer = fabric.json(path, params, headers={"X-Scope-OrgID": "polite"})
            except Exception as error:
                results.append((path, time.monotonic() - began, repr(error)))
                continue
            wrong = None if (status, answer) == (200, want[path, str(params)]) else (
                f"{status} {str(answer)[:200]}")
            results.append((path, time.monotonic() - began, wrong))
            stop.wait(0.05)


def start(folder_limits):
    """The fabric, with a damaging proxy in front of the second worker's artifacts."""
    fabric = Fabric(2, start_workers=False)
    fabric.api.stop()
    limits = pathlib.Path(fabric.folder, "limits")
    limits.write_text(folder_limits)
    fabric.api_flags = [*API_FLAGS, f"--tenant-limits={limits}"]
    for tenant in ("hostile", "polite"):
        load(fabric.store, standard_lines(48), tenant=tenant)
    damaged = pathlib.Path(fabric.store, "tenant=damaged",
                           "date=" + time.strftime("%Y-%m-%d", time.gmtime(START)))
    damaged.mkdir(parents=True)
    for i in range(8):
        (damaged / f"{START}000_{END}000_s0of1_g{i + 1}_{i:016x}.parquet").write_bytes(
            b"PAR1" + os.urandom(4000) + b"PAR1")
    proxy = DamagingProxy(("127.0.0.1", free_port()), DamagingProxy.Handler)
    proxy.worker_port = fabric.http_ports[1]
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    fabric.start_worker(0, ("--log-level=warn",))
    fabric.start_worker(1, ("--log-level=warn",
                            f"--advertise-url=http://127.0.0.1:{proxy.server_address[1]}"))
    fabric.start_api()
    fabric.wait_workers(2)
    return fabric, proxy


def quantile(values, q):
    ordered = sorted(values)
    return ordered[min(int(q * len(ordered)), len(ordered) - 1)] if ordered else 0.0


def report(counts, results, watch, proxy, seconds):
    print(f"flood of {seconds:.0f} s")
    for name, _, _ in ATTACKS:
        said = ", ".join(f"{status} {count}" for (attacker, status), count in sorted(
            counts.items(), key=str) if attacker == name)
        print(f"  {name:18s} {said}")
    print(f"  damaged artifacts  {proxy.damaged}")
    took = [seconds for _, seconds, _ in results]
    wrong = [(path, why) for path, _, why in results if why]
    print(f"polite client: {len(results)} answers, {len(wrong)} wrong or missing; median "
          f"{quantile(took, 0.5) * 1000:.0f} ms, p99 {quantile(took, 0.99) * 1000:.0f} ms, "
          f"longest {max(took, default=0) * 1000:.0f} ms")
    for path, why in wrong[:5]:
        print(f"  {path}: {why}")
    print("most memory: " + ", ".join(f"{name} {mib} MiB" for name, mib in sorted(
        watch.peak.items())))
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=45)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--memory-mib", type=int, default=768)
    options = parser.parse_args()
    random.seed(options.seed)
    fabric, proxy = start(LIMITS)
    processes = [fabric.api, *fabric.workers]
    want = {(path, str(params)): fabric.json(path, params, headers={"X-Scope-OrgID": "polite"})[1]
            for path, params in POLITE}
    stop, counts, results = threading.Event(), collections.Counter(), []
    watch = Watch(processes, stop)
    watch.start()
    target = Target(fabric.api_port, "hostile", START, END)
    threads = [threading.Thread(target=attack, args=(target, name, function, stop, counts),
                                daemon=True)
               for name, function, number in ATTACKS for _ in range(number)]
    threads.append(threading.Thread(target=ask_politely, args=(fabric, want, stop, results),
                                    daemon=True))
    began = time.monotonic()
    for thread in threads:
        thread.start()
    while time.monotonic() - began < options.seconds and not watch.dead:
        time.sleep(0.5)
    stop.set()
    for thread in threads:
        thread.join(30)
    wrong = report(counts, results, watch, proxy, time.monotonic() - began)
    alive = [process.name for process in processes if process.process.poll() is None]
    wait_for("all queries to end", lambda: not fabric.data("/api/v1/queries"), timeout=60)
    codes = fabric.close()
    problems = []
    if len(alive) < len(processes) or any(codes.values()):
        problems.append(f"a process died: alive {alive}, exit codes {codes}")
    if wrong or len(results) < options.seconds / 10:
        problems.append(f"{len(wrong)} of {len(results)} polite answers wrong or missing")
    if max(watch.peak.values(), default=0) > options.memory_mib:
        problems.append(f"more memory than {options.memory_mib} MiB: {dict(watch.peak)}")
    for problem in problems:
        print("FAILED: " + problem)
    print("ok" if not problems else f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
