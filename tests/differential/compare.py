"""compare - ask two servers the same question and judge the answers."""
import json
import math
import re
import urllib.error
import urllib.parse
import urllib.request

TIMEOUT_S = 30


def ask(base, path, params):
    """(kind, payload): ("ok", data with its "notes") or ("error", (errorType, text))."""
    body = urllib.parse.urlencode(params).encode()
    request = urllib.request.Request(base + path, data=body)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            answer = json.load(response)
    except urllib.error.HTTPError as e:
        try:
            answer = json.loads(e.read())
        except ValueError:
            return "error", ("http", str(e.code))
        return "error", (answer.get("errorType"), answer.get("error"))
    notes = sorted(answer.get("warnings", [])) + sorted(answer.get("infos", []))
    return "ok", dict(answer["data"], notes=notes)


def number(text):
    return float(text.replace("Inf", "inf"))


def close(a, b, tolerance):
    return a == b or near(number(a), number(b), tolerance)


def near(a, b, tolerance):
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    if a == b:
        return True
    if math.isinf(a) or math.isinf(b):
        return False
    return abs(a - b) <= tolerance * max(abs(a), abs(b))


def histograms_differ(a, b, tolerance):
    """None, or which part of two {"count", "sum", "buckets"} differs."""
    for part in ("count", "sum"):
        if not close(a[part], b[part], tolerance):
            return f"histogram with {part} {a[part]}, theirs {b[part]}"
    mine, other = a.get("buckets", []), b.get("buckets", [])
    for x, y in zip(mine, other):
        if x[0] != y[0] or not all(close(p, q, tolerance) for p, q in zip(x[1:], y[1:])):
            return f"histogram with bucket {x}, theirs {y}"
    return None if len(mine) == len(other) else f"histogram with {len(mine)} buckets, theirs {len(other)}"


def values_differ(a, b, tolerance):
    """None, or how two values differ: floats are text, histograms have parts."""
    if isinstance(a, str) != isinstance(b, str):
        return " theirs ".join("a float," if isinstance(v, str) else "a histogram," for v in (a, b)).rstrip(",")
    if isinstance(a, str):
        return None if close(a, b, tolerance) else f"{a}, theirs {b}"
    return histograms_differ(a, b, tolerance)


def points(data):
    """{labels: [(time, value)...]} of any result, floats and histograms in the order of time."""
    kind, result = data["resultType"], data["result"]
    if kind in ("scalar", "string"):
        return {"": [tuple(result)]}
    out = {}
    for series in result:
        key = json.dumps(series["metric"], sort_keys=True)
        if key in out:
            out[key + " (again)"] = []
        found = []
        for one, many in (("value", "values"), ("histogram", "histograms")):
            found += series.get(many, [series[one]] if one in series else [])
        out[key] = sorted((tuple(p) for p in found), key=lambda p: p[0])
    return out


def same_bits(ours, theirs):
    """True if the answers agree to the last digit printed."""
    return ours[0] == "ok" and points(ours[1]) == points(theirs[1])


def ordered(query):
    """The order of an instant answer is part of it, but where Prometheus goes through a table of Go."""
    return not re.search(r"count_values|histogram_quantile|histogram_fraction|info", query)


def difference(query, ours, theirs, tolerance):
    """None if the answers agree, else one line that says where they do not."""
    if ours[0] != theirs[0]:
        return f"we say {ours[0]} {str(ours[1])[:160]}, they say {theirs[0]} {str(theirs[1])[:160]}"
    if ours[0] == "error":
        return None if ours[1] == theirs[1] else f"we fail with {ours[1]}, they with {theirs[1]}"
    if ours[1]["resultType"] != theirs[1]["resultType"]:
        return f"type {ours[1]['resultType']}, theirs {theirs[1]['resultType']}"
    mine, other = points(ours[1]), points(theirs[1])
    if (ours[1]["resultType"] == "matrix" or ordered(query)) and list(mine) != list(other) and \
            sorted(mine) == sorted(other):
        return f"series in another order: {list(mine)[:4]}, theirs {list(other)[:4]}"
    for key in sorted(set(mine) | set(other)):
        if key not in mine:
            return f"we lack series {key}"
        if key not in other:
            return f"we have a series too many: {key}"
        a, b = mine[key], other[key]
        if [p[0] for p in a] != [p[0] for p in b]:
            only = sorted({p[0] for p in a} ^ {p[0] for p in b})
            return f"{key}: {len(a)} points, theirs {len(b)}, first only in one: {only[:3]}"
        for p, q in zip(a, b):
            found = values_differ(p[1], q[1], tolerance)
            if found:
                return f"{key} at {p[0]}: {found}"
    if ours[1]["notes"] != theirs[1]["notes"]:
        return f"notes {ours[1]['notes']}, theirs {theirs[1]['notes']}"
    return None
