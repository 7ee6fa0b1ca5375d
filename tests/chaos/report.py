"""report - what a run was, as a table on the screen and as Markdown and JSON in files."""
import collections
import json
import os
import re
import statistics
import urllib.parse


def reassigned_ids(apis):
    """Ids of the queries that had a work assigned more than once: the API logs each such assignment."""
    ids = set()
    for api in apis:
        with open(api.log, encoding="utf-8", errors="replace") as f:
            for line in f:
                if "work assigned again" in line and (found := re.search(r"query_id=(\S+)", line)):
                    ids.add(found.group(1))
    return ids


NOTICED = {
    "workers lost": r'msg="worker lost',
    "works assigned again": r'msg="work assigned again"',
    "artifacts damaged": r'msg="artifact not fetched.* code=checksum',
    "artifacts unreachable": r'msg="artifact not fetched.* code=(io|expired)',
    "works failed for a damaged segment": r'msg="work failed.* code=corrupt',
    "works failed for a full disk": r'msg="work failed.* code=no_space',
    "works failed for the store": r'msg="work failed.* code=(io|unavailable|timeout)',
    "listings of the store failed": r'msg="cannot list the store',
}
# Faults that must leave a trace once they were injected often enough, or they prove nothing.
MUST_SHOW = {"kill": "workers lost", "partition": "workers lost", "corrupt_artifacts": "artifacts damaged",
             "corrupt_segments": "works failed for a damaged segment", "full_disk": "works failed for a full disk",
             "store_errors": "works failed for the store"}
OFTEN = 8
# An hour on a busy machine had 51 of 55,368 (docs/measurements.md).
GIVEN_UP_MIN, GIVEN_UP_SHARE = 50, 0.02
# No fault of the campaign is a reason for these, even if the query was answered in the end.
NEVER = r'msg="work failed.* code=(not_found|internal|protocol|bad_data|parse|execution|limit|denied|unauthenticated)'
# Except this, of a worker whose disk was full: it lets go of artifacts, and their work is done again.
EVICTED = r'code=not_found reason="the artifact expired or was evicted"'
# And this: a merge whose turn was over takes back what it put, and queries that planned with it plan again.
TAKEN_BACK = r"what was merged was taken back, (\S+) last"
# And this, now and then: an API whose listing is old, as the store failed, plans with segments that were merged and deleted, or put
# over by one that says of more segments that it replaces them. Such queries plan again.
VANISHED = r'code=not_found reason="[^"]*?(tenant=[^ ":]+\.parquet)'
STORED = r'"(PUT|DELETE) /\S+/(tenant%3D\S+\.parquet)" 20[14] '
VANISHED_MIN, VANISHED_SHARE = 50, 0.001


def noticed(apis):
    """What the APIs wrote about the faults: proof that they arrived."""
    counts = dict.fromkeys(NOTICED, 0)
    for api in apis:
        with open(api.log, encoding="utf-8", errors="replace") as f:
            for line in f:
                for name, pattern in NOTICED.items():
                    counts[name] += re.search(pattern, line) is not None
    return counts


def unexplained(apis, full_disks, logs, store_log=None, queries=0):
    """Lines of the logs that nothing excuses. @full_disks: workers whose disk was full at some time; @logs: of all that merges;
    @store_log: of what the store was told."""
    lines, missed = [], 0
    taken_back, gone = names_taken_back(logs), names_gone(store_log)
    for api in apis:
        with open(api.log, encoding="utf-8", errors="replace") as f:
            for line in f:
                if not re.search(NEVER, line) or evicted(line, full_disks):
                    continue
                vanished = set(re.findall(VANISHED, line))
                missed += bool(vanished & gone)
                if not vanished & (taken_back | gone):
                    lines.append(f"{api.name} logged: {line.strip()}")
    if missed > max(VANISHED_MIN, queries * VANISHED_SHARE):
        lines.append(f"{missed} works missed segments that were merged and deleted, or put over")
    return lines


def names_gone(store_log):
    """Segments that the store deleted, or got more than once."""
    if not store_log or not os.path.exists(store_log):
        return set()
    with open(store_log, encoding="utf-8", errors="replace") as f:
        told = [found for line in f for found in re.findall(STORED, line)]
    puts = collections.Counter(name for verb, name in told if verb == "PUT")
    return {urllib.parse.unquote(name) for verb, name in told if verb == "DELETE" or puts[name] > 1}


def names_taken_back(logs):
    names = set()
    for path in logs:
        with open(path, encoding="utf-8", errors="replace") as f:
            names.update(re.findall(TAKEN_BACK, f.read()))
    return names


def evicted(line, full_disks):
    worker = re.search(r"worker_id=(\S+)", line)
    return re.search(EVICTED, line) and worker and worker.group(1) in full_disks


def without_trace(faults, seen):
    return [f"{kind} was injected {faults[kind]} times, but the APIs noticed no '{trace}'"
            for kind, trace in MUST_SHOW.items() if faults.get(kind, 0) >= OFTEN and not seen[trace]]


