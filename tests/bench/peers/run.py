#!/usr/bin/env python3
"""run - the same queries over the same data on Promfabric, Prometheus and VictoriaMetrics.

Started by scripts/bench-peers, which provides the programs. Runs are interleaved, so that a noisy
minute hurts all alike; "cold" is the first time a query is asked after a server's start, "warm" the
median of the later ones. Answers are compared with Prometheus's."""
import argparse
import gzip
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "lib"))
sys.path.insert(0, os.path.join(HERE, "..", "..", "differential"))
import compare  # noqa: E402
from ports import free_port  # noqa: E402
from servers import wait_ready  # noqa: E402

import importlib.util  # noqa: E402

spec = importlib.util.spec_from_file_location("peers_dataset", os.path.join(HERE, "dataset.py"))
dataset = importlib.util.module_from_spec(spec)
spec.loader.exec_module(dataset)


def queries():
    with open(os.path.join(HERE, "..", "queries.txt"), encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                name, kind, text = line.split(None, 2)
                yield name, kind, text.strip()


def panels():
    with open(os.path.join(HERE, "..", "panels.txt"), encoding="utf-8") as f:
        return [line.strip() for line in f if line.strip() and not line.startswith("#")]


def folder_bytes(path):
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, fs in os.walk(path) for f in fs)


def family(pid):
    """The process and all its children."""
    out = [pid]
    for p in out:
        try:
            with open(f"/proc/{p}/task/{p}/children", encoding="ascii") as f:
                out.extend(int(c) for c in f.read().split())
        except OSError:
            pass
    return out


def peak_mib(process):
    """Peak resident memory of the process and its children, in MiB."""
    total = 0
    for pid in family(process.pid):
        try:
            with open(f"/proc/{pid}/status", encoding="ascii") as f:
                total += next((int(l.split()[1]) for l in f if l.startswith("VmHWM")), 0)
        except OSError:
            pass
    return total / 1024


def shared_once_mib(process):
    """What the process and its children hold now, in MiB, pages that several of them map counted once (PSS)."""
    total = 0
    for pid in family(process.pid):
        try:
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
                total += next((int(l.split()[1]) for l in f if l.startswith("Pss:")), 0)
        except OSError:
            pass
    return total / 1024


def processor_seconds(process):
    """Processor time that the process and its children took so far."""
    total = 0
    for pid in family(process.pid):
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as f:
                    total += int(f.read().split()[0])
        except OSError:
            pass
    return total / 1e9


class Server:
    def __init__(self, name, command, ready, data, log, port, env=None):
        self.name, self.data = name, data
        self.base = f"http://127.0.0.1:{port}"
        begin = time.perf_counter()
        with open(log, "w", encoding="utf-8") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, **(env or {})})
        wait_ready(self.base + ready, self.process)
        self.start_s = time.perf_counter() - begin

    def time(self, path, params):
        body = urllib.parse.urlencode(params).encode()
        begin = time.perf_counter()
        try:
            with urllib.request.urlopen(urllib.request.Request(self.base + path, data=body), timeout=120) as r:
                r.read()
        except OSError as e:
            print(f"  {self.name}: {params['query']}: {e}")
            return None
        return time.perf_counter() - begin

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()


