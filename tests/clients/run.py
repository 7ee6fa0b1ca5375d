#!/usr/bin/env python3
"""run - send what clients ask to a Promfabric and to a Prometheus with the same data; say what differs.

Started by scripts/compare-clients, which provides the programs. Exit code 1 if anything differs that no
rule of known.py explains."""
import argparse
import collections
import os
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "differential"), os.path.join(HERE, "..", "lib")]
import dataset  # noqa: E402
import federation  # noqa: E402
import judge  # noqa: E402
import known  # noqa: E402
import questions  # noqa: E402
import wire  # noqa: E402
from servers import Servers  # noqa: E402


def compare_all(ours, theirs, requests, show):
    """(identical, explained by rule, [unexplained...])."""
    same, explained, found = 0, collections.Counter(), []
    for request in requests:
        mine, other = wire.ask(ours, request), wire.ask(theirs, request)
        difference = judge.difference(request, mine, other)
        rule = difference and known.rule_for(request, mine, other, difference)
        if not difference:
            same += 1
        elif rule:
            explained[rule] += 1
        else:
            found.append((request.family, f"{request}\n    {difference}"))
            if len(found) <= show:
                print(f"DIFFERS [{request.family}] {found[-1][1]}", flush=True)
    return same, explained, found


def worlds(args):
    """(series of both servers, questions about them), without those that nothing was asked of."""
    yield from ((series, chosen) for series, requests in (
        (lambda: dataset.build(args.seed) + questions.more_series(), questions.everything()),
        (federation.series, federation.requests()),
    ) if (chosen := [r for r in requests if not args.family or r.family in args.family][::args.every]))


def start(args, folder, series):
    return Servers(args, folder, series(), flags=["--cors-origin=*"])


def compare_world(args, series, requests):
    folder, servers = tempfile.mkdtemp(prefix="promfabric-clients-"), None
    try:
        ours, theirs = args.ours, args.theirs
        if not (ours and theirs):
            servers = start(args, folder, series)
            ours, theirs = servers.ours, servers.theirs
        return compare_all(ours, theirs, requests, args.show)
    finally:
        if servers:
            servers.stop()
        shutil.rmtree(folder, ignore_errors=True)


def hold(args):
    """Start the servers of the first questions, say where, and wait for an end."""
    with tempfile.TemporaryDirectory(prefix="promfabric-clients-") as folder:
        series, _ = next(worlds(args))
        servers = start(args, folder, series)
        try:
            print(f"--ours {servers.ours} --theirs {servers.theirs}  data {folder}", flush=True)
            while True:
                time.sleep(1)
        finally:
            servers.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--promfabric")
    parser.add_argument("--prometheus")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=3, help="of the data")
    parser.add_argument("--every", type=int, default=1, help="ask every Nth question alone")
    parser.add_argument("--family", action="append", help="ask these alone")
    parser.add_argument("--show", type=int, default=1000, help="differences printed at most")
    parser.add_argument("--ours", help="a Promfabric that runs and has the data")
    parser.add_argument("--theirs", help="a Prometheus that runs and has the data")
    parser.add_argument("--hold", action="store_true", help="start both, print where, wait for an end")
    args = parser.parse_args()
    if args.hold:
        hold(args)
    same, explained, found, asked = 0, collections.Counter(), [], 0
    for series, requests in worlds(args):
        asked += len(requests)
        more_same, more_explained, more_found = compare_world(args, series, requests)
        same, explained, found = same + more_same, explained + more_explained, found + more_found
    for family, count in sorted(collections.Counter(f for f, _ in found).items()):
        print(f"  {family}: {count} differ")
    for name, why, _ in known.RULES:
        if explained[name]:
            print(f"  {name}: {explained[name]}, {why}")
    print(f"{asked} pairs: {same} identical, {sum(explained.values())} explained, {len(found)} not")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
