"""judge - whether two servers gave a client the same answer: status, headers that clients act on, document."""
import json

import compare
import read_protocol

TOLERANCE = 1e-9  # of values: the last bits depend on the order of additions
HEADERS = ("content-type", "location", "access-control-allow-origin", "content-encoding", "retry-after")
# What these say is each server's own; its form is not.
OWN = ("/api/v1/status/", "/api/v1/features")


def kind_of(value):
    return type(value).__name__


def forms_differ(ours, theirs, where="answer"):
    """None, or where the form of two documents differs: keys, and kinds of values."""
    if kind_of(ours) != kind_of(theirs):
        return f"{where} is {kind_of(ours)}, theirs {kind_of(theirs)}"
    if isinstance(ours, dict) and not where.endswith("flags"):
        lacks, more = sorted(set(theirs) - set(ours)), sorted(set(ours) - set(theirs))
        if lacks or more:
            return f"{where} lacks {lacks}, has {more} too many"
        return next(filter(None, (forms_differ(ours[k], theirs[k], f"{where}.{k}") for k in theirs)), None)
    if isinstance(ours, list) and ours and theirs:
        return forms_differ(ours[0], theirs[0], where + "[]")
    return None


def series_differ(ours, theirs):
    """None, or where two results of an expression differ; the order of series counts."""
    if ours["resultType"] != theirs["resultType"]:
        return f"resultType {ours['resultType']}, theirs {theirs['resultType']}"
    if ours["resultType"] in ("scalar", "string"):
        a, b = ours["result"], theirs["result"]
        same = a == b or (ours["resultType"] == "scalar" and a[0] == b[0] and near(a[1], b[1]))
        return None if same else f"{a}, theirs {b}"
    names = [[json.dumps(s["metric"], sort_keys=True) for s in data["result"]] for data in (ours, theirs)]
    if sorted(names[0]) != sorted(names[1]):
        only = sorted(set(names[0]) ^ set(names[1]))
        return f"other series: {len(names[0])}, theirs {len(names[1])}, only in one {only[:2]}"
    if names[0] != names[1]:
        at = next(i for i, (a, b) in enumerate(zip(*names)) if a != b)
        return f"order: at {at} {names[0][at]}, theirs {names[1][at]}"
    for name, a, b in zip(names[0], ours["result"], theirs["result"]):
        if sorted(a) != sorted(b):
            return f"{name} has {sorted(a)}, theirs {sorted(b)}"
        for key in a:
            if key != "metric" and not points_near(a[key], b[key]):
                return f"{name}: {str(a[key])[:150]}, theirs {str(b[key])[:150]}"
    return None


def near(a, b):
    """Equal, or so near that the last bits alone differ; written in the same form."""
    if a == b:
        return True
    if ("e" in a) != ("e" in b):
        return False
    return compare.near(compare.number(a), compare.number(b), TOLERANCE)


def points_near(a, b):
    if isinstance(a, str) and isinstance(b, str):
        try:
            return near(a, b)
        except ValueError:
            return False
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b) == 4:  # a bucket: its bounds count exactly
        return a[:3] == b[:3] and near(a[3], b[3])
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(points_near(x, y) for x, y in zip(a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return sorted(a) == sorted(b) and all(points_near(a[k], b[k]) for k in a)
    return a == b


def documents_differ(request, ours, theirs):
    if request.path.split("?")[0].startswith(OWN) and theirs.get("status") == "success":
        return forms_differ(ours, theirs)
    mine, other = ours.get("data"), theirs.get("data")
    if isinstance(mine, dict) and isinstance(other, dict) and "resultType" in mine and "resultType" in other:
        found = series_differ(mine, other)
        if found:
            return found
        if ("stats" in mine) != ("stats" in other):
            return f"stats: {'stats' in mine}, theirs {'stats' in other}"
    elif mine != other:
        return f"data {str(mine)[:200]}, theirs {str(other)[:200]}"
    for key in sorted(set(ours) | set(theirs)):
        a, b = ours.get(key), theirs.get(key)
        if key in ("warnings", "infos"):
            a, b = sorted(a or []), sorted(b or [])
        if key != "data" and a != b:
            return f"{key} {a!r}, theirs {b!r}"
    return None


def samples_of(request, answer):
    """Of a remote read: what each query has, cut to the time it asked for (chunks reach beyond it)."""
    if answer.headers["content-type"].startswith("application/x-streamed-protobuf"):
        queries = read_protocol.from_frames(answer.body, len(request.spans))
    else:
        queries = read_protocol.from_samples(answer.body)
    return [{labels: [(ts, bits) for ts, bits in points if start <= ts <= end] for labels, points in found.items()}
            for (start, end), found in zip(request.spans, queries)]


def reads_differ(request, ours, theirs):
    mine, other = samples_of(request, ours), samples_of(request, theirs)
    other = [{labels: points for labels, points in found.items() if points} for found in other]
    if mine == other and [list(found) for found in mine] == [list(found) for found in other]:
        return None
    return f"samples of {[sorted(found)[:3] for found in mine]}, theirs {[sorted(found)[:3] for found in other]}"


def difference(request, ours, theirs):
    """None, or one line that says what a client would see otherwise."""
    if ours.status != theirs.status:
        return f"status {ours.status} {ours.text()[:120]!r}, theirs {theirs.status} {theirs.text()[:120]!r}"
    for name in HEADERS:
        a, b = ours.headers.get(name), theirs.headers.get(name)
        if a != b:
            return f"header {name}: {a}, theirs {b}"
    if request.method == "HEAD":
        return None
    if request.family == "read" and ours.status == 200:
        return reads_differ(request, ours, theirs)
    mine, other = ours.json(), theirs.json()
    if isinstance(mine, dict) and isinstance(other, dict):
        return documents_differ(request, mine, other)
    if ours.body != theirs.body:
        return f"body {ours.text()[:150]!r}, theirs {theirs.text()[:150]!r}"
    return None
