#!/usr/bin/env python3
"""run - the same queries over the same data on Promfabric, Prometheus and VictoriaMetrics.

Started by scripts/bench-peers, which provides the programs. Runs are interleaved, so that a noisy
minute hurts all alike; "cold" is the first time a query is asked after a server's start, "warm" the
median of the later ones. Answers are compared with Prometheus's."""
import argparse
import gzip
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
sys.path.insert(0, os.path.join(HERE, "..", "..", "differential"))
import compare  # noqa: E402
import run as differential  # noqa: E402

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


class Server:
    def __init__(self, name, command, ready, data, log, port):
        self.name, self.data = name, data
        self.base = f"http://127.0.0.1:{port}"
        with open(log, "w", encoding="utf-8") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out)
        differential.wait_ready(self.base + ready, self.process)

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
    port = differential.free_port()
    store = os.path.join(folder, "store")
    begin = time.perf_counter()
    subprocess.run([args.promfabric, "import", "--store", store, source], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(f"import into promfabric: {time.perf_counter() - begin:.1f} s")
    servers.append(Server("promfabric", [args.promfabric, "up", "--store", store, "--http-listen",
                                         f"127.0.0.1:{port}"], "/readyz", store,
                          os.path.join(folder, "promfabric.log"), port))
    tsdb = os.path.join(folder, "tsdb")
    begin = time.perf_counter()
    subprocess.run([args.promtool, "tsdb", "create-blocks-from", "openmetrics", source, tsdb],
                   check=True, stdout=subprocess.DEVNULL)
    print(f"import into prometheus: {time.perf_counter() - begin:.1f} s")
    config = os.path.join(folder, "prometheus.yml")
    open(config, "w", encoding="utf-8").close()
    port = differential.free_port()
    servers.append(Server("prometheus", [args.prometheus, f"--config.file={config}",
                                         f"--storage.tsdb.path={tsdb}", f"--web.listen-address=127.0.0.1:{port}",
                                         "--storage.tsdb.retention.time=100y"], "/-/ready", tsdb,
                          os.path.join(folder, "prometheus.log"), port))
    port = differential.free_port()
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
    parser.add_argument("--instances", type=int, default=60, help="34 series each")
    parser.add_argument("--hours", type=int, default=6)
    parser.add_argument("--scrape", type=int, default=15, help="seconds between samples")
    parser.add_argument("--step", type=int, default=60)
    parser.add_argument("--runs", type=int, default=5)
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
    finally:
        for server in servers:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def report(args, servers, samples):
    times = {}
    for turn in range(args.runs + 1):
        for name, kind, text in queries():
            path, params = params_of(args, kind, text)
            for server in servers:
                times.setdefault((name, server.name), []).append(server.time(path, params))
    head = "".join(f"{s.name + ' cold':>18}{'warm ms':>9}" for s in servers)
    print(f"{'query':<16}{head}{'vs prometheus':>15}{'vs victoria':>13}  answer")
    ratios = {"prometheus": [], "victoria": []}
    for name, kind, text in queries():
        path, params = params_of(args, kind, text)
        row, warm = f"{name:<16}", {}
        for s in servers:
            taken = times[name, s.name]
            ok = all(t is not None for t in taken)
            warm[s.name] = statistics.median(taken[1:]) if ok else None
            row += f"{taken[0] * 1000:>18.1f}{warm[s.name] * 1000:>9.1f}" if ok else f"{'failed':>18}{'':>9}"
        for peer, width in (("prometheus", 15), ("victoria", 13)):
            if warm["promfabric"] and warm[peer]:
                ratio = warm["promfabric"] / warm[peer]
                if kind == "range":
                    ratios[peer].append(ratio)
                row += f"{ratio:>{width}.2f}"
            else:
                row += f"{'-':>{width}}"
        asked = {k: v for k, v in params.items() if k != "nocache"}
        ours, theirs = (compare.ask(s.base, path, asked) for s in servers[:2])
        print(row + "  " + (compare.difference(ours, theirs, 1e-9) or "same"))
    for peer, values in ratios.items():
        if values:
            print(f"geometric mean of range queries, our time / {peer}: {statistics.geometric_mean(values):.2f}")
    for s in servers:
        size = folder_bytes(s.data)
        print(f"{s.name}: peak memory {peak_mib(s.process):.0f} MiB, {size / samples:.2f} bytes a sample on disk")


if __name__ == "__main__":
    sys.exit(main())
