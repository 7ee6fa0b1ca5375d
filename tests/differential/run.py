#!/usr/bin/env python3
"""run - compare Promfabric with a Prometheus server over random data and random queries.

Started by scripts/differential, which provides the programs. Both servers hold the same data; each
query is sent to both, as an instant or a range query. A mismatch is shrunk to a small expression
before it is printed. Known differences are rules below: each names its reason and is counted."""
import argparse
import collections
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
import compare  # noqa: E402
import dataset  # noqa: E402
import generate  # noqa: E402
import remote_write  # noqa: E402
from ports import free_port  # noqa: E402

FEATURE = "promql-experimental-functions"

# A difference that is not ours to mend: (name, why, when(query, ours, theirs, difference)).
KNOWN = [
    ("ties", "which of several equal series topk and bottomk keep, and in which order sort puts them, is not defined",
     lambda q, ours, theirs, d: re.search(r"\b(topk|bottomk|sort|sort_desc)\b", q) and ties(ours, theirs)),
    ("limitk-choice", "limitk keeps the series that storage names first, which is no order of the language",
     lambda q, ours, theirs, d: "limitk" in q and evaluated(ours, theirs)),
    ("mad-nan", "after 3.5 a NaN in the window makes mad_over_time NaN",
     lambda q, ours, theirs, d: "mad_over_time" in q and ("wild" in q or ": NaN, theirs" in d) and
     evaluated(ours, theirs)),
    ("duplicates-named", "an error names two of the series in the way, and 3.5 takes them in storage order",
     lambda q, ours, theirs, d: ours[0] == theirs[0] == "error" and
     all("found duplicate series for the match group" in str(a[1]) for a in (ours, theirs))),
    ("error-order", "of several errors Prometheus tells the first in time, we tell the first in a block of steps",
     lambda q, ours, theirs, d: ours[0] == theirs[0] == "error" and
     all("matching labels must be unique" in str(a[1]) or "multiple matches for labels" in str(a[1])
         for a in (ours, theirs))),
    ("dropped-match", "since 3.6 a one-to-one match counts even if a comparison drops its result",
     lambda q, ours, theirs, d: ours[0] == "error" and "multiple matches for labels" in str(ours[1]) and
     theirs[0] == "ok" and re.search(r"[<>=!]=|[<>]", re.sub(r"\{[^}]*\}", "", q))),
    ("sort-note", "after 3.5 the sort functions warn that range queries are ordered by labels anyway",
     lambda q, ours, theirs, d: "sort" in q and d.startswith("notes") and
     [n for n in ours[1]["notes"] if "is ineffective for range queries" not in n] == theirs[1]["notes"]),
    ("sort-missing", "to sort_by_label a missing label is neither less nor greater: such series stay where they were",
     lambda q, ours, theirs, d: "sort_by_label" in q and "in another order" in d),
    ("classic-fraction", "3.5 answers NaN where histogram_fraction meets classic buckets",
     lambda q, ours, theirs, d: "histogram_fraction" in q and evaluated(ours, theirs)),
    ("cancelled", "what is left when almost equal numbers are subtracted has their last bit, and depends on their order",
     lambda q, ours, theirs, d: value_differs(d) and (last_bit_of_one(d) or (
         re.search(r"\bstd(dev|var)\b", q) and re.search(r"\b(ts_of_|time)", q)))),
    ("amplified", "a last bit of a deviation or an average, magnified: sin or hour of a large number, acosh near 1",
     lambda q, ours, theirs, d: re.search(r"\b(a?(sin|cos|tan)h?|ln|log2|log10|minute|hour|days?_[a-z_]+|month)\(|[%^]", q) and
     re.search(r"\b(sum|avg|stddev|stdvar|quantile|deriv|predict_linear)", q) and value_differs(d)),
    ("amplified-power", "a last bit of a power or an exponential, magnified: sin, cos and tan of a huge number, and what they choose",
     lambda q, ours, theirs, d: re.search(r"\b(sin|cos|tan)\(", q) and re.search(r"\^|\b(exp|sinh|cosh)\(", q) and
     (value_differs(d) or " points, theirs " in d)),
    ("overflow-order", "sums near the largest double overflow or not depending on the order of series",
     lambda q, ours, theirs, d: "wild" in q and re.search(r"\b(sum|avg|stddev|stdvar)\b", q) and
     value_differs(d) and "Inf" in d),
    ("libm", "the last bit of a transcendental function becomes a label of count_values",
     lambda q, ours, theirs, d: "count_values" in q and evaluated(ours, theirs) and re.search(
         r"\^|atan2|exp|ln|log|sin|cos|tan|sqrt|deg|rad|std(dev|var)|avg|deriv|predict|quantile", q)),
]


def evaluated(ours, theirs):
    """Both answered, or failed at matching, which hangs on the series at hand; no other error is excused."""
    return all(a[0] == "ok" or re.search("match group|matching labels|multiple matches|same labelset", str(a[1]))
               for a in (ours, theirs))


def value_differs(difference):
    """Same series at the same times; only a value is another."""
    return re.search(r" at [0-9.]+: .*, theirs ", difference)


def last_bit_of_one(difference):
    """The two values differ by no more than a rounding of numbers around 1."""
    ours, theirs = re.search(r" at [0-9.]+: (.*), theirs (.*)$", difference).groups()
    return abs(compare.number(ours) - compare.number(theirs)) <= 1e-15


def ties(ours, theirs):
    """Both answers hold the same values per step, on other series or in another order."""
    if ours[0] != "ok" or theirs[0] != "ok":
        return False
    flat = [sorted((t, compare.number(v)) for ps in compare.points(a[1]).values() for t, v in ps)
            for a in (ours, theirs)]
    return len(flat[0]) == len(flat[1]) and all(
        p[0] == q[0] and compare.near(p[1], q[1], 1e-9) for p, q in zip(*flat))


