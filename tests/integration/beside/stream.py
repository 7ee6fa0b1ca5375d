"""stream.py - one stream of samples to Prometheus and to us, and the same questions to both.

usage: stream.py [--seconds N] [--kill-every SECONDS] [--seed N] [--report FILE]     600, 20, 1

vmagent scrapes a target of ours, node-exporter and itself every second and sends all of it to Prometheus and to
one of three ingest nodes. One ingest node after another is killed and started again. Questions about any time up
to which both have everything must be answered alike. Exit code 1 if one is not, if vmagent
dropped anything, or if too little was asked for to mean something."""
import argparse
import os
import pathlib
import random
import sys
import tempfile
import threading
import time

from peers import NODE_EXPORTER, PEERS, Pair, Program, Prometheus, free_port, get, metric, metrics, start_node_exporter, \
    start_target, wait_for

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
from test_ingest import Cluster  # noqa: E402

SCRAPE_S = 1
QUERIES = (
    "side_requests_total", "sum by (zone) (rate(side_requests_total[15s]))", "increase(side_requests_total[30s])",
    "topk(3, side_level)", "avg by (zone) (side_level)", "quantile_over_time(0.9, side_level[20s])", "side_odd",
    "count(side_comes_and_goes)", "side_comes_and_goes", "changes(side_comes_and_goes[30s])",
    "histogram_quantile(0.9, rate(side_seconds_bucket[15s]))", "max_over_time(sum(rate(side_requests_total[5s]))[20s:1s])",
    "stddev_over_time(side_level[25s])", "resets(side_requests_total[1m])", "up", "absent(side_comes_and_goes{i=\"3\"})",
    "count by (job) ({__name__=~\".+\"})", "rate(node_cpu_seconds_total[10s])", "node_memory_MemFree_bytes",
    "sum(side_level) / on () group_left () count(side_requests_total)", "{job=\"side\"}[10s]", "timestamp(side_level)",
    "sort_desc(sum by (zone) (side_level))", "vmagent_remotewrite_requests_total", "delta(side_level[20s])",
)


class Killer(threading.Thread):
    """Kills one ingest node after another."""

    def __init__(self, nodes, every_s, rng):
        super().__init__(daemon=True)
        self.nodes, self.every_s, self.rng = nodes, every_s, rng
        self.over, self.kills, self.error = threading.Event(), 0, None

    def run(self):
        try:
            while not self.over.wait(self.every_s):
                node = self.nodes[self.kills % len(self.nodes)]
                node.process.kill()
                self.kills += 1
                time.sleep(self.rng.uniform(0, 3))
                node.start()
                wait_for(node.name, node.ready, 120)
        except Exception as error:  # pylint: disable=broad-except
            self.error = error


