"""compare - ask two servers the same question and judge the answers."""
import json
import math
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


def points(data):
    """{labels: [(time, value)...]} of any float result."""
    kind, result = data["resultType"], data["result"]
    if kind in ("scalar", "string"):
        return {"": [tuple(result)]}
    out = {}
    for series in result:
        key = json.dumps(series["metric"], sort_keys=True)
        if key in out:
            out[key + " (again)"] = []
        out[key] = [tuple(p) for p in series.get("values", [series["value"]] if "value" in series else [])]
    return out


def same_bits(ours, theirs):
    """True if the answers agree to the last digit printed."""
    return ours[0] == "ok" and points(ours[1]) == points(theirs[1])


def ordered(query):
    """The order of an instant answer is part of the answer; that of groups is storage's."""
    return query.startswith(("sort", "topk (", "bottomk ("))


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
            if not close(p[1], q[1], tolerance):
                return f"{key} at {p[0]}: {p[1]}, theirs {q[1]}"
    if ours[1]["notes"] != theirs[1]["notes"]:
        return f"notes {ours[1]['notes']}, theirs {theirs[1]['notes']}"
    return None
