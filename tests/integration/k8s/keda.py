"""keda.py - what KEDA's metrics-api scaler makes of an answer, as its documentation says.

A value is found by a GJSON path: keys separated by dots, numbers index arrays, `*` and `?` match
within a key, a backslash takes the next character as it is. The first match wins, also between equal
keys of one object. It must be a JSON number, or a string that is a Kubernetes quantity. With
aggregateFromKubeServiceEndpoints every endpoint of the service is asked; those that fail are left out
as long as one answers."""
import fnmatch
import json
import re
import urllib.error
import urllib.request

SUFFIXES = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
            "P": 1e15, "E": 1e18, "Ki": 2 ** 10, "Mi": 2 ** 20, "Gi": 2 ** 30, "Ti": 2 ** 40,
            "Pi": 2 ** 50, "Ei": 2 ** 60}


class ScalerError(Exception):
    pass


class Pairs(list):
    """An object with its keys in the order of the text, repeated ones included."""


def path_parts(path):
    """The components of a path: (text, whether * and ? are wildcards in it)."""
    parts = re.findall(r"((?:[^.\\]|\\.)+)", path)
    return [(re.sub(r"\\(.)", r"\1", part), "\\" not in part) for part in parts]


def gjson(text, path):
    """(found, value): the first match, as GJSON's Get."""
    value = json.loads(text, object_pairs_hook=Pairs)
    for part, wild in path_parts(path):
        if isinstance(value, Pairs):
            for key, member in value:
                if key == part or (wild and fnmatch.fnmatchcase(key, part)):
                    value = member
                    break
            else:
                return False, None
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, list) and part == "#":
            value = len(value)
        else:
            return False, None
    return True, value


def number(text, path):
    found, value = gjson(text, path)
    if isinstance(value, str):
        match = re.fullmatch(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i))?",
                             value)
        if not match:
            raise ScalerError(f"{path}: {value!r} is not a quantity")
        return float(match[1] + (match[2] or "")) * SUFFIXES[match[3] or ""]
    if not found or isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ScalerError(f"{path}: {value!r} is not a number")
    return float(value)


def poll(url, path):
    try:
        with urllib.request.urlopen(url, timeout=3) as response:  # KEDA's default timeout
            if response.status != 200:
                raise ScalerError(f"{url}: status {response.status}")
            return number(response.read(), path)
    except (OSError, ValueError) as error:
        raise ScalerError(f"{url}: {error}") from error


def aggregate(kind, urls, path):
    values = []
    for url in urls:
        try:
            values.append(poll(url, path))
        except ScalerError:
            pass
    if not values:
        raise ScalerError(f"none of {len(urls)} endpoints answers")
    return {"sum": sum, "max": max, "min": min,
            "average": lambda v: sum(v) / len(v)}[kind](values)


def replicas(value, trigger, current):
    """What the autoscaler makes of a value: AverageValue shares it, Value compares it."""
    target = float(trigger["metadata"]["targetValue"])
    wanted = value / target if trigger["metricType"] == "AverageValue" else current * value / target
    return int(-(-wanted // 1))
