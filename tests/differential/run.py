#!/usr/bin/env python3
"""run - compare Promfabric with a Prometheus server over random data and random queries.

Started by scripts/differential, which provides the programs. Both servers hold the same data; each
query is sent to both, as an instant or a range query. A mismatch is shrunk to a small expression
before it is printed. Known differences are rules (known.py), and counted."""
import argparse
import collections
import os
import random
import shutil
import sys
import tempfile
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
import compare  # noqa: E402
import dataset  # noqa: E402
import generate  # noqa: E402
import known  # noqa: E402
from servers import Servers  # noqa: E402

# Go walks a table of two or three entries in the other order one time in eight: 60 times miss that once in 3,000.
ORDER_TRIES = 60


def question(rng):
    """An instant or a range query over the data's time."""
    at = dataset.START_S + rng.randrange(-300, dataset.DURATION_S + 600)
    if rng.random() < 0.4:
        return "/api/v1/query", {"time": str(at)}
    step = rng.choice([15, 30, 60, 61, 300])
    end = at + step * rng.randrange(1, 60)
    return "/api/v1/query_range", {"start": str(at), "end": str(end), "step": str(step)}


def ask_afresh(base, path, asked):
    """Prometheus's answer after it has let go of memory that it keeps for the next query."""
    for _ in range(2):  # what a first collection finds unused goes with the second
        with urllib.request.urlopen(base + "/debug/pprof/heap?gc=1", timeout=60) as response:
            response.read()
    return compare.ask(base, path, asked)


def has_no_order(base, path, asked, ours, found):
    """Prometheus lists the series of one and the same query now so, now so, and all else is the same."""
    if "in another order" not in found:
        return False
    orders = set()
    for _ in range(ORDER_TRIES):
        answer = compare.ask(base, path, asked)
        if not known.same_but_for_order(ours, answer):
            return False
        orders.add(tuple(compare.points(answer[1])))
        if len(orders) > 1:
            return True
    return False


def has_no_choice(base, path, asked, found):
    """Prometheus chooses now these series, now those, for one and the same query."""
    if not known.chooses(asked["query"]) or "in another order" in found:
        return False
    first = compare.ask(base, path, asked)
    for _ in range(ORDER_TRIES):
        answer = compare.ask(base, path, asked)
        if first[0] != "ok" or answer[0] != "ok":
            return False
        if compare.difference("count_values", first, answer, 1e-9):
            return True
    return False


def judge(servers, path, params, text, tolerance):
    """(difference or None, name of the rule that explains one or None, outcome)."""
    asked = dict(params, query=text)
    ours = compare.ask(servers.ours, path, asked)
    theirs = compare.ask(servers.theirs, path, asked)
    found = compare.difference(text, ours, theirs, tolerance)
    if found and "native" in text and not known.rule_for(text, ours, theirs, found):
        theirs = ask_afresh(servers.theirs, path, asked)
        found = compare.difference(text, ours, theirs, tolerance)
        if not found:
            return None, known.REUSED, ours[0]
    if not found:
        return None, None, "to the last bit" if compare.same_bits(ours, theirs) else ours[0]
    name = known.rule_for(text, ours, theirs, found)
    if not name and has_no_order(servers.theirs, path, asked, ours, found):
        name = known.OWN_ORDER
    if not name and has_no_choice(servers.theirs, path, asked, found):
        name = known.OWN_CHOICE
    return (None, name, ours[0]) if name else (found, None, ours[0])


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
            found, rule, outcome = judge(servers, path, params, node.text(), args.tolerance)
            counts["known: " + rule if rule else "same " + outcome] += not found
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
    for name, why, *_ in known.RULES + [(known.REUSED, known.REUSED_WHY), (known.OWN_ORDER, known.OWN_ORDER_WHY),
                                            (known.OWN_CHOICE, known.OWN_CHOICE_WHY)]:
        print(f"  rule {name}: {why}")
    print(f"{sum(counts.values())} passed, {mismatches} failed")
    return 1 if mismatches or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
