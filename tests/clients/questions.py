"""questions - what clients ask of the HTTP API, as a list of requests that is always the same.

Grafana, promtool, KEDA, dashboards and scripts: queries in every form, lists of series and labels, bad
parameters, odd ways to speak HTTP, and the endpoints about the server itself."""
import itertools
import math

import dataset
from read_protocol import read_request
from wire import FORM, Request

START, END = dataset.START_S, dataset.START_S + dataset.DURATION_S
MIDDLE = START + 5400
TIMES = [START + 900, MIDDLE, MIDDLE + 7.5, END - 1]


def more_series():
    """Series for what random ones rarely show: orders, ties, names with dots, labels that are not ASCII."""
    out = []
    stamps = dataset.steady_times()

    def add(name, labels, value):
        values = value if callable(value) else (lambda k: value)
        out.append(dataset.Series(dict(labels, __name__=name), [(t, float(values(k))) for k, t in enumerate(stamps)]))

    for a, b, value in (("1", "z", 3), ("2", "c", 1), ("3", "m", 2), ("4", "z", 1), ("5", "a", 5), ("6", "c", 4)):
        add("ragged", {"a": a, "b": b}, value)
        add("ragged_too", {"a": a, "b": b, "c": "x"}, value * 2)
    for i in range(9):
        add("equal", {"i": str(i), "half": str(i % 2)}, 7)
        add("steps", {"i": str(i), "half": str(i % 2)}, (i * 5) % 4)
        add("holes", {"i": str(i), "half": str(i % 2)}, math.nan if i % 3 == 0 else i)
        add("turns", {"i": str(i)}, lambda k, i=i: (k // 20 + i * 4) % 3)
    add("only", {}, 42)
    add("text", {"quote": 'say "hi"\\n', "uni": "größer ≥ 東京", "url": "/a?b=c&d=%20"}, 1)
    add("huge", {"size": "1e21"}, 1e21)
    add("huge", {"size": "1e-7"}, 1e-7)
    add("huge", {"size": "123456789.125"}, 123456789.125)
    add("grows_total", {"job": "a"}, lambda k: k * 3)
    add("grows_total", {"job": "b"}, lambda k: (k * 5) % 700)
    return out


VECTORS = """
only|requests_total|ragged|equal|steps|holes|turns|text|huge|wild|latency_seconds_bucket|nothing
requests_total{code="500"}|requests_total{code!="500",job="api"}|{__name__=~"ragged.*"}|{job="web"}|ragged{a=~"[135]"}
rate(requests_total[5m])|rate({__name__=~"requests_total|cpu_seconds_total"}[5m])|increase(grows_total[10m])
sum by (job) (rate(requests_total[5m]))|sum(ragged)|sum by (b) (ragged)|sum without (a) (ragged)|avg by (b) (ragged_too)
count by (b) (ragged)|max by (b) (ragged)|min by (b) (ragged)|group by (b) (ragged)|stddev by (b) (ragged)|quantile by (b) (0.5, ragged)
sum by (b, c) ({__name__=~"ragged.*"})|count by (__name__) ({__name__=~"ragged.*|equal"})|sum by (b) (ragged > 1)|sum by (half) (steps == 2)
count_values("v", steps)|count_values("v", ragged)|count_values by (b) ("v", ragged)|count_values("v", holes)
topk(3, ragged)|bottomk(2, ragged)|topk(3, equal)|bottomk(3, equal)|topk(4, steps)|bottomk(4, steps)|topk(3, holes)|bottomk(3, holes)|topk(9, holes)
topk by (half) (2, steps)|bottomk by (half) (2, steps)|topk by (half) (2, equal)|topk(2, turns)|bottomk(2, turns)|topk(100, steps)|topk(1, steps)
limitk(3, ragged)|limitk(2, equal)|limitk by (half) (2, steps)|limit_ratio(0.5, ragged)|limitk(4, holes)|limitk(20, steps)
topk(3, ragged) * 2|abs(topk(3, steps))|topk(2, sum by (b) (ragged))|sum by (b) (topk(4, ragged))|label_replace(topk(3, ragged), "d", "$1", "a", "(.*)")
sort(ragged)|sort_desc(ragged)|sort(equal)|sort(steps)|sort_desc(steps)|sort(holes)|sort_desc(holes)|sort_by_label(ragged, "b")|sort_by_label_desc(ragged, "b", "a")
-sort(ragged)|sort(ragged) > 1|sort(ragged) or only|only or sort_desc(ragged)
ragged or vector(0)|only or vector(0)|nothing or vector(0)|vector(0) or ragged|ragged and on (a) ragged_too|ragged unless on (b) ragged{a="2"}
ragged or ragged_too|ragged_too or ragged|ragged{b="z"} or ragged{b="c"} or ragged|equal or on () ragged
label_replace(ragged, "b", "$1", "a", "(.*)")|label_replace(ragged, "z", "x$1", "b", "(.)")|label_join(ragged, "j", "-", "b", "a")|label_replace(only, "q", "1", "", "")
label_replace(rate({__name__=~"requests_total|cpu_seconds_total"}[5m]), "k", "$1", "instance", "(.*)")
ragged + ragged|ragged * on (a, b) ragged_too|ragged / on (b) group_left () sum by (b) (ragged)|sum by (b) (ragged) * on (b) group_right () ragged
ragged * on (a) group_left (c) ragged_too|ragged > bool 2|ragged == 1|2 < ragged|ragged > on (a, b) ragged_too / 3|ragged % 2|ragged ^ 0.5|ragged atan2 ragged
-ragged|+ragged|abs(-ragged)|ceil(ragged / 2)|clamp(ragged, 1, 2)|clamp_min(ragged, 3)|round(ragged / 3, 0.1)|exp(ragged)|sgn(ragged - 2)|sqrt(ragged)
absent(nothing)|absent(nothing{a="b"})|absent(ragged)|absent_over_time(nothing[5m])|present_over_time(ragged[5m])|scalar(only)|vector(1)|vector(1e21)|vector(1e-7)
histogram_quantile(0.9, rate(latency_seconds_bucket[5m]))|histogram_quantile(0.9, sum by (le) (rate(latency_seconds_bucket[5m])))|histogram_quantile(0.5, latency_seconds_bucket)
native_requests|native_custom|native_float|native_gauge|native_mixed|sum(native_gauge)|rate(native_requests[5m])|histogram_quantile(0.9, native_requests)|histogram_count(native_custom)|histogram_avg(native_gauge)|sum by (job) (native_custom)
avg_over_time(ragged[10m:1m])|max_over_time(rate(requests_total[1m])[10m:30s])|sum_over_time(turns[5m])|quantile_over_time(0.5, turns[5m])|last_over_time(ragged[5m])|deriv(grows_total[5m])|predict_linear(grows_total[5m], 60)|changes(turns[30m])|resets(grows_total[1h])
timestamp(ragged)|time()|minute()|hour(vector(0))|day_of_week(only)|days_in_month()|year(vector(1.7e9))|month()
ragged offset 5m|ragged offset -5m|ragged @ {middle}|ragged @ start()|rate(grows_total[5m] @ {middle})|sum(ragged) by (b)|sum(ragged) without (a, b)
info(steady)|steady * on (job, instance) group_left (version) target_info|group by (version) (target_info)
"""
SCALARS = """
1|-1|0|1e21|1e-7|123456789012345678901234567890|1e300|1e-300|0.1|NaN|Inf|-Inf|+Inf|1/3|2^0.5|-0|1e20|999999999999999999999|1e6|0x1F|1_000|pi()|time()|scalar(only)|scalar(ragged)|1 + 2 * 3|-2 ^ 2|5 % 3|1 == bool 1|3h|1e-6|0.000001234|1.5e-9
"""
OTHERS = '"text"|"größer"|ragged[1m]|only[5m]|turns[10m]|native_requests[1m]|ragged[5m:1m]|rate(grows_total[1m])[5m:1m]|nothing[5m]|{__name__=~"ragged|only"}[30s]|holes[1m]'
BROKEN = """
|sum(|foo(1)|ragged{|ragged{a=}|ragged{a="b"|1 +|ragged[5m|ragged[]|ragged[5x]|sum by (ragged)|rate(ragged)|rate(ragged[5m])[5m]|ragged offset|ragged offset x|{}|{a=~".*"}|{a!="b"}|ragged{a=~"("}|topk(ragged)|topk(1, 2)
1 or 2|"a" + 1|ragged and 1|1 == 1|sum("a")|label_replace(ragged)|label_replace(ragged, "a", "b", "c", "(")|label_replace(ragged, "bad-name", "$1", "a", "(.*)")|count_values("bad-name-é", ragged)|histogram_quantile("x", ragged)|vector("a")|scalar(1)
ragged + on (a) ragged_too + |ragged * on (b) ragged|ragged * on () group_left () ragged_too|ragged @|ragged @ foo()|ragged bool 1|ragged == bool|sum(ragged) by|sum by (a) by (b) (ragged)|group_left|by (a)|ragged ragged|'a|"a|`a|#|!|$x|1..2|0x|1e|ragged{a="\\q"}|ragged{__name__="x"}|{__name__="a",__name__="b"}|foo bar|(|)|()|ragged)|[5m]|5m]|offset 5m|-|+-|1 - - 1|ragged[5m:|ragged[5m:0s]|ragged[0s]|ragged[-5m]|ragged[5m] + 1|-ragged[5m]|sum(ragged[5m])|limitk("a", ragged)|topk(NaN, ragged)|limit_ratio(2, ragged)|quantile(2, ragged)|histogram_quantile(2, latency_seconds_bucket)|absent(1)|abs()|abs(1, 2)|time(1)|day_of_week(1)|round()|sort(1)|label_join(ragged, "x")|info(1)|info(ragged, 1)
"""


def words(text):
    return [word.replace("{middle}", str(MIDDLE)) for line in text.strip("\n").split("\n") for word in line.split("|")]


def instant():
    for expr in words(VECTORS):
        for at in TIMES:
            yield Request("instant", "GET", "/api/v1/query", {"query": expr, "time": at})
    for expr in words(SCALARS) + words(OTHERS):
        for at in TIMES[:2]:
            yield Request("scalar", "POST", "/api/v1/query", {"query": expr, "time": at})


def ranges():
    for expr in words(VECTORS):
        yield Request("range", "POST", "/api/v1/query_range",
                      {"query": expr, "start": MIDDLE, "end": MIDDLE + 1800, "step": "60"})
        yield Request("range", "GET", "/api/v1/query_range",
                      {"query": expr, "start": MIDDLE + 0.25, "end": MIDDLE + 300, "step": "37s"})
    for expr in words(SCALARS) + words(OTHERS):
        yield Request("range", "GET", "/api/v1/query_range",
                      {"query": expr, "start": MIDDLE, "end": MIDDLE + 60, "step": "30"})


def language():
    for expr in words(VECTORS) + words(SCALARS) + words(OTHERS) + words(BROKEN):
        yield Request("format", "GET", "/api/v1/format_query", {"query": expr})
        yield Request("parse", "GET", "/api/v1/parse_query", {"query": expr})
    for expr in words(BROKEN):
        yield Request("broken", "GET", "/api/v1/query", {"query": expr, "time": MIDDLE})
        yield Request("broken", "GET", "/api/v1/query_range",
                      {"query": expr, "start": MIDDLE, "end": MIDDLE + 60, "step": 30})


MATCHES = ["only", "ragged", '{__name__=~"ragged.*"}', '{job="api"}', 'requests_total{code="500"}', "nothing", '{a=~".+"}',
           '{__name__!="ragged",b="z"}', 'text', "native_requests", "{job=~\"a.*|w.*\",instance=\"1\"}", "up or", "{}", "{a=\"\"}",
           "sum(ragged)", "ragged[5m]", '{uni="größer ≥ 東京"}', "ragged offset 5m", "", "ragged{a=~\"(\"}"]
SPANS = [{}, {"start": START, "end": END}, {"start": MIDDLE, "end": MIDDLE + 60}, {"end": START + 600}, {"start": END - 600},
         {"start": END, "end": START}, {"start": END + 7200}, {"start": str(MIDDLE) + ".5", "end": "2023-11-15T01:30:00Z"}]
LABELS = ["job", "__name__", "b", "le", "nothing", "uni", "U__b", "U__größer", "bad-name", "a.b", "U__a_2e_b", "%20"]


def lists():
    for match, span in itertools.product(MATCHES, SPANS[:5]):
        yield Request("series", "GET", "/api/v1/series", [("match[]", match), *span.items()])
        yield Request("labels", "POST", "/api/v1/labels", [("match[]", match), *span.items()])
    for match in MATCHES:
        yield Request("values", "GET", "/api/v1/label/b/values", {"match[]": match})
        yield Request("series", "POST", "/api/v1/series", [("match[]", match), ("match[]", "only"), ("limit", 3)])
    for span in SPANS:
        yield Request("labels", "GET", "/api/v1/labels", span)
        yield Request("series", "GET", "/api/v1/series", span)
        for label in LABELS:
            yield Request("values", "GET", f"/api/v1/label/{label}/values", span)
    for limit in ("0", "1", "2", "1000000", "-1", "x", "1.5", "99999999999999999999"):
        for path in ("labels", "label/__name__/values", "series", "label/job/values"):
            yield Request("limit", "GET", f"/api/v1/{path}", {"match[]": '{job=~".+"}', "limit": limit})
        yield Request("limit", "GET", "/api/v1/query", {"query": "ragged", "time": MIDDLE, "limit": limit})
        yield Request("limit", "GET", "/api/v1/query_range",
                      {"query": "ragged", "start": MIDDLE, "end": MIDDLE + 30, "step": 15, "limit": limit})
    many = [("match[]", f'ragged{{a="{i}"}}') for i in range(40)] + [("match[]", f"metric_{i}") for i in range(160)]
    for path in ("labels", "series"):
        yield Request("many matches", "POST", f"/api/v1/{path}", many)
        yield Request("many matches", "GET", f"/api/v1/{path}", many)
        yield Request("many matches", "POST", f"/api/v1/{path}", many * 4)


TIME_TEXTS = ["", "0", "-1", "1.5", "1e3", "1700006000.1239", "1700006000.9999", "x", "now", "NaN", "Inf", "1e30", "-1e30", "99999999999", "2023-11-15T00:00:00Z",
              "2023-11-15T00:00:00.123456789Z", "2023-11-15T02:00:00+02:00", "2023-11-15", "2023-11-15T00:00:00", "0x10", "1_000", " 1700006000", "1700006000s",
              "-292273086-05-16T16:47:06Z", "292277025-08-18T07:12:54.999999999Z", "-292273086-05-16T16:47:06.000Z", "1700006000000", "5m", "+1700006000"]
DURATION_TEXTS = ["", "0", "-1", "1.5", "1e3", "x", "5m", "1h30m", "30m1h", "1d", "1w", "1y", "100ms", "5", "NaN", "Inf", "1e30", "-5m", "5 m", "0.0001", "1e-9", "0s", "1h0m", "5m5m", "9223372036", "99999999999", "+5"]


def parameters():
    for text in TIME_TEXTS:
        yield Request("times", "GET", "/api/v1/query", {"query": "ragged", "time": text})
        yield Request("times", "GET", "/api/v1/query", {"query": "time()", "time": text})
        for first, second in (("start", "end"), ("end", "start")):
            yield Request("times", "GET", "/api/v1/query_range",
                          {"query": "ragged", first: text, second: MIDDLE, "step": "60"})
            for path in ("series", "labels", "label/b/values"):
                yield Request("times", "GET", f"/api/v1/{path}", {"match[]": "ragged", first: text})
        yield Request("times", "GET", "/api/v1/query_exemplars", {"query": "ragged", "start": text, "end": END})
    for text in DURATION_TEXTS:
        yield Request("durations", "GET", "/api/v1/query_range",
                      {"query": "ragged", "start": MIDDLE, "end": MIDDLE + 60, "step": text})
        for name in ("timeout", "lookback_delta"):
            yield Request("durations", "GET", "/api/v1/query", {"query": "ragged", "time": MIDDLE, name: text})
            yield Request("durations", "GET", "/api/v1/query_range",
                          {"query": "ragged", "start": MIDDLE, "end": MIDDLE + 60, "step": 30, name: text})
    for params in ({}, {"query": "ragged"}, {"query": "ragged", "start": START}, {"query": "ragged", "start": START, "end": END},
                   {"query": "ragged", "start": END, "end": START, "step": 1}, {"query": "ragged", "start": START, "end": END, "step": 0.5},
                   {"query": "ragged", "start": START, "end": START + 11000, "step": 1}, {"query": "ragged", "start": START, "end": START + 11001, "step": 1},
                   {"query": "1", "start": 0, "end": 1e9, "step": 1}, {"start": START, "end": END, "step": 60}):
        yield Request("missing", "GET", "/api/v1/query_range", params)
        yield Request("missing", "POST", "/api/v1/query_range", params)
    for path in ("query", "series", "labels", "format_query", "parse_query", "query_exemplars", "metadata", "rules", "alerts"):
        yield Request("missing", "GET", f"/api/v1/{path}")
        yield Request("missing", "GET", f"/api/v1/{path}", {"unknown": "x", "query": "only", "time": MIDDLE, "match[]": "only"})
    for stats in ("", "true", "all", "x"):
        yield Request("stats", "GET", "/api/v1/query", {"query": "sum(ragged)", "time": MIDDLE, "stats": stats})
        yield Request("stats", "GET", "/api/v1/query_range",
                      {"query": "ragged", "start": MIDDLE, "end": MIDDLE + 30, "step": 15, "stats": stats})


def selves():
    """What the server says of itself: compared by form where the content is each one's own."""
    for path in ("targets", "targets?state=active", "targets?state=dropped", "targets?state=any", "targets?state=x", "targets?scrapePool=x",
                 "targets/metadata", "targets/metadata?metric=x", "targets/metadata?match_target={job=%22a%22}", "targets/metadata?match_target=x(",
                 "targets/metadata?limit=x", "targets/metadata?limit=1", "scrape_pools", "alertmanagers", "alerts", "notifications",
                 "rules", "rules?type=alert", "rules?type=record", "rules?type=x", "rules?rule_name[]=a", "rules?rule_group[]=a", "rules?file[]=a",
                 "rules?exclude_alerts=true", "rules?exclude_alerts=x", "rules?match[]={a=%22b%22}", "rules?match[]=x(", "rules?group_limit=1",
                 "rules?group_limit=x", "rules?group_limit=-1", "rules?group_limit=0", "rules?group_next_token=abc", "rules?group_limit=1&group_next_token=abc",
                 "metadata", "metadata?metric=x", "metadata?limit=1", "metadata?limit=x", "metadata?limit=-1", "metadata?limit_per_metric=1",
                 "metadata?limit_per_metric=x", "query_exemplars?query=only", "query_exemplars?query=1", "query_exemplars?query=x(",
                 "query_exemplars", "query_exemplars?query=only&start=2&end=1", "status/config", "status/flags", "status/runtimeinfo", "status/buildinfo",
                 "status/tsdb", "status/tsdb?limit=2", "status/tsdb?limit=x", "status/tsdb?limit=0", "status/tsdb?limit=-1", "status/walreplay",
                 "features", "nothing", "status", "status/nothing", "label", "label/", "label//values", "label/a", "admin/tsdb/snapshot"):
        yield Request("about", "GET", "/api/v1/" + path)
    for path in ("/-/healthy", "/-/ready", "/federate", "/federate?match[]=only", "/federate?match[]=ragged&match[]=only",
                 "/federate?match[]=x(", "/federate?match[]=nothing", "/federate?match[]=equal", "/version", "/nothing", "/api", "/api/", "/api/v1", "/api/v1/", "/api/v2/query"):
        yield Request("about", "GET", path)
        yield Request("about", "HEAD", path)
    for accept in ("*/*", "text/plain", "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3", "text/plain;version=0.0.4;escaping=underscores"):
        yield Request("about", "GET", "/federate?match[]=only", headers={"Accept": accept})


# Floats of every kind; native histograms are told as floats here, and as they were written there.
READ = [[("__name__", "=", "ragged")], [("__name__", "=~", "only|equal")], [("__name__", "=~", "ragged.*"), ("a", "!=", "")],
        [("__name__", "=", "nothing")], [("__name__", "!~", "native.*|.*hist.*"), ("b", "=~", ".+")], [("a", "=~", "(")], [("", "=", "x")]]


def reads():
    """What a Prometheus asks that has another one as its storage."""
    headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy", "X-Prometheus-Remote-Read-Version": "0.1.0",
               "Accept-Encoding": "snappy"}
    for matchers in READ:
        for start, end in ((START, END), (MIDDLE, MIDDLE + 60), (END, START), (MIDDLE + 3, MIDDLE + 3)):
            for forms in ((), (0,), (1,), (1, 0), (0, 1)):
                request = Request("read", "POST", "/api/v1/read", body=read_request([(start * 1000, end * 1000, matchers)], forms), headers=headers)
                request.spans = [(start * 1000, end * 1000)]
                yield request
    spans = [(START * 1000, MIDDLE * 1000), (MIDDLE * 1000, END * 1000)]
    request = Request("read", "POST", "/api/v1/read", body=read_request([(*span, READ[i]) for i, span in enumerate(spans)]), headers=headers)
    request.spans = spans
    yield request
    for body in (b"", b"x", read_request([])):
        request = Request("read", "POST", "/api/v1/read", body=body, headers=headers)
        request.spans = []
        yield request


def exotic():
    """Ways to ask that libraries and proxies have."""
    ask = {"query": "only", "time": MIDDLE}
    tail = f"query=only&time={MIDDLE}"
    for path in ("//api/v1/query", "/api//v1/query", "/api/v1//query", "/./api/v1/query", "/api/./v1/query", "/api/x/../v1/query",
                 "/api/v1/query/", "///api///v1///query", "/api/v1/query/.", "/api/v1/%71uery", "/api/v1/label/b/values/", "//api/v1/labels", "/API/v1/query",
                 "/api/v1/label//values", "/api/v1/label/a/b/values", "/../api/v1/query", "/api/v1/query%2f"):
        yield Request("path", "GET", path, ask)
        yield Request("path", "POST", path, ask)
        yield Request("path", "HEAD", path, ask)
    for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "FOO"):
        for path in ("query", "query_range", "series", "labels", "label/b/values", "metadata", "rules", "status/buildinfo", "format_query", "nothing"):
            yield Request("method", method, f"/api/v1/{path}", ask, body=b"" if method in ("POST", "PUT", "PATCH") else None)
        yield Request("method", method, "/-/healthy", body=b"" if method in ("POST", "PUT", "PATCH") else None)
    form = tail.encode()
    for headers in (FORM, {"Content-Type": "application/x-www-form-urlencoded; charset=UTF-8"}, {"Content-Type": "APPLICATION/X-WWW-FORM-URLENCODED"},
                    {"Content-Type": "text/plain"}, {"Content-Type": "application/json"}, {"Content-Type": "x"}, {"Content-Type": ""}, {}):
        for method in ("POST", "GET", "PUT"):
            yield Request("body", method, "/api/v1/query", body=form, headers=headers)
            yield Request("body", method, "/api/v1/query", {"time": START + 60}, body=form, headers=headers)
    mark = "----mark"
    parts = "".join(f'--{mark}\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in ask.items())
    for end in (f"--{mark}--\r\n", f"--{mark}--", ""):
        yield Request("multipart", "POST", "/api/v1/query", body=(parts + end).encode(),
                      headers={"Content-Type": f"multipart/form-data; boundary={mark}"})
        yield Request("multipart", "POST", "/api/v1/query", body=(parts + end).encode(),
                      headers={"Content-Type": f'multipart/form-data; boundary="{mark}"'})
    yield Request("multipart", "POST", "/api/v1/query", body=parts.encode(), headers={"Content-Type": "multipart/form-data"})
    yield Request("multipart", "GET", "/api/v1/query", ask, body=parts.encode(),
                  headers={"Content-Type": f"multipart/form-data; boundary={mark}"})
    for bad in (f"query=only%&time={MIDDLE}", f"query=only%zz&time={MIDDLE}", f"query=only;time={MIDDLE}", f"query=only&&time={MIDDLE}", f"&query=only&time={MIDDLE}&",
                f"query=only&query=ragged&time={MIDDLE}", f"query&time={MIDDLE}", f"=x&query=only&time={MIDDLE}", f"query=only+%2B+only&time={MIDDLE}",
                f"query=%6fnly&time={MIDDLE}", f"query=only%00&time={MIDDLE}", f"query=only%ff&time={MIDDLE}", f"q%75ery=only&time={MIDDLE}", f"query=only&time={MIDDLE}#x"):
        yield Request("escapes", "GET", "/api/v1/query?" + bad)
        yield Request("escapes", "POST", "/api/v1/query", body=bad.encode(), headers=FORM)
    for accept in ("gzip", "deflate", "br", "identity", "gzip;q=0", "*", "gzip, deflate", "x", "deflate;q=1, gzip;q=0.5", ""):
        yield Request("coding", "GET", "/api/v1/query", ask, headers={"Accept-Encoding": accept})
    for accept in ("*/*", "application/json", "text/html", "application/json;q=0.5", "image/png", "x"):
        yield Request("accept", "GET", "/api/v1/query", ask, headers={"Accept": accept})
    for headers in ({"Origin": "http://grafana.example"}, {"Origin": "null"}, {"Origin": "http://a", "Access-Control-Request-Method": "GET"}):
        for method in ("GET", "OPTIONS", "POST"):
            yield Request("cors", method, "/api/v1/query", ask, headers=headers)
    for length in (100, 4000, 30000, 60000, 200000, 900000):
        yield Request("length", "GET", "/api/v1/query", {"query": "only" + " " * length, "time": MIDDLE})
        yield Request("length", "POST", "/api/v1/query", {"query": "only" + " " * length, "time": MIDDLE})
        yield Request("length", "GET", "/api/v1/query", ask, headers={"X-Long": "x" * length})
    line = f"GET /api/v1/query?{tail} HTTP/1.1\r\n"
    for name, text in (
            ("no host", line + "Connection: close\r\n\r\n"), ("empty host", line + "Host:\r\nConnection: close\r\n\r\n"),
            ("two hosts", line + "Host: a\r\nHost: b\r\nConnection: close\r\n\r\n"),
            ("bad host", line + "Host: a b\r\nConnection: close\r\n\r\n"),
            ("1.0", line.replace("1.1", "1.0") + "\r\n"),
            ("absolute", line.replace("GET /", "GET http://%HOST%/") + "Host: %HOST%\r\nConnection: close\r\n\r\n"),
            ("absolute elsewhere", line.replace("GET /", "GET http://elsewhere.example/") + "Host: %HOST%\r\nConnection: close\r\n\r\n"),
            ("absolute upper", line.replace("GET /", "GET HTTP://%HOST%/") + "Host: %HOST%\r\nConnection: close\r\n\r\n"),
            ("asterisk", "OPTIONS * HTTP/1.1\r\nHost: %HOST%\r\nConnection: close\r\n\r\n"),
            ("no path", "GET http://%HOST% HTTP/1.1\r\nHost: %HOST%\r\nConnection: close\r\n\r\n"),
            ("expect", f"POST /api/v1/query?{tail} HTTP/1.1\r\nHost: %HOST%\r\nExpect: 100-continue\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
            ("expect other", f"POST /api/v1/query?{tail} HTTP/1.1\r\nHost: %HOST%\r\nExpect: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
            ("expect upper", f"POST /api/v1/query?{tail} HTTP/1.1\r\nHost: %HOST%\r\nExpect: 100-Continue\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
            ("lengths differ", f"POST /api/v1/query?{tail} HTTP/1.1\r\nHost: %HOST%\r\nContent-Length: 0\r\nContent-Length: 1\r\nConnection: close\r\n\r\n"),
            ("lengths equal", f"POST /api/v1/query?{tail} HTTP/1.1\r\nHost: %HOST%\r\nContent-Length: 0\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
            ("length bad", f"POST /api/v1/query?{tail} HTTP/1.1\r\nHost: %HOST%\r\nContent-Length: x\r\nConnection: close\r\n\r\n"),
            ("length negative", f"POST /api/v1/query?{tail} HTTP/1.1\r\nHost: %HOST%\r\nContent-Length: -1\r\nConnection: close\r\n\r\n"),
            ("chunked", f"POST /api/v1/query?time={MIDDLE} HTTP/1.1\r\nHost: %HOST%\r\nContent-Type: {FORM['Content-Type']}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\na\r\nquery=only\r\n0\r\n\r\n"),
            ("chunked and length", f"POST /api/v1/query?{tail} HTTP/1.1\r\nHost: %HOST%\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\nConnection: close\r\n\r\n0\r\n\r\n"),
            ("coding unknown", f"POST /api/v1/query?{tail} HTTP/1.1\r\nHost: %HOST%\r\nTransfer-Encoding: x\r\nConnection: close\r\n\r\n"),
            ("2.0", line.replace("1.1", "2.0") + "Host: %HOST%\r\n\r\n"), ("bad version", line.replace("HTTP/1.1", "HTTP/x") + "Host: %HOST%\r\n\r\n"),
            ("no version", f"GET /api/v1/query?{tail}\r\n\r\n"), ("garbage", "x\r\n\r\n"),
            ("header without colon", line + "Host: %HOST%\r\nx\r\nConnection: close\r\n\r\n"),
            ("header with blank", line + "Host: %HOST%\r\nX Y: z\r\nConnection: close\r\n\r\n"),
            ("header folded", line + "Host: %HOST%\r\nX: a\r\n b\r\nConnection: close\r\n\r\n"),
            ("bare newlines", (line + "Host: %HOST%\r\nConnection: close\r\n\r\n").replace("\r\n", "\n")),
            ("fragment", line.replace(" HTTP", "#x HTTP") + "Host: %HOST%\r\nConnection: close\r\n\r\n"),
            ("authorization", line + "Host: %HOST%\r\nAuthorization: Basic eDp5\r\nConnection: close\r\n\r\n")):
        yield Request("wire", "OPTIONS" if name == "asterisk" else "GET", name, raw=text.encode())


def everything():
    for family in (instant, ranges, language, lists, parameters, selves, reads, exotic):
        yield from family()