def start_all(args, folder, source):
    servers = []
    port = free_port()
    store = os.path.join(folder, "store")
    begin = time.perf_counter()
    subprocess.run([args.promfabric, "import", "--store", store, source], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(f"import into promfabric: {time.perf_counter() - begin:.1f} s")
    servers.append(Server("promfabric", [args.promfabric, "up", "--store", store, "--http-listen",
                                         f"127.0.0.1:{port}", "--write-listen", "127.0.0.1:0"], "/readyz", store,
                          os.path.join(folder, "promfabric.log"), port))
    tsdb = os.path.join(folder, "tsdb")
    begin = time.perf_counter()
    subprocess.run([args.promtool, "tsdb", "create-blocks-from", "openmetrics", source, tsdb],
                   check=True, stdout=subprocess.DEVNULL)
    print(f"import into prometheus: {time.perf_counter() - begin:.1f} s")
    config = os.path.join(folder, "prometheus.yml")
    open(config, "w", encoding="utf-8").close()
    port = free_port()
    servers.append(Server("prometheus", [args.prometheus, f"--config.file={config}",
                                         f"--storage.tsdb.path={tsdb}", f"--web.listen-address=127.0.0.1:{port}",
                                         "--storage.tsdb.retention.time=100y"], "/-/ready", tsdb,
                          os.path.join(folder, "prometheus.log"), port))
    port = free_port()
    data = os.path.join(folder, "victoria")
    servers.append(Server("victoria", [args.victoria_metrics, f"-storageDataPath={data}",
                                       f"-httpListenAddr=127.0.0.1:{port}", "-retentionPeriod=100y",
                                       "-search.latencyOffset=0s", "-search.maxUniqueTimeseries=1000000"],
                          "/health", data, os.path.join(folder, "victoria.log"), port))
    begin = time.perf_counter()
    with open(source, "rb") as f:  # exposition wants ms; OpenMetrics has seconds
        lines = (l[:-1] + b"000\n" for l in f if not l.startswith(b"#"))
        batch = []
        for line in lines:
            batch.append(line)
            if len(batch) == 500000:
                post(servers[-1].base, batch)
                batch = []
        if batch:
            post(servers[-1].base, batch)
    urllib.request.urlopen(servers[-1].base + "/internal/force_flush", timeout=60).read()
    print(f"import into victoria: {time.perf_counter() - begin:.1f} s")
    return servers


def refreshed(args, servers, folder):
    """The dashboard of panels.txt, refreshed every 30 s of the data's time, response caches on. Promfabric is
    another one over the same store, whose workers keep results: the other figures are without."""
    port = free_port()
    ours = Server("promfabric", [args.promfabric, "up", "--store", servers[0].data, "--http-listen",
                                 f"127.0.0.1:{port}", "--write-listen", "127.0.0.1:0", "--ingest-data",
                                 os.path.join(folder, "refreshed-ingest")], "/readyz", servers[0].data,
                  os.path.join(folder, "refreshed.log"), port, {"PROMFABRIC_RESULT_MEMORY": "64MiB"})
    try:
        taken = refresh_all(args, [ours] + servers[1:])
    finally:
        ours.stop()
    print(f"\n{len(panels())} panels over {args.hours - 1} h, refreshed every 30 s: medians of {args.refreshes}")
    warm = {name: statistics.median(s for s, _ in runs) for name, runs in taken.items()}
    for name, runs in taken.items():
        print(f"{name}: {warm[name] * 1000:.1f} ms, processor time "
              f"{statistics.median(cpu for _, cpu in runs) * 1000:.1f} ms a refresh; "
              f"our time divided by it {warm['promfabric'] / warm[name]:.2f}")


def refresh_all(args, servers):
    """{server: [(seconds, processor seconds), ...]}: without the first three, which fill caches."""
    taken = {s.name: [] for s in servers}
    for n in range(-3, args.refreshes):
        end = (dataset.START_S + args.hours * 3600 - 30 * (args.refreshes - n)) // args.step * args.step
        for server in servers:
            before, begin = processor_seconds(server.process), time.perf_counter()
            for text in panels():
                if server.time("/api/v1/query_range", {"query": text, "end": end, "step": args.step,
                                                       "start": end - (args.hours - 1) * 3600}) is None:
                    raise SystemExit(f"{server.name} does not answer: {text}")
            if n >= 0:
                taken[server.name].append((time.perf_counter() - begin,
                                           processor_seconds(server.process) - before))
    return taken


def post(base, lines):
    body = gzip.compress(b"".join(lines), 1)
    request = urllib.request.Request(base + "/api/v1/import/prometheus", data=body,
                                     headers={"Content-Encoding": "gzip"})
    urllib.request.urlopen(request, timeout=120).read()


def params_of(args, kind, text):
    end = dataset.START_S + args.hours * 3600
    if kind == "instant":
        return "/api/v1/query", {"query": text, "time": end - 60, "nocache": 1}
    return "/api/v1/query_range", {"query": text, "start": dataset.START_S + 3600, "end": end,
                                   "step": args.step, "nocache": 1}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("promfabric", "prometheus", "promtool", "victoria-metrics"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--instances", type=int, default=100, help="34 series each")
    parser.add_argument("--hours", type=int, default=6)
    parser.add_argument("--scrape", type=int, default=15, help="seconds between samples")
    parser.add_argument("--step", type=int, default=60)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--refreshes", type=int, default=20, help="of a dashboard; 0: none")
    args = parser.parse_args()

    folder = tempfile.mkdtemp(prefix="promfabric-bench-")
    servers = []
    try:
        source = os.path.join(folder, "data.om")
        with open(source, "w", encoding="utf-8") as out:
            series, samples = dataset.write(out, args.instances, args.hours, args.scrape)
        print(f"{series} series, {samples} samples, range queries of {(args.hours - 1)} h at {args.step} s")
        servers = start_all(args, folder, source)
        report(args, servers, samples)
        if args.refreshes:
            refreshed(args, servers, folder)
    finally:
        for server in servers:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def samples_read(server, path, params):
    """How many samples of the store a query looks at: Promfabric counts them."""
    asked = {k: v for k, v in params.items() if k != "nocache"}
    body = urllib.parse.urlencode({**asked, "stats": "all"}).encode()
    with urllib.request.urlopen(server.base + path, data=body, timeout=120) as r:
        return json.load(r)["data"]["stats"]["samples"]["samplesRead"]


def measure(args, servers):
    """{(query, server): [(seconds, processor seconds), ...]}, the first of each cold."""
    taken = {}
    for _ in range(args.runs + 1):
        for name, kind, text in queries():
            path, params = params_of(args, kind, text)
            for server in servers:
                before = processor_seconds(server.process)
                seconds = server.time(path, params)
                taken.setdefault((name, server.name), []).append(
                    (seconds, processor_seconds(server.process) - before))
    return taken


def report(args, servers, samples):
    taken = measure(args, servers)
    print("\nmilliseconds: cold is the first time, warm and cpu are medians of the later ones; cpu is\n"
          "processor time of all of a server's processes; * marks range queries over >= 1 M samples\n")
    print(f"{'query':<15}{'samples':>9}" + "".join(f"{s.name:>15}: cold{'warm':>8}{'cpu':>8}" for s in servers)
          + f"{'/prometheus':>13}{'/victoria':>11}  answer")
    ratios = {(peer, kind): [] for peer in ("prometheus", "victoria")
              for kind in ("heavy", "range", "instant", "cold", "cpu")}
    for name, kind, text in queries():
        path, params = params_of(args, kind, text)
        touched = samples_read(servers[0], path, params)
        heavy = kind == "range" and touched >= 1_000_000
        row, warm, cold, cpus = f"{name + ('*' if heavy else ''):<15}{touched:>9}", {}, {}, {}
        for s in servers:
            runs = taken[name, s.name]
            if any(seconds is None for seconds, _ in runs):
                row += f"{'failed':>36}"
                continue
            warm[s.name] = statistics.median(seconds for seconds, _ in runs[1:])
            cold[s.name] = runs[0][0]
            cpus[s.name] = statistics.median(cpu for _, cpu in runs[1:])
            row += f"{runs[0][0] * 1000:>20.1f}{warm[s.name] * 1000:>8.1f}{cpus[s.name] * 1000:>8.1f}"
        for peer, width in (("prometheus", 13), ("victoria", 11)):
            if "promfabric" not in warm or peer not in warm:
                row += f"{'-':>{width}}"
                continue
            ratio = warm["promfabric"] / warm[peer]
            row += f"{ratio:>{width}.2f}"
            ratios[peer, kind].append(ratio)
            if heavy:
                ratios[peer, "heavy"].append(ratio)
            ratios[peer, "cold"].append(cold["promfabric"] / cold[peer])
            ratios[peer, "cpu"].append(max(cpus["promfabric"], 1e-5) / max(cpus[peer], 1e-5))
        asked = {k: v for k, v in params.items() if k != "nocache"}
        ours, theirs = (compare.ask(s.base, path, asked) for s in servers[:2])
        print(row + "  " + (compare.difference(text, ours, theirs, 1e-9) or "same"), flush=True)
    print()
    for peer in ("prometheus", "victoria"):
        print_means(peer, ratios)
    for s in servers:
        size = folder_bytes(s.data)
        print(f"{s.name}: peak memory {peak_mib(s.process):.0f} MiB (now, shared pages once: "
              f"{shared_once_mib(s.process):.0f}), {size / 2**20:.1f} MiB or "
              f"{size / samples:.2f} bytes a sample on disk, ready after {s.start_s:.2f} s")


def print_means(peer, ratios):
    """Geometric means of our time divided by a peer's, over several choices of queries."""
    every = ratios[peer, "range"] + ratios[peer, "instant"]
    for what, values in (("range queries over >= 1 M samples", ratios[peer, "heavy"]),
                         ("all range queries", ratios[peer, "range"]),
                         ("instant queries", ratios[peer, "instant"]),
                         ("all queries", every),
                         ("all queries, cold", ratios[peer, "cold"]),
                         ("all queries, processor time", ratios[peer, "cpu"])):
        if values:
            print(f"our time / {peer}, {what}: geometric mean {statistics.geometric_mean(values):.2f}, "
                  f"worst {max(values):.2f} of {len(values)}")


if __name__ == "__main__":
    sys.exit(main())
