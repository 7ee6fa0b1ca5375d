"""federation - what a Prometheus scrapes from another one: data that end now, and requests for the newest of them.

Only the last minutes can be federated, so these questions have servers of their own."""
import math
import random
import struct
import time

import dataset
import native
import remote_write
from wire import Request

NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]  # the one that text is read as
STEP_MS = 15_000
COUNT = 8
PROTOBUF = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
OLD = "text/plain;version=0.0.4"
# As versions 2.40, 2.55 and 3.5 of Prometheus ask, with native histograms and without.
SCRAPERS = [
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
    f"{PROTOBUF};q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
    f"{PROTOBUF},application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
]
ESCAPINGS = ("underscores", "dots", "values", "allow-utf-8")
ODD = [
    None, "", "*/*", "text/plain", OLD, "text/plain;version=2", "text/*", "application/json", "application/openmetrics-text",
    PROTOBUF, PROTOBUF.replace(";", "; "), f"text/plain,{PROTOBUF}", f"{PROTOBUF},text/plain", f"{PROTOBUF};q=0.5,text/plain;q=0.6",
    f"text/plain;q=0.5,{PROTOBUF};q=x", f"{PROTOBUF};q=x", f"text/plain;q=0,{PROTOBUF};q=0.1", "text/plain;escaping=x",
    PROTOBUF.replace("delimited", "x"), PROTOBUF.replace("MetricFamily", "Other"), "application/vnd.google.protobuf",
    "application/vnd.google.protobuf;encoding=delimited", "text/plain;version=2;escaping=dots,text/plain",
    "application/openmetrics-text;escaping=dots;q=0.9,text/plain;escaping=values;q=0.3", "text/plain ; escaping = dots",
    'text/plain;escaping="dots"', "*/*;escaping=values",
] + [f"{form};escaping={escaping}" for form in ("text/plain", OLD, PROTOBUF, "application/openmetrics-text") for escaping in ESCAPINGS]
MATCHES = [
    ("floats",), ("{job=\"a\"}",), ("floats", "floats", "numbers"), ("numbers",), ("gone",), ("short",), ("nothing",), ("text",), ("{}", "short"),
    ("native_gauge", "floats"), ("native_requests",), ("native_float",), ("native_gauge",), ("native_odd",), ("native_custom",), ("native_mixed",),
    *[(f'{kind}{{job="{job}"}}',) for kind in native.KINDS for job in "ab"],
    ('{__name__=~".+"}',), ('{__name__=~"native_.+"}',), ('{__name__!~"native_custom|floats"}',), ('{"a.b\u00e9"}',), ('{n=~".+"}',),
]
NAMES = ["x.y_z", "9lives", "no:colon", "a:b.c", "\u00e9", "\u65e5\u672c", "_", "__x", "a-b", "U__x", "a_b", "with space"]


def series():
    """Of every kind of value, the newest at about this time."""
    rng, now, out = random.Random(5), int(time.time() * 1000) // STEP_MS * STEP_MS, []

    def add(name, labels, values):
        stamps = range(now - (len(values) - 1) * STEP_MS, now + 1, STEP_MS)
        out.append(dataset.Series(dict(labels, __name__=name), list(zip(stamps, values))))

    for job in "abc":
        add("floats", {"job": job, "instance": "i" + job}, [float(k) for k in range(COUNT)])
        add("floats", {"job": job}, [k / 3 for k in range(COUNT)])
        add("gone", {"job": job}, [1.0] * (COUNT - 1) + [remote_write.STALE])
    for i, value in enumerate((0.0, -0.0, 1e21, 1e-7, 123456789.125, NAN, math.inf, -math.inf, 1e6, 5e-324, 1.7976931348623157e308)):
        add("numbers", {"i": str(i)}, [1.0, value])
    add("short", {"instance": ""}, [1.0])
    add("text", {"quote": 'say "hi"\\n', "line": "a\nb", "url": "/a?b=c&d=%20"}, [1.0, 2.0])
    add("a.b\u00e9", {"c d": "e"}, [5.0])
    for name in NAMES:
        add(name, {"n": "1", name: "v"}, [1.0])
    for kind in native.KINDS:
        for job in "ab":
            stamps = range(now - (COUNT - 1) * STEP_MS, now + 1, STEP_MS)
            labels = {"__name__": kind, "job": job}
            out.append(dataset.Series(labels, list(native.samples(rng, kind, stamps))))
    return out


def requests():
    for matches in MATCHES:
        params = [("match[]", match) for match in matches]
        for accept in SCRAPERS + [f"{PROTOBUF};escaping=allow-utf-8"]:
            yield Request("federate", "GET", "/federate", params, headers={"Accept": accept})
    for accept in ODD:
        headers = {} if accept is None else {"Accept": accept}
        for match in ('{"a.b\u00e9"}', '{n=~".+"}', "native_gauge"):
            yield Request("federate", "GET", "/federate", {"match[]": match}, headers=headers)
    for bad in ("x(", "sum(floats)", "", "floats[5m]", "{}"):
        yield Request("federate", "GET", "/federate", {"match[]": bad})
    yield Request("federate", "GET", "/federate")