def wait_ready(url, process, seconds=60):
    for _ in range(seconds * 10):
        if process.poll() is not None:
            raise SystemExit(f"{url}: the server ended with {process.returncode}")
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"{url}: not ready after {seconds} s")


class Servers:
    def __init__(self, args, folder, series):
        self.processes = []
        source = os.path.join(folder, "data.om")
        with open(source, "w", encoding="utf-8") as f:
            f.write(dataset.openmetrics(series))
        config = os.path.join(folder, "prometheus.yml")
        open(config, "w", encoding="utf-8").close()
        port = free_port()
        self.theirs = f"http://127.0.0.1:{port}"
        self.start([args.prometheus, f"--config.file={config}", f"--storage.tsdb.path={folder}/tsdb",
                    f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=100y",
                    "--web.enable-remote-write-receiver", f"--enable-feature={FEATURE}"],
                   os.path.join(folder, "prometheus.log"), self.theirs + "/-/ready")
        remote_write.send(self.theirs, series)
        store = os.path.join(folder, "store")
        subprocess.run([args.promfabric, "import", "--store", store, source], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port = free_port()
        self.ours = f"http://127.0.0.1:{port}"
        self.start([args.promfabric, "up", "--store", store, "--workers", str(args.workers),
                    "--http-listen", f"127.0.0.1:{port}"],
                   os.path.join(folder, "promfabric.log"), self.ours + "/readyz")

    def start(self, command, log, ready):
        environment = dict(os.environ, PROMFABRIC_ENABLE_FEATURE=FEATURE)
        with open(log, "w", encoding="utf-8") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
        self.processes.append(process)
        wait_ready(ready, process)

    def stop(self):
        for process in self.processes:
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()


def question(rng):
    """An instant or a range query over the data's time."""
    at = dataset.START_S + rng.randrange(-300, dataset.DURATION_S + 600)
    if rng.random() < 0.4:
        return "/api/v1/query", {"time": str(at)}
    step = rng.choice([15, 30, 60, 61, 300])
    end = at + step * rng.randrange(1, 60)
    return "/api/v1/query_range", {"start": str(at), "end": str(end), "step": str(step)}


def judge(servers, path, params, text, tolerance):
    asked = dict(params, query=text)
    ours = compare.ask(servers.ours, path, asked)
    theirs = compare.ask(servers.theirs, path, asked)
    found = compare.difference(text, ours, theirs, tolerance)
    if not found:
        return None, None, "to the last bit" if compare.same_bits(ours, theirs) else ours[0]
    for name, _, rule in KNOWN:
        if rule(text, ours, theirs, found):
            return None, name, ours[0]
    return found, None, ours[0]


def shrink(servers, path, params, node, found, tolerance):
    """A small expression with a difference of its own; bounded in tries."""
    tries = 0
    progress = True
    while progress and tries < 150:
        progress = False
        for smaller in sorted(node.shrunk(), key=lambda n: n.size()):
            tries += 1
            if tries > 150:
                break
            again, _, _ = judge(servers, path, params, smaller.text(), tolerance)
            if again:
                node, found, progress = smaller, again, True
                break
    return node, found


def write_case(folder, number, series, text, params, found):
    """The mismatch as OpenMetrics data, cut to the metrics of the query, with the query on top."""
    os.makedirs(folder, exist_ok=True)
    used = [s for s in series if s.labels["__name__"] in text or "info(" in text]
    with open(os.path.join(folder, f"case-{number}.om"), "w", encoding="utf-8") as f:
        f.write(f"# {text}\n# {params}\n# {found}\n{dataset.openmetrics(used)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--promfabric", required=True)
    parser.add_argument("--prometheus", required=True)
    parser.add_argument("--queries", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tolerance", type=float, default=1e-9)
    parser.add_argument("--stop-after", type=int, default=20, help="mismatches")
    parser.add_argument("--cases", metavar="DIR", help="write a script of data and query per mismatch")
    parser.add_argument("--keep", action="store_true", help="keep the folder with data and logs")
    args = parser.parse_args()

    folder = tempfile.mkdtemp(prefix="promfabric-differential-")
    servers = None
    counts = collections.Counter()
    mismatches = 0
    try:
        servers = Servers(args, folder, dataset.build(args.seed))
        rng = random.Random(args.seed)
        for i in range(args.queries):
            node = generate.Generator((args.seed << 32) + i, dataset.START_S, dataset.DURATION_S).expression()
            path, params = question(rng)
            found, known, outcome = judge(servers, path, params, node.text(), args.tolerance)
            counts["known: " + known if known else "same " + outcome] += not found
            if found:
                mismatches += 1
                node, found = shrink(servers, path, params, node, found, args.tolerance)
                print(f"MISMATCH {mismatches} (query {i}, {path} {params})\n  {node.text()}\n  {found}", flush=True)
                if args.cases:
                    write_case(args.cases, mismatches, dataset.build(args.seed), node.text(), params, found)
                if mismatches >= args.stop_after:
                    print("stopping: too many mismatches")
                    break
            if (i + 1) % 1000 == 0:
                print(f"{i + 1} queries, {mismatches} mismatches", flush=True)
    finally:
        if servers:
            servers.stop()
        if args.keep:
            print("kept", folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    for name, count in sorted(counts.items()):
        print(f"  {name}: {count}")
    for name, why, _ in KNOWN:
        print(f"  rule {name}: {why}")
    print(f"{sum(counts.values())} passed, {mismatches} failed")
    return 1 if mismatches or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
