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
    requests = [r for r in questions.everything() if not args.family or r.family in args.family][::args.every]

    folder = tempfile.mkdtemp(prefix="promfabric-clients-")
    servers = None
    try:
        ours, theirs = args.ours, args.theirs
        if not (ours and theirs):
            series = dataset.build(args.seed) + questions.more_series()
            servers = Servers(args, folder, series, flags=["--cors-origin=*"])
            ours, theirs = servers.ours, servers.theirs
        if args.hold:
            print(f"--ours {ours} --theirs {theirs}  data {folder}", flush=True)
            while True:
                time.sleep(1)
        same, explained, found = compare_all(ours, theirs, requests, args.show)
    finally:
        if servers:
            servers.stop()
        shutil.rmtree(folder, ignore_errors=True)
    for family, count in sorted(collections.Counter(f for f, _ in found).items()):
        print(f"  {family}: {count} differ")
    for name, why, _ in known.RULES:
        if explained[name]:
            print(f"  {name}: {explained[name]}, {why}")
    print(f"{len(requests)} pairs: {same} identical, {sum(explained.values())} explained, {len(found)} not")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
