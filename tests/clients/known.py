"""known - what differs from Prometheus 3.5 and stays so, each with its reason: (name, why, applies).

applies(request, ours, theirs, difference) looks at both answers. docs/clients.md lists these for readers."""
import re


def q(request):
    return dict(request.params).get("query", "")


def value_of(request, *names):
    return [v for k, v in request.params if k in names]


def in_protobuf(answer):
    return answer.headers.get("content-type", "").startswith("application/vnd.google.protobuf")


ODD_TIMES = ("NaN", "Inf", "1e30", "-1e30", "1_000", "99999999999", "1700006000000", "-292273086-05-16T16:47:06Z",
             "292277025-08-18T07:12:54.999999999Z")
LATER = ("step(), or range()", "Parameter value is NaN", 'got scalar', "is ineffective for range queries")

RULES = [
    ("after-3.5", "texts and members that came after Prometheus 3.5: duration expressions, notes about sort, anchored, smoothed, fill",
     lambda r, ours, theirs, d: any(text in d for text in LATER) or
     (r.path == "/api/v1/parse_query" and re.search("anchored|fillValues", ours.text()) is not None)),
    ("later-histograms", "histograms of other custom bounds are added, and NaN observations counted, as after 3.5",
     lambda r, ours, theirs, d: ("native_custom" in q(r) and "sum" in q(r)) or
     ("histogram_quantile" in q(r) and "native" in q(r))),
    ("table-order", "count_values and info() list series in the order of a table of Go, another one each time",
     lambda r, ours, theirs, d: d.startswith("order:") and re.search(r"count_values|info\(|histogram_quantile", q(r))),
    ("duplicates-named", "after 3.5 the two series that an error names as being in the way stand in the order of their labels",
     lambda r, ours, theirs, d: "found duplicate series for the match group" in d),
    ("odd-times", "times beyond the year 292278994, or that are no numbers, are an error; Go's overflow makes some other time of them",
     lambda r, ours, theirs, d: any(v in ODD_TIMES for v in value_of(r, "time", "start", "end"))),
    ("now", "two servers look at the clock one after the other",
     lambda r, ours, theirs, d: q(r) == "time()" and value_of(r, "time") in ([], [""])),
    ("no-time", "how a query with hardly any time fails in Prometheus is a race of its own; below a millisecond is a millisecond",
     lambda r, ours, theirs, d: (value_of(r, "timeout") == ["100ms"] and ours.status == 503) or any(v in ("0", "0s", "-1", "NaN", "0.0001", "1e-9") for v in value_of(r, "timeout", "lookback_delta"))),
    ("exact-lists", "Prometheus lists series of whole chunks, we list those with a sample in the time asked for",
     lambda r, ours, theirs, d: r.family in ("series", "labels", "values") and "data" in d and "start" in dict(r.params)),
    ("utf-8", "a query that is no UTF-8 is told as such",
     lambda r, ours, theirs, d: "not valid UTF-8" in d),
    ("cors", "pages of other sites may ask only if --cors-origin says so",
     lambda r, ours, theirs, d: r.family == "cors" and "access-control-allow-origin" in d),
    ("small-answers", "answers of less than a packet are not compressed",
     lambda r, ours, theirs, d: "content-encoding: None" in d and len(ours.body) < 1400),
    ("long-headers", "request line and headers have 64 KiB together (--http-header-bytes), not a megabyte: memory of each connection",
     lambda r, ours, theirs, d: r.family == "length" and ours.status in (414, 431)),
    ("names", "the server's own name, version, flags",
     lambda r, ours, theirs, d: re.search(r"/-/(healthy|ready)|/version|status/flags", r.path)),
    ("features", "/api/v1/features came after 3.5",
     lambda r, ours, theirs, d: r.path == "/api/v1/features" and theirs.status == 404),
    ("head", "HEAD is answered wherever GET is, as RFC 9110 has it; OPTIONS is 204 everywhere",
     lambda r, ours, theirs, d: r.method in ("HEAD", "OPTIONS") and ours.status in (200, 204, 400) and theirs.status in (200, 405)),
    ("slash", "a path with a slash behind it is not found; Prometheus leads to a page that is not there either",
     lambda r, ours, theirs, d: re.search(r"(/|%2f|/v1)$", r.path.split("?")[0]) and ours.status == 404 and theirs.status in (301, 307)),
    ("delete-series", "DELETE of series is not there; Prometheus says that it is not implemented",
     lambda r, ours, theirs, d: r.method == "DELETE" and theirs.status == 500),
    ("library", "what is no HTTP at all is refused by the server library in its own words, or its connection closed",
     lambda r, ours, theirs, d: r.family == "wire" and ours.status in (0, 400, 505) and theirs.status in (400, 501, 505) or
     r.family == "wire" and "GET http://%HOST% " in str(r)),
    ("bad-reads", "matchers of a remote read that are none are an error of who asks; Prometheus fails with 500, or finds nothing",
     lambda r, ours, theirs, d: r.family == "read" and ours.status == 400 and re.search("error parsing regexp|without the name", ours.text())),
    ("custom-bounds", "protobuf has no field for custom bounds: with such a histogram in it a scrape fails as a whole, so they are left out",
     lambda r, ours, theirs, d: r.family == "federate" and in_protobuf(theirs) and any("native_custom" in v for v in value_of(r, "match[]"))),
    ("reused-memory", "of several series of float histograms 3.5 tells some with the buckets of another; asked for alone they are alike",
     lambda r, ours, theirs, d: r.family == "federate" and in_protobuf(theirs) and
     any(re.search(r'native_float$|^\{job=|~"(native_)?\.\+"|!~', v) for v in value_of(r, "match[]"))),
    ("absent", "administration of Prometheus's storage is not there",
     lambda r, ours, theirs, d: ours.status == 404 and re.match(r"/api/v1/admin", r.path)),
]


def rule_for(request, ours, theirs, difference):
    return next((name for name, _, applies in RULES if applies(request, ours, theirs, difference)), None)
