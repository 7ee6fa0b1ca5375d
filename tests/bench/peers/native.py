#!/usr/bin/env python3
"""native - queries over native histograms, and what they take on disk, beside Prometheus.

Started by scripts/bench-peers --native. Latencies of many servers, exponential buckets, a scrape every
15 s. Prometheus gets them by remote write and is then started again on a block of its own making."""
import argparse
import importlib.util
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location("peers_run", os.path.join(HERE, "run.py"))
peers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(peers)
import compare  # noqa: E402  (peers put its folder into the path)
import native  # noqa: E402
import remote_write  # noqa: E402

START_S = peers.dataset.START_S
SLICE_S = 300  # of a remote-write request

QUERIES = [
    ("quantile of rates", "histogram_quantile(0.99, sum by (job) (rate(h[5m])))"),
    ("sum(rate)", "sum(rate(h[5m]))"),
    ("rate count", "histogram_count(sum by (job) (rate(h[5m])))"),
    ("sum", "sum by (job) (h)"),
    ("quantile each", 'histogram_quantile(0.9, rate(h{job="api"}[5m]))'),
    ("rate", 'rate(h{instance=~"host-00.."}[5m])'),
]


class Source:
    """One server's latencies; the same for the same number."""

    def __init__(self, number, schema):
        self.rng = random.Random(number)
        self.labels = {"__name__": "h", "job": ("api", "web", "db", "cache")[number % 4],
                       "instance": f"host-{number:04d}"}
        self.histogram = native.Histogram(schema, 2.0 ** -128)
        self.middle, self.spread = self.rng.uniform(-5, -1), self.rng.uniform(0.5, 0.9)
        for _ in range(400):
            self.scrape()

    def scrape(self):
        h, gauss = self.histogram, self.rng.gauss
        for _ in range(self.rng.randrange(3, 15)):
            value = gauss(self.middle, self.spread)
            h.sum += math.exp(value)
            index = math.ceil(value * 1.4426950408889634 * 2.0 ** h.schema)
            h.positive[index] = h.positive.get(index, 0) + 1
        return h


def write_all(args, out, base):
    """The same histograms as text to @out and by remote write to @base; returns how many, and buckets."""
    sources = [Source(i, args.schema) for i in range(args.series)]
    texts = [[] for _ in sources]
    hints, count, buckets = (native.UNKNOWN, native.NOT_RESET), 0, 0
    for low in range(START_S, START_S + args.hours * 3600, SLICE_S):
        body = b""
        for source, lines in zip(sources, texts):
            label = ",".join(f'{k}="{v}"' for k, v in sorted(source.labels.items()) if k != "__name__")
            message = b"".join(remote_write.field(1, remote_write.field(1, k.encode()) + remote_write.field(2, v.encode()))
                               for k, v in sorted(source.labels.items()))
            for t in range(low, low + SLICE_S, args.scrape):
                h = source.scrape()
                h.hint = hints[t > START_S]
                lines.append(f"h{{{label}}} {h.text()} {t}\n")
                h.hint = native.UNKNOWN
                message += remote_write.field(4, h.message(t * 1000))
                count, buckets = count + 1, buckets + len(h.positive)
            body += remote_write.field(1, message)
        remote_write.post(base, body)
    for lines in texts:
        out.writelines(lines)
    out.write("# EOF\n")
    return count, buckets


def prometheus(args, folder, data, name):
    port = peers.free_port()
    config = os.path.join(folder, "prometheus.yml")
    open(config, "w", encoding="utf-8").close()
    return peers.Server("prometheus", [
        args.prometheus, f"--config.file={config}", f"--storage.tsdb.path={data}", "--web.enable-admin-api",
        f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=100y",
        "--web.enable-remote-write-receiver", "--enable-feature=native-histograms"], "/-/ready", data,
        os.path.join(folder, name), port)


def snapshot(server):
    request = urllib.request.Request(server.base + "/api/v1/admin/tsdb/snapshot", data=b"")
    with urllib.request.urlopen(request, timeout=300) as response:
        return os.path.join(server.data, "snapshots", json.load(response)["data"]["name"])


def start_both(args, folder):
    """(servers, histograms, buckets)."""
    first = prometheus(args, folder, os.path.join(folder, "tsdb"), "first.log")
    source = os.path.join(folder, "data.om")
    try:
        with open(source, "w", encoding="utf-8") as out:
            count, buckets = write_all(args, out, first.base)
        block = snapshot(first)
    finally:
        first.stop()
    store = os.path.join(folder, "store")
    begin = time.perf_counter()
    subprocess.run([args.promfabric, "import", "--store", store, source], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(f"import into promfabric: {time.perf_counter() - begin:.1f} s")
    port = peers.free_port()
    ours = peers.Server("promfabric", [args.promfabric, "up", "--store", store, "--http-listen", f"127.0.0.1:{port}"],
                        "/readyz", store, os.path.join(folder, "promfabric.log"), port)
    return [ours, prometheus(args, folder, block, "prometheus.log")], count, buckets


def params_of(args, text):
    end = START_S + args.hours * 3600 - args.scrape
    return "/api/v1/query_range", {"query": text, "start": START_S + 600, "end": end, "step": args.step}


def report(args, servers, count, buckets):
    taken = {}
    for _ in range(args.runs + 1):
        for name, text in QUERIES:
            path, params = params_of(args, text)
            for server in servers:
                before = peers.processor_seconds(server.process)
                seconds = server.time(path, params)
                taken.setdefault((name, server.name), []).append(
                    (seconds, peers.processor_seconds(server.process) - before))
    print(f"{'milliseconds':<20}{'promfabric: cold':>18}{'warm':>8}{'cpu':>8}{'prometheus: cold':>18}{'warm':>8}{'cpu':>8}"
          f"{'ratio':>8}  answer")
    for name, text in QUERIES:
        row, warm = f"{name:<20}", []
        for server in servers:
            runs = taken[name, server.name]
            warm.append(statistics.median(seconds for seconds, _ in runs[1:]))
            cpu = statistics.median(cpu for _, cpu in runs[1:])
            row += f"{runs[0][0] * 1000:>18.1f}{warm[-1] * 1000:>8.1f}{cpu * 1000:>8.1f}"
        path, params = params_of(args, text)
        ours, theirs = (compare.ask(s.base, path, params) for s in servers)
        print(f"{row}{warm[0] / warm[1]:>8.2f}  {compare.difference(text, ours, theirs, 1e-9) or 'same'}", flush=True)
    print(f"\n{count} histograms, {buckets / count:.1f} buckets each")
    for server in servers:
        size = peers.folder_bytes(server.data)
        print(f"{server.name}: peak memory {peers.peak_mib(server.process):.0f} MiB, {size / 2**20:.1f} MiB or "
              f"{size / count:.1f} bytes a histogram on disk")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("promfabric", "prometheus"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--series", type=int, default=1000)
    parser.add_argument("--hours", type=int, default=2)
    parser.add_argument("--scrape", type=int, default=15, help="seconds between samples")
    parser.add_argument("--schema", type=int, default=3)
    parser.add_argument("--step", type=int, default=60)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--keep", action="store_true", help="keep the folder with data and logs")
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="promfabric-bench-")
    servers = []
    try:
        servers, count, buckets = start_both(args, folder)
        report(args, servers, count, buckets)
    finally:
        for server in servers:
            server.stop()
        if args.keep:
            print("kept", folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