def given_up(judge):
    """Some fault is always near, so no single query may be blamed for ending without an answer; but nearly
    all of them must be answered, or losing a worker costs more than a reassignment."""
    count = judge.errors.get("unavailable", 0) + judge.errors.get("timeout", 0)
    if count <= max(GIVEN_UP_MIN, judge.queries * GIVEN_UP_SHARE):
        return []
    return [f"{count} of {judge.queries} queries ended unavailable or with a timeout"]


def percentiles(values):
    if not values:
        return None
    ordered = sorted(values)

    def at(share):
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000, 1)
    return {"count": len(ordered), "p50_ms": at(0.5), "p99_ms": at(0.99), "max_ms": at(1)}


def latencies(asked, again, faults):
    """Of right answers: those whose works all went well, those that lost a worker, and what that added
    to the median of the same question."""
    well, lost = {}, []
    for key, query_id, begin, seconds in asked:
        if query_id in again:
            lost.append((key, begin, seconds))
        else:
            well.setdefault(key, []).append(seconds)
    median = {key: statistics.median(values) for key, values in well.items()}
    added = [(begin, seconds, max(0.0, seconds - median[key])) for key, begin, seconds in lost if key in median]
    result = {"undisturbed": percentiles([s for values in well.values() for s in values]),
              "lost a worker": percentiles([seconds for _, _, seconds in lost]),
              "added by losing a worker": percentiles([extra for _, _, extra in added])}
    by_kind = {}
    for begin, seconds, extra in added:
        for fault in faults.records:
            if fault.begin <= begin + seconds and fault.end and fault.end >= begin:
                by_kind.setdefault(fault.kind, []).append(extra)
    return result, {kind: percentiles(values) for kind, values in sorted(by_kind.items())}


def as_lines(r):
    """Markdown that also reads well on a terminal."""
    lines = [f"seed {r['seed']}, {r['minutes']:g} min of faults: {r['apis']} APIs, {r['workers']} workers, "
             f"{r['clients']} clients; store: {r['store']}; network: {r['network']}", ""]
    lines += ["| what | count |", "|---|---:|",
              f"| queries | {r['queries']} |", f"| right answers | {r['right']} |",
              f"| **wrong answers and other failures** | **{len(r['failures'])}** |",
              f"| queries past their deadline | {r['hung']} |",
              f"| allowed errors | {sum(r['errors'].values())} |",
              f"| queries dropped by the client | {r['dropped']} |",
              f"| queries that lost a worker and were answered | {r['reassigned']} |",
              f"| faults | {sum(r['faults'].values())} |",
              f"| queries after the faults, all of which must succeed | {r['after']} |", ""]
    lines += live_lines(r["live"])
    lines += ["| fault | injected |", "|---|---:|"] + [f"| {k} | {v} |" for k, v in sorted(r["faults"].items())]
    lines += [f"| {k} | not possible: {why} |" for k, why in sorted(r["impossible"].items())] + [""]
    lines += ["| what the APIs noticed | count |", "|---|---:|"] + [f"| {k} | {v} |" for k, v in r["noticed"].items()] + [""]
    lines += ["| error | count | for example |", "|---|---:|---|"]
    lines += [f"| {k} | {v} | {r['samples'].get(k, '')[:110].replace('|', '/')} |" for k, v in sorted(r["errors"].items())]
    lines += ["", "| latency of right answers | answers | p50 ms | p99 ms | max ms |", "|---|---:|---:|---:|---:|"]
    rows = list(r["latency"].items()) + [(f"added, during {k}", v) for k, v in r["added_by_kind"].items()]
    lines += [f"| {name} | {v['count']} | {v['p50_ms']} | {v['p99_ms']} | {v['max_ms']} |" for name, v in rows if v]
    lines += ["", "| process, alive all the time | MiB | descriptors | threads |", "|---|---|---|---|"]
    for name, figures in r["elders"].items():
        cells = [" ".join(f"{sample[what]:.0f}" for sample in figures) for what in ("rss_mib", "fds", "threads")]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", "Left at the end: " + ", ".join(f"{k} {v}" for k, v in r["left"].items()) +
              f". Largest hiccup of the machine: {r['hiccup_s']:.1f} s."]
    return lines


def live_lines(live):
    rows = [(k, v) for k, v in live.items() if not isinstance(v, dict)]
    lines = ["| live samples | count |", "|---|---:|"] + [f"| {k} | {v} |" for k, v in rows]
    lines += [f"| refused with {k}, for example | {v} |" for k, v in live["refusals"].items()]
    lines += ["", "| longest time without an acknowledgement | median of the faults, s | most, s |", "|---|---:|---:|"]
    return lines + [f"| {kind} | {median:.1f} | {most:.1f} |" for kind, (median, most) in live["gaps_s"].items()] + [""]


def write(r, path):
    """FILE.json or FILE.md as named; both for a name that ends otherwise."""
    if not path.endswith(".json"):
        with open(path if path.endswith(".md") else path + ".md", "w", encoding="utf-8") as f:
            f.write("\n".join(as_lines(r)) + "\n")
    if not path.endswith(".md"):
        with open(path if path.endswith(".json") else path + ".json", "w", encoding="utf-8") as f:
            json.dump(r, f, indent=1)
            f.write("\n")