class Stream:
    def __init__(self, args, folder):
        self.args, self.rng = args, random.Random(args.seed)
        self.cluster = Cluster(nodes=3, flags=("--seal-age=15s", "--partitions=2"))
        self.programs = []
        self.target = start_target()
        self.prometheus = self.run(Prometheus(folder, "storage: {tsdb: {out_of_order_time_window: 30m}}\n"))
        self.agent_port = free_port()
        jobs = {"side": self.target.server_port, "vmagent": self.agent_port}
        if NODE_EXPORTER.exists():
            exporter, jobs["node"] = start_node_exporter(folder)
            self.run(exporter)
        self.agent = self.run(self.start_agent(folder, jobs))
        self.killer = Killer(self.cluster.nodes, args.kill_every, random.Random(args.seed + 1))
        self.pair = Pair(self.prometheus.port, self.cluster.fabric.api_port)
        self.began = time.time()

    def run(self, program):
        self.programs.append(program)
        return program

    def start_agent(self, folder, jobs):
        config = pathlib.Path(folder) / "scrape.yml"
        config.write_text("scrape_configs:\n" + "".join(
            f"  - job_name: {job}\n    scrape_interval: {SCRAPE_S}s\n"
            f"    static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n" for job, port in jobs.items()))
        urls = [f"http://127.0.0.1:{port}/api/v1/write" for port in (self.prometheus.port, self.cluster.nodes[0].port)]
        return Program(folder, "vmagent", PEERS / "vmagent", f"-promscrape.config={config}",
                       *[f"-remoteWrite.url={url}" for url in urls], "-remoteWrite.flushInterval=500ms",
                       # One request after the other: what is before the last one is there.
                       "-remoteWrite.queues=1", "-remoteWrite.retryMinInterval=200ms", "-remoteWrite.retryMaxTime=2s",
                       f"-httpListenAddr=127.0.0.1:{self.agent_port}", f"-remoteWrite.tmpDataPath={folder}/vmagent")

    def stop(self):
        self.killer.over.set()
        if self.killer.ident:
            self.killer.join(130)
        for program in reversed(self.programs):
            program.stop()
        self.target.shutdown()
        self.cluster.close()

    def newest(self, port):
        """When the last scrape that a server knows of was; 0 if it knows of none."""
        status, answer = get(port, "/api/v1/query", {"query": "max(timestamp(side_scrapes_total))"})
        return float(answer["data"]["result"][0]["value"][1]) if status == 200 and answer["data"]["result"] else 0.0

    def complete(self):
        """Up to when both have everything: before the scrape before the last one."""
        return min(self.newest(port) for port in (self.pair.theirs, self.pair.ours)) - 2 * SCRAPE_S

    def ask(self, until):
        expr = self.rng.choice(QUERIES)
        at = until - min(self.rng.expovariate(1 / 20), until - self.began)
        if "[10s]" in expr and expr.startswith("{") or self.rng.random() < 0.6:
            return self.pair.query(expr, at)
        begin = max(self.began, at - self.rng.uniform(10, 120))
        return self.pair.query_range(expr, begin, at, self.rng.choice((1, 5, 15)))

    def compare(self):
        """Questions until the time is up; the differences."""
        wait_for("the first samples", lambda: self.complete() > self.began + 5, 90)
        self.killer.start()
        differences, end = [], time.monotonic() + self.args.seconds
        while time.monotonic() < end and len(differences) < 5 and not self.killer.error:
            until = self.complete()
            if until <= self.began:  # our answer was an error just now
                time.sleep(0.2)
                continue
            for _ in range(5):
                if difference := self.ask(until):
                    differences.append(difference)
        return differences

    def compare_all(self):
        """At the end, every sample of all that time."""
        until = wait_for("all of it", lambda: (at := self.complete()) > time.time() - 30 and at, 120)
        window = f"{int((until - self.began) * 1000)}ms"
        return [d for job in ("side", "node", "vmagent")
                if (d := self.pair.query(f'{{job="{job}"}}[{window}]', until))]

    def dropped(self):
        names = ("vmagent_remotewrite_packets_dropped_total", "vmagent_remotewrite_samples_dropped_total",
                 "vmagent_remotewrite_pending_data_dropped_bytes_total")
        return [line for line in metrics(self.agent_port) if line.startswith(names) and float(line.rsplit(" ", 1)[1])]


def run(stream, args):
    problems = stream.compare()
    stream.killer.over.set()
    stream.killer.join(130)
    if stream.killer.error:
        problems.append(f"an ingest node did not come back: {stream.killer.error}")
    problems += stream.compare_all() + stream.dropped()
    scrapes = int(metric(stream.agent_port, "vm_promscrape_scrapes_total"))
    samples = int(metric(stream.agent_port, "vmagent_remotewrite_global_rows_pushed_before_relabel_total") or 0)
    pair = stream.pair
    lines = [f"{args.seconds:g} s, seed {args.seed}: {stream.killer.kills} kills of ingest nodes, {scrapes} scrapes, "
             f"{samples} samples sent to each; {pair.asked} questions to both ({pair.series} series in Prometheus's answers), "
             f"{pair.last_bits} alike but for last bits; {pair.failed} times an answer of ours was an error that said so and was asked for again, "
             f"{len(problems)} differences"] + [f"DIFFERENT {p}" for p in problems]
    if pair.asked < args.seconds / 2 or stream.killer.kills < args.seconds / args.kill_every / 3:
        problems.append("too little")
        lines.append("FAILED too few questions or kills to mean something")
    print("\n".join(lines))
    if args.report:
        pathlib.Path(args.report).write_text("\n".join(lines) + "\n")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--kill-every", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report")
    args = parser.parse_args()
    if not (PEERS / "vmagent").exists():
        print(f"skipped: {PEERS / 'vmagent'} is not there")
        return 77
    with tempfile.TemporaryDirectory(prefix="pf-beside-") as folder:
        stream = Stream(args, folder)
        try:
            return 1 if run(stream, args) else 0
        finally:
            stream.stop()


if __name__ == "__main__":
    sys.exit(main())
