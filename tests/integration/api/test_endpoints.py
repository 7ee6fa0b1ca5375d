"""test_endpoints.py - every endpoint of the API against a fabric of real processes."""
import gzip
import http.client
import json
import os
import pty
import signal
import socket
import subprocess
import time
import unittest
import urllib.parse
import zlib

from harness import (BINARY, START, STEP, FabricTest, check_one_end, load, parse_events,
                     standard_lines, wait_for, without_comments)

END = START + 3600


def labels_of(result):
    return sorted(tuple(sorted(series["metric"].items())) for series in result)


class EndpointTest(FabricTest):
    workers = 3
    api_flags = ("--cors-origin=*",)


class Queries(EndpointTest):
    def test_instant_vector(self):
        data = self.fabric.query('sum by (job) (rate(http_requests_total[5m]))', END)
        self.assertEqual(data["resultType"], "vector")
        # i0, i2, ... are web and grow by 1, 3, 5, ... per 15 s; the odd ones by 2, 4, 6, ...
        values = {s["metric"]["job"]: float(s["value"][1]) for s in data["result"]}
        self.assertAlmostEqual(values["web"], 36 / 15, places=9)
        self.assertAlmostEqual(values["api"], 42 / 15, places=9)
        self.assertEqual([s["value"][0] for s in data["result"]], [END, END])

    def test_scalar_string_and_number_formats(self):
        self.assertEqual(self.fabric.query("1.5", END), {"resultType": "scalar",
                                                         "result": [END, "1.5"]})
        self.assertEqual(self.fabric.query('"a\\nb"', END)["result"], [END, "a\nb"])
        status, _, body = self.fabric.get("/api/v1/query", {"query": "1e-7", "time": "1.5"})
        self.assertEqual(status, 200)
        self.assertIn(b'[1.5,"0.0000001"]', body)
        for expr, text in (("1/0", "+Inf"), ("-1/0", "-Inf"), ("0/0", "NaN"), ("1e21", "1" + 21 * "0")):
            self.assertEqual(self.fabric.query(expr, END)["result"][1], text)

    def test_matrix_of_an_instant_query(self):
        data = self.fabric.query('up{job="web"}[1m]', END)
        self.assertEqual(data["resultType"], "matrix")
        self.assertEqual(data["result"][0]["values"],
                         [[END - 45 + 15 * i, "1"] for i in range(4)])

    def test_range_is_sorted_by_labels(self):
        data = self.fabric.query_range("temperature", END - 60, END, 15)
        self.assertEqual(data["resultType"], "matrix")
        self.assertEqual(len(data["result"]), 12)
        labels = [tuple(sorted(s["metric"].items())) for s in data["result"]]
        self.assertEqual(labels, sorted(labels))
        self.assertTrue(all(len(s["values"]) == 5 for s in data["result"]))

    def test_stale_series_end(self):
        at = START + 19 * STEP
        self.assertEqual(len(self.fabric.query("short_lived", at)["result"]), 1)
        self.assertEqual(self.fabric.query("short_lived", at + 60)["result"], [])

    def test_binary_join_and_empty_result(self):
        data = self.fabric.query('count(temperature * on (instance) '
                                 'group_left http_requests_total)', END)
        self.assertEqual(data["result"], [{"metric": {}, "value": [END, "12"]}])
        self.assertEqual(self.fabric.query("nonexistent", END)["result"], [])
        self.assertEqual(self.fabric.query_range("nonexistent", START, END, 60)["result"], [])

    def test_limit_truncates_with_a_warning(self):
        status, answer = self.fabric.json("/api/v1/query",
                                          {"query": "temperature", "time": END, "limit": 3})
        self.assertEqual(status, 200)
        self.assertEqual(len(answer["data"]["result"]), 3)
        self.assertEqual(answer["warnings"], ["results truncated due to limit"])

    def test_stats(self):
        data = self.fabric.query("temperature", END, stats="true")
        self.assertGreater(data["stats"]["samples"]["samplesRead"], 0)
        self.assertGreater(data["stats"]["timings"]["execTotalTime"], 0)

    def test_annotations(self):
        status, answer = self.fabric.json("/api/v1/query",
                                          {"query": "rate(temperature[5m])", "time": END})
        self.assertEqual(status, 200)
        self.assertTrue(any("temperature" in info for info in answer.get("infos", [])), answer)

    def test_post_form_beats_the_url(self):
        status, _, body = self.fabric.request(
            "POST", "/api/v1/query?query=2", body=f"query=1%2B1&time={END}",
            headers={"Content-Type": "application/x-www-form-urlencoded"})
        self.assertEqual((status, json.loads(body)["data"]["result"][1]), (200, "2"))

    def test_gzip_and_identity_hold_the_same(self):
        params = {"query": "temperature", "start": START, "end": END, "step": 15}
        plain = self.fabric.get("/api/v1/query_range", params)[2]
        _, headers, packed = self.fabric.get("/api/v1/query_range", params,
                                             headers={"Accept-Encoding": "gzip"})
        self.assertEqual(headers.get("Content-Encoding"), "gzip")
        self.assertEqual(gzip.decompress(packed), plain)
        self.assertGreater(len(plain), 32768)  # more than one piece

    def test_every_coding_holds_the_same(self):
        """Documents and events, in each coding that a client may want; curl decodes them."""
        url = f"http://127.0.0.1:{self.fabric.api_port}"
        document = (f"{url}/api/v1/query_range?query=temperature&start={START}&end={END}&step=15")
        events = f"{url}/api/v1/metrics/query?q=temperature&s={START}&e={END}&step=15s"
        for address in (document, events):
            plain = self.fabric.get(address[len(url):])
            self.assertEqual((plain[0], plain[1].get("Vary")), (200, "Accept-Encoding"))
            self.assertNotIn("Content-Encoding", plain[1])
            for accept, coding in (("gzip", "gzip"), ("zstd", "zstd"), ("gzip, zstd", "zstd"),
                                   ("zstd;q=0.5, gzip;q=0.9", "gzip")):
                _, headers, packed = self.fabric.get(address[len(url):],
                                                     headers={"Accept-Encoding": accept})
                self.assertEqual(headers.get("Content-Encoding"), coding, accept)
                self.assertEqual(headers.get("Vary"), "Accept-Encoding")
                self.assertLess(len(packed), len(plain[2]) / 4)
                run = subprocess.run(["curl", "-s", "--compressed", "-H", f"Accept-Encoding: {accept}",
                                      address], capture_output=True, check=True)
                self.assertEqual(without_comments(run.stdout), without_comments(plain[2]), accept)

    def test_packed_events_come_one_by_one(self):
        """What is sent of an event stream can be decoded before its end."""
        connection = http.client.HTTPConnection("127.0.0.1", self.fabric.api_port, timeout=60)
        connection.request("GET", "/api/v1/metrics/query?" + urllib.parse.urlencode({
            "q": "temperature", "s": START, "e": END, "step": "1s"}),
            headers={"Accept-Encoding": "gzip"})
        response = connection.getresponse()
        decoder = zlib.decompressobj(31)
        text = b""
        while b"\n\n" not in text:
            text += decoder.decompress(response.read1(4096))
        self.assertTrue(text.startswith(b'data: {"type":"result"'), text[:100])
        self.assertFalse(decoder.eof)
        connection.close()

    def test_a_page_of_queries_has_a_limit(self):
        for limit, want in (("0", 200), ("1", 200), ("100000", 200), ("-1", 400), ("x", 400)):
            status, answer = self.fabric.json("/api/v1/queries", {"limit": limit})
            self.assertEqual(status, want, answer)

    def test_errors_have_prometheus_types_and_statuses(self):
        cases = [
            ("/api/v1/query", {"query": "up{"}, 400, "bad_data", 'invalid parameter "query": 1:4: '
             'parse error: unexpected end of input inside braces'),
            ("/api/v1/query", {}, 400, "bad_data", 'invalid parameter "query": unknown position: '
             'parse error: no expression found in input'),
            ("/api/v1/query", {"query": "up", "time": "x"}, 400, "bad_data",
             'invalid parameter "time": invalid time value for \'time\': cannot parse "x" to a '
             'valid timestamp'),
            ("/api/v1/query_range", {"query": "up", "start": 1, "end": 0, "step": 1}, 400,
             "bad_data", 'invalid parameter "end": end timestamp must not be before start time'),
            ("/api/v1/query_range", {"query": "up", "start": 0, "end": 1, "step": 0}, 400,
             "bad_data", None),
            ("/api/v1/query_range", {"query": "up", "start": 0, "end": 11001, "step": 1}, 400,
             "bad_data", "exceeded maximum resolution of 11,000 points per timeseries. Try "
             "decreasing the query resolution (?step=XX)"),
            ("/api/v1/query_range", {"query": "up[5m]", "start": 0, "end": 10, "step": 1}, 400,
             "bad_data", 'invalid parameter "query": invalid expression type "range vector" for '
             'range query, must be Scalar or instant Vector'),
            ("/api/v1/query", {"query": "temperature + on (job) http_requests_total",
                               "time": END}, 422, "execution", None),
            ("/api/v1/series", {}, 400, "bad_data", "no match[] parameter provided"),
            ("/api/v1/series", {"match[]": '{job=~".*"}'}, 400, "bad_data", None),
            ("/api/v1/labels", {"limit": -1}, 400, "bad_data", None),
        ]
        for path, params, status, kind, message in cases:
            with self.subTest(path=path, params=params):
                got, answer = self.fabric.json(path, params)
                self.assertEqual((got, answer["status"], answer["errorType"]),
                                 (status, "error", kind), answer)
                if message:
                    self.assertEqual(answer["error"], message)

    def test_eleven_thousand_and_one_points_pass(self):
        data = self.fabric.query_range("up", START, START + 11000, 1)
        self.assertEqual(data["resultType"], "matrix")

    def test_timeout_is_503(self):
        status, answer = self.fabric.json(
            "/api/v1/query", {"query": "temperature", "time": END, "timeout": "0.001"})
        self.assertEqual((status, answer["errorType"]), (503, "timeout"))


FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Parameters(EndpointTest):
    """Every parameter, in a URL and in a form, right and wrong."""

    def ask(self, path, params, method="GET"):
        """(status, answer) of a GET, or of a POST of a form."""
        text = urllib.parse.urlencode(params, doseq=True)
        if method == "POST":
            status, _, body = self.fabric.request("POST", path, body=text, headers=FORM)
        else:
            status, _, body = self.fabric.get(f"{path}?{text}")
        return status, json.loads(body)

    def refused(self, path, params, status, kind, text=""):
        for method in ("GET",) if "/label/" in path or "metadata" in path else ("GET", "POST"):
            with self.subTest(path=path, params=params, method=method):
                got, answer = self.ask(path, params, method)
                self.assertEqual((got, answer["status"], answer["errorType"]),
                                 (status, "error", kind), answer)
                self.assertIn(text, answer["error"])

    def test_forms_answer_as_urls_do(self):
        span = {"start": START, "end": END}
        for path, params in (
                ("/api/v1/query", {"query": "sum(up)", "time": END}),
                ("/api/v1/query_range", {"query": "sum(up)", "step": "1m", **span}),
                ("/api/v1/series", {"match[]": ["up", "short_lived"], **span}),
                ("/api/v1/labels", {"match[]": "up", **span}),
                ("/api/v1/format_query", {"query": "sum(up)by(job)"}),
                ("/api/v1/parse_query", {"query": "up"}),
                ("/api/v1/query_exemplars", {"query": "up", **span})):
            with self.subTest(path=path):
                got = [self.ask(path, params, method) for method in ("GET", "POST")]
                self.assertEqual(got[0], got[1])
                self.assertEqual((got[0][0], got[0][1]["status"]), (200, "success"))

    def test_times(self):
        want = self.fabric.query("timestamp(up)", END)
        for text in (f"{END}.000", "2023-11-14T23:20:00Z", "2023-11-15T00:20:00+01:00",
                     "2023-11-14T23:20:00.0000001Z", f"{END / 1e9}e9"):
            self.assertEqual(self.fabric.query("timestamp(up)", text), want, text)
        status, answer = self.ask("/api/v1/query", {"query": "time()", "time": "1.0015"})
        self.assertEqual(answer["data"]["result"][0], 1.002)  # rounded to a millisecond
        begun = time.time()
        at = self.fabric.data("/api/v1/query", {"query": "1"})["result"][0]  # now, if it is absent
        self.assertTrue(begun - 1 <= at <= time.time() + 1)
        for path, more in (("/api/v1/query", {"query": "up"}),):
            self.refused(path, {"time": "noon", **more}, 400, "bad_data", '"time"')
        for name in ("start", "end"):
            good = {"query": "up", "start": START, "end": END, "step": 60}
            self.refused("/api/v1/query_range", {**good, name: "noon"}, 400, "bad_data", name)
            self.refused("/api/v1/query_range", {k: v for k, v in good.items() if k != name}, 400,
                         "bad_data", name)
            for path in ("/api/v1/series", "/api/v1/labels", "/api/v1/label/job/values",
                         "/api/v1/query_exemplars"):
                self.refused(path, {"match[]": "up", "query": "up", name: "noon"}, 400, "bad_data",
                             name)

    def test_durations(self):
        good = {"query": "up", "start": START, "end": START + 120}
        want = self.ask("/api/v1/query_range", {**good, "step": 60})
        for step in ("60s", "1m", "60.0", "0h1m"):
            self.assertEqual(self.ask("/api/v1/query_range", {**good, "step": step}), want)
        for step in ("0", "-1", "x", "1y1x", ""):
            self.refused("/api/v1/query_range", {**good, "step": step}, 400, "bad_data", "step")
        for name, said in (("timeout", "timeout"), ("lookback_delta", "lookback delta")):
            self.refused("/api/v1/query", {"query": "up", name: "soon"}, 400, "bad_data", said)
            self.refused("/api/v1/query_range", {**good, "step": 60, name: "soon"}, 400,
                         "bad_data", said)

    def test_lookback(self):
        last = START + 480 * STEP
        for delta, count in (("", 0), ("1m", 0), ("9m", 2), ("540.5", 2)):
            more = {"lookback_delta": delta} if delta else {}
            self.assertEqual(len(self.fabric.query("up", last + 500, **more)["result"]), count)
        data = self.fabric.query_range("up", last, last + 600, 60, lookback_delta="2m")
        self.assertEqual([len(s["values"]) for s in data["result"]], [2, 2])

    def test_timeout(self):
        for path, params in (
                ("/api/v1/query", {"query": "temperature", "time": END}),
                ("/api/v1/query_range", {"query": "temperature", "start": START, "end": END,
                                         "step": 15})):
            self.refused(path, {**params, "timeout": "0.001"}, 503, "timeout",
                         "query timed out in query execution")
            self.assertEqual(self.ask(path, {**params, "timeout": "30s"})[0], 200)

    def test_limits(self):
        span = {"start": START, "end": END}
        for path, params, whole in (
                ("/api/v1/query", {"query": "temperature", "time": END}, 12),
                ("/api/v1/query_range", {"query": "temperature", "step": 60, **span}, 12),
                ("/api/v1/series", {"match[]": "temperature", **span}, 12),
                ("/api/v1/labels", span, 3), ("/api/v1/label/instance/values", span, 12)):
            def count(limit):
                status, answer = self.ask(path, {**params, "limit": limit})
                self.assertEqual(status, 200, answer)
                data = answer["data"]
                return (len(data["result"] if isinstance(data, dict) else data),
                        answer.get("warnings", []))
            with self.subTest(path=path):
                self.assertEqual(count(0), (whole, []))
                self.assertEqual(count(whole), (whole, []))
                self.assertEqual(count(whole - 1), (whole - 1, ["results truncated due to limit"]))
                self.refused(path, {**params, "limit": -1}, 400, "bad_data", "limit")
                self.refused(path, {**params, "limit": "few"}, 400, "bad_data", "limit")

    def test_stats(self):
        for value in ("true", "all"):
            data = self.fabric.query("sum(temperature)", END, stats=value)
            self.assertEqual(set(data["stats"]), {"timings", "samples"}
                             | ({"fabric"} if value == "all" else set()))
            self.assertGreaterEqual(set(data["stats"]["timings"]), {
                "evalTotalTime", "resultSortTime", "queryPreparationTime", "innerEvalTime",
                "execQueueTime", "execTotalTime"})
            self.assertGreater(data["stats"]["samples"]["totalQueryableSamples"], 0)
            self.assertIn("stats", self.fabric.query_range("up", START, END, 60, stats=value))
        self.assertNotIn("stats", self.fabric.query("sum(temperature)", END))

    def test_what_is_wrong_with_a_query(self):
        good = {"start": START, "end": END, "step": 60}
        for text, message in (("up{", "parse error"), ("", "no expression found"),
                              ("foo(up)", "unknown function"), ("sum(1)", "expected type"),
                              ("rate(up)", "expected type range vector")):
            frame = 'invalid parameter "query": '
            self.refused("/api/v1/query", {"query": text}, 400, "bad_data", message)
            self.refused("/api/v1/query_range", {"query": text, **good}, 400, "bad_data", frame)
            self.refused("/api/v1/format_query", {"query": text}, 400, "bad_data", frame)
            self.refused("/api/v1/parse_query", {"query": text}, 400, "bad_data", frame)
            self.refused("/api/v1/query_exemplars", {"query": text}, 400, "bad_data", message)
        self.refused("/api/v1/query_range", {"query": '"text"', **good}, 400, "bad_data",
                     'invalid expression type "string" for range query')
        self.refused("/api/v1/query", {"query": "temperature + on (job) http_requests_total",
                                       "time": END}, 422, "execution", "found duplicate series")

    def test_match(self):
        for path in ("/api/v1/series", "/api/v1/labels", "/api/v1/label/job/values"):
            for match in ("{}", '{job=~".*"}', "up{", "sum(up)", ""):
                self.refused(path, {"match[]": match}, 400, "bad_data")

    def test_warnings_and_infos(self):
        status, answer = self.ask("/api/v1/query", {"query": "quantile(2, temperature)",
                                                    "time": END})
        self.assertEqual(status, 200)
        self.assertEqual(len(answer["warnings"]), 1)
        self.assertIn("quantile value should be between 0 and 1", answer["warnings"][0])
        self.assertNotIn("infos", answer)
        for path, more in (("/api/v1/query", {"time": END}),
                           ("/api/v1/query_range", {"start": START, "end": END, "step": 60})):
            _, answer = self.ask(path, {"query": "rate(temperature[5m])", **more})
            self.assertIn("might not be a counter", answer["infos"][0])
            self.assertNotIn("warnings", answer)

    def test_metadata_and_exemplars(self):
        for limit in ("limit", "limit_per_metric"):
            self.refused("/api/v1/metadata", {limit: "few"}, 400, "bad_data",
                         f"{limit} must be a number")
        self.assertEqual(self.fabric.data("/api/v1/metadata", {"metric": "up", "limit": 1}), {})
        self.assertEqual(self.fabric.get("/api/v1/query_exemplars", {"query": "1 + 1"})[0], 204)
        self.refused("/api/v1/query_exemplars", {"query": "up", "start": 2, "end": 1}, 400,
                     "bad_data", "end timestamp must not be before start timestamp")

    def test_what_is_not_there(self):
        for path in ("/api/v1/write", "/api/v1/admin/tsdb/snapshot",
                     "/api/v1/label/a/b/values", "/api/v2/query", "/assets/x"):
            self.assertEqual(self.fabric.get(path)[0], 404, path)
            self.assertEqual(self.fabric.request("OPTIONS", path)[0], 204, path)
        for path in ("/api/v1/label/job/values", "/api/v1/metadata", "/api/v1/rules",
                     "/api/v1/alerts", "/api/v1/status/buildinfo"):
            self.assertEqual(self.fabric.get(path)[0], 200, path)
            self.assertEqual(self.fabric.request("POST", path)[0], 405, path)


class Metadata(EndpointTest):
    def test_series(self):
        data = self.fabric.data("/api/v1/series", {"match[]": ['up', 'short_lived{job="web"}',
                                                              'up{job="api"}']})
        self.assertEqual(data, [{"__name__": "short_lived", "job": "web"},
                                {"__name__": "up", "job": "api"},
                                {"__name__": "up", "job": "web"}])

    def test_series_in_a_time_range(self):
        data = self.fabric.data("/api/v1/series", {"match[]": '{job="web",instance=""}',
                                                   "start": START + 3000, "end": END})
        self.assertEqual(data, [{"__name__": "up", "job": "web"}])
        self.assertEqual(self.fabric.data("/api/v1/series", {"match[]": "up", "start": 0,
                                                             "end": 1000}), [])

    def test_labels(self):
        self.assertEqual(self.fabric.data("/api/v1/labels"), ["__name__", "instance", "job"])
        self.assertEqual(self.fabric.data("/api/v1/labels", {"match[]": "up"}),
                         ["__name__", "job"])

    def test_label_values(self):
        self.assertEqual(self.fabric.data("/api/v1/label/__name__/values"),
                         ["http_requests_total", "short_lived", "temperature", "up"])
        self.assertEqual(self.fabric.data("/api/v1/label/job/values", {"match[]": "up"}),
                         ["api", "web"])
        self.assertEqual(self.fabric.data("/api/v1/label/absent/values"), [])
        self.assertEqual(self.fabric.data("/api/v1/label/U__job/values"), ["api", "web"])
        status, answer = self.fabric.json("/api/v1/label/job/values", {"limit": 1})
        self.assertEqual((answer["data"], answer["warnings"]),
                         (["api"], ["results truncated due to limit"]))

    def test_series_of_native_histograms(self):
        text = os.path.join(self.fabric.folder, "histograms.txt")
        histogram = "{count:3,sum:4.5,schema:0,positive_spans:[0:2],positive_buckets:[1,2]}"
        with open(text, "w") as file:
            file.write(f'h{{a="b"}} {histogram} {START * 1000} st@{START * 1000 - 500}\n'
                       f'c{{a="c"}} 5 {START * 1000} st@{START * 1000 - 500}\n')
        subprocess.run([BINARY, "import", "--quiet", "--store", self.fabric.store, "--tenant",
                        "histograms", text], check=True, capture_output=True)
        headers = {"X-Scope-OrgID": "histograms"}
        self.assertEqual(self.fabric.data("/api/v1/series", {"match[]": '{a!=""}'},
                                          headers=headers),
                         [{"__name__": "c", "a": "c"}, {"__name__": "h", "a": "b"}])
        self.assertEqual(self.fabric.data("/api/v1/label/__name__/values", headers=headers),
                         ["c", "h"])
        self.assertEqual(self.fabric.data("/api/v1/query", {"query": "c", "time": START},
                                          headers=headers)["result"],
                         [{"metric": {"__name__": "c", "a": "c"}, "value": [START, "5"]}])

    def test_what_grafana_asks_for(self):
        self.assertEqual(self.fabric.query("1+1", 4)["result"], [4, "2"])
        self.assertIn("version", self.fabric.data("/api/v1/status/buildinfo"))
        self.assertEqual(self.fabric.data("/api/v1/metadata"), {})
        self.assertEqual(self.fabric.data("/api/v1/rules"), {"groups": []})
        self.assertEqual(self.fabric.data("/api/v1/query_exemplars",
                                          {"query": "test", "start": 1, "end": 2}), [])

    def test_format_and_parse(self):
        self.assertEqual(self.fabric.data("/api/v1/format_query", {"query": "sum(  up)by(job)"}),
                         "sum by (job) (up)")
        tree = self.fabric.data("/api/v1/parse_query", {"query": "up + 1"})
        self.assertEqual((tree["type"], tree["op"]), ("binaryExpr", "+"))
        status, answer = self.fabric.json("/api/v1/format_query", {"query": "("})
        self.assertEqual((status, answer["errorType"]), (400, "bad_data"))

    def test_tenants_see_their_own_data(self):
        load(self.fabric.store, ["other 1x400"], tenant="team-b")
        headers = {"X-Scope-OrgID": "team-b"}
        self.assertEqual(self.fabric.data("/api/v1/label/__name__/values", headers=headers),
                         ["other"])
        self.assertEqual(self.fabric.query("other", END)["result"], [])
        self.assertEqual(self.fabric.json("/api/v1/labels",
                                          headers={"X-Scope-OrgID": "a/../b"})[0], 400)


class Http(EndpointTest):
    def test_health_and_operations(self):
        for path in ("/livez", "/-/healthy", "/readyz", "/-/ready"):
            self.assertEqual(self.fabric.get(path)[0], 200)
            status, _, body = self.fabric.request("HEAD", path)
            self.assertEqual((status, body), (200, b""))
        scaling = self.fabric.scaling()
        self.assertEqual(scaling["workers"], {"alive": 3, "accepting": 3, "draining": 0})
        self.assertEqual(scaling["work"], {"queued": 0, "running": 0, "inflight": 0,
                                           "oldest_age_seconds": 0})
        workers = self.fabric.data("/api/v1/workers")
        self.assertEqual([w["worker_id"] for w in workers], ["worker-0", "worker-1", "worker-2"])
        # A client has its answer a moment before the coordinator hears that it was the last of it.
        wait_for("no query", lambda: self.fabric.data("/api/v1/queries") == [], 60)
        deadline = time.monotonic() + 10  # gauges follow the streams with the next turn of the loop
        while True:
            text = self.fabric.get("/metrics")[2].decode()
            if "promfabric_api_control_streams 3" in text or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        for name in ("promfabric_api_control_streams 3", "promfabric_api_heartbeat_rtt_seconds_sum",
                     "promfabric_api_query_duration_seconds_count", "process_open_fds"):
            self.assertIn(name, text)

    def test_every_metric_of_the_specification(self):
        self.fabric.query("sum(temperature)", END)
        api = self.fabric.get("/metrics")[2].decode()
        for name in ("control_streams", "heartbeat_rtt_seconds_bucket", "control_disconnects_total",
                     "control_reconnect_seconds_bucket", "work_assignment_seconds_bucket",
                     "work_accepted_total", "work_rejected_total", "work_reassigned_total",
                     'work_affinity_total{result="', "work_queued", "work_oldest_age_seconds",
                     "artifact_ready_to_fetch_seconds_bucket", "artifact_fetch_seconds_bucket",
                     'artifact_fetch_failures_total{reason="checksum"}', "spool_bytes",
                     "query_duration_seconds_bucket", "query_first_result_seconds_bucket",
                     'queries_total{outcome="ok"}', 'queries_total{outcome="timeout"}'):
            self.assertIn(f"\npromfabric_api_{name}", api)
        connection = http.client.HTTPConnection("127.0.0.1", self.fabric.http_ports[0], timeout=20)
        connection.request("GET", "/metrics")
        worker = connection.getresponse().read().decode()
        connection.close()
        for name in ("queue_depth", "task_seconds_bucket", "download_seconds_bucket",
                     "cancel_seconds_bucket", "ready_to_fetch_seconds_bucket",
                     "fetch_seconds_bucket", 'artifact_ttl_cleanups_total{state="', "spool_bytes",
                     "cache_bytes", "disk_free_bytes", 'evictions_total{reason="',
                     "heartbeat_rtt_seconds_bucket"):
            self.assertIn(f"\npromfabric_worker_{name}", worker)

    def test_a_trace_is_followed_to_the_workers(self):
        trace = f"{time.time_ns():032x}"
        status, headers, _ = self.fabric.get(
            "/api/v1/query", {"query": "sum(temperature)", "time": END},
            headers={"traceparent": f"00-{trace}-b7ad6b7169203331-01"})
        self.assertEqual(status, 200)
        name = headers["X-Query-Id"]
        lines = [line for w in self.fabric.workers for line in w.log_text().splitlines()
                 if trace in line]
        self.assertTrue(lines)
        for line in lines:
            self.assertIn(f"query_id={name} ", line)
            self.assertIn("work_id=", line)
        self.assertTrue(any(f"query_id={name}" in line
                            for line in self.fabric.api.log_text().splitlines()))

    def test_methods_and_unknown_paths(self):
        self.assertEqual(self.fabric.get("/nothing/here")[0], 404)
        status, headers, _ = self.fabric.request("DELETE", "/api/v1/query")
        self.assertEqual((status, headers["Allow"]), (405, "GET, POST, OPTIONS"))
        self.assertEqual(self.fabric.request("BREW", "/api/v1/query")[0], 405)
        status, headers, _ = self.fabric.request("OPTIONS", "/api/v1/query",
                                                 headers={"Origin": "http://x"})
        self.assertEqual((status, headers["Access-Control-Allow-Origin"]), (204, "*"))
        self.assertEqual(self.fabric.request("DELETE", "/api/v1/queries/none")[0], 404)

    def test_hostile_input_costs_an_error_and_no_more(self):
        status = self.fabric.request(
            "POST", "/api/v1/query", body=b"query=" + b"1" * (3 << 20),
            headers={"Content-Type": "application/x-www-form-urlencoded"})[0]
        self.assertEqual(status, 413)
        status, answer = self.fabric.json("/api/v1/query", {"query": b"up\xff"})
        self.assertEqual((status, answer["errorType"]), (400, "bad_data"))
        deep = "(" * 5000 + "1" + ")" * 5000
        status, _, body = self.fabric.request(
            "POST", "/api/v1/query", body="query=" + deep,
            headers={"Content-Type": "application/x-www-form-urlencoded"})
        self.assertIn(status, (400, 422))
        self.assertEqual(self.fabric.query("1", END)["result"][1], "1")


class Events(EndpointTest):
    def test_results_in_time_order_and_one_end(self):
        status, _, events = self.fabric.events("temperature", START, START + 600, "15s")
        self.assertEqual(status, 200)
        self.assertEqual(check_one_end(events), "ok")
        results = [e["data"] for e in events if e["type"] == "result"]
        self.assertEqual(len(results), 12 * 41)
        stamps = [r["timestamp"] for r in results]
        self.assertEqual(stamps, sorted(stamps))
        first = results[0]
        self.assertEqual(first["tags"]["__name__"], "temperature")
        self.assertIn('temperature{instance="', first["label"])

    def test_get_and_defaults(self):
        status, headers, body = self.fabric.get(
            "/api/v1/metrics/query", {"q": "up", "s": "e-10m", "e": str(START + 1200)})
        self.assertEqual((status, headers["Content-Type"]), (200, "text/event-stream"))
        events = parse_events(body)
        self.assertEqual(check_one_end(events), "ok")
        self.assertEqual(len(events) - 1, 2 * 61)  # ten minutes at the default of 10 s

    def test_json_that_curl_calls_a_form(self):
        status, _, body = self.fabric.request(
            "POST", "/api/v1/metrics/query", body=json.dumps({"q": "up % 2", "s": START, "e": START}),
            headers={"Content-Type": "application/x-www-form-urlencoded"})
        self.assertEqual(status, 200)
        self.assertEqual(check_one_end(parse_events(body)), "ok")

    def test_special_values_are_strings(self):
        _, _, events = self.fabric.events("vector(1)/0", START, START, "15s")
        self.assertEqual(events[0]["data"]["value"], "+Inf")

    def test_progress(self):
        _, _, events = self.fabric.events("temperature", START, START + 60, "15s", progress=True)
        self.assertEqual(check_one_end(events), "ok")
        progress = [e["data"] for e in events if e["type"] == "progress"]
        self.assertEqual(progress[0]["work_done"], 0)
        self.assertEqual(progress[-1]["work_done"], progress[-1]["work_total"])

    def test_errors_before_the_stream_are_json(self):
        for body, code in (('{"q":"up{"}', "parse"), ("{", "bad_data"), ("{}", "bad_data"),
                           ('{"q":"up","s":"yesterday"}', "bad_data")):
            status, headers, data = self.fabric.request("POST", "/api/v1/metrics/query", body=body)
            answer = json.loads(data)
            self.assertEqual((status, answer["status"], answer["code"]), (400, "error", code), body)

    def test_a_run_time_error_is_one_error_event(self):
        status, _, events = self.fabric.events("temperature + on (job) http_requests_total",
                                               START, START + 60, "15s")
        self.assertEqual(status, 200)
        self.assertEqual(check_one_end(events), "error")
        self.assertEqual(events[-2]["data"]["code"], "execution")

    def terminal(self, *args, **environment):
        run = subprocess.run([BINARY, "query", f"--url=http://127.0.0.1:{self.fabric.api_port}", *args],
                             capture_output=True, timeout=60, env=dict(os.environ, COLUMNS="42", **environment))
        return run.returncode, run.stdout.decode().replace("\r\n", "\n"), run.stderr.decode()

    def test_the_terminal_client(self):
        self.assertEqual(self.terminal(f"--end={END}", "up"), (0, 'up{job="api"}  0\nup{job="web"}  1\n', ""))
        self.assertEqual(self.terminal(f"--end={END}", "sort_desc(up)")[1], 'up{job="web"}  1\nup{job="api"}  0\n')
        self.assertEqual(self.terminal('"a text"'), (0, "a text\n", ""))
        self.assertIn("Z  1\n", self.terminal(f"--end={END}", 'up{job="web"}[5m]')[1])
        code, out, err = self.terminal("up{")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("parse error", err)
        self.assertEqual(self.terminal("--end=bogus", "up"), (1, "", (
            'error: cannot parse "--end": "bogus" is not a time. Times are now, -30m, now-30m, 2026-01-31T12:00:00Z or Unix seconds\n')))
        self.assertIn('error: cannot parse "--start": "soon" is not a time. Times are now, -30m, now-30m, e-30m (before the end),',
                      self.terminal("--start", "soon", "up")[2])
        self.assertEqual(self.terminal("--start", "-30m", f"--end={END}", "up"), (
            1, "", "error: --start -30m is before now, but after --end; before the end is e-30m\n"))
        self.assertEqual(self.terminal("--start", "e-30m", f"--end={END}", "--csv", "1")[0], 0)
        self.assertEqual(self.terminal("--start", "-30m", "--csv", "1")[0], 0)

    def test_charts_of_the_terminal_client(self):
        asked = (f"--end={END}", "--start=e-10m", "up")
        code, out, _ = self.terminal(*asked, LC_ALL="C.UTF-8")
        self.assertEqual(code, 0)
        self.assertIn("▄" * 40 + "\n  1 .. 1, last 1\n", out)
        self.assertTrue(self.terminal(*asked, LC_ALL="C")[1].isascii())

    def test_all_digits_are_in_csv_and_json(self):
        """1e19 is an integer to JSON, larger than any of C."""
        asked = ("--start=e-1m", "--step=1m", f"--end={END}", "vector(12345678901234567168)")
        self.assertEqual([line.split(",")[1] for line in self.terminal(*asked, "--csv")[1].splitlines()],
                         ["value", "12345678901234567000", "12345678901234567000"])
        self.assertIn("last 1.235e+19", self.terminal(*asked)[1])
        self.assertIn('"value":12345678901234567000,', self.terminal(*asked, "--json")[1])
        self.assertIn(',"0.123456789"]', self.terminal("--json", "0.123456789")[1])

    def test_ctrl_c_leaves_a_clean_line(self):
        """An answer that tells how far it is, and no more."""
        said = (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
                b'data: {"type":"progress","data":{"work_done":1,"work_total":4,"workers":2}}\n\n')
        with socket.create_server(("127.0.0.1", 0)) as server:
            head, tail = pty.openpty()
            run = subprocess.Popen([BINARY, "query", f"--url=http://127.0.0.1:{server.getsockname()[1]}",
                                    "--start=e-1h", "up"], stdout=subprocess.DEVNULL, stderr=tail)
            self.addCleanup(run.wait)
            self.addCleanup(run.kill)
            os.close(tail)
            with server.accept()[0] as connection:
                connection.sendall(said)
                seen = b""
                while b"2 workers" not in seen:
                    seen += os.read(head, 65536)
                run.send_signal(signal.SIGINT)
                self.assertEqual(run.wait(60), -signal.SIGINT)
        try:
            while piece := os.read(head, 65536):
                seen += piece
        except OSError:
            pass  # the other end is closed, and all is read
        os.close(head)
        self.assertRegex(seen, rb"1 of 4 work items, 2 workers\r\x1b\[K$")

    def test_no_series_says_what_to_try(self):
        out = self.terminal(f"--end={END}", "nothing")[1]
        self.assertIn("There are samples at that time, but none that this selects", out)
        out = self.terminal("up")[1]
        self.assertRegex(out, r"The newest stored sample is of \S+Z, \S+ before the time asked for. Try --end=\S+Z\n")
        code, _, err = self.terminal(out.split()[-1], "up", "--csv")
        self.assertEqual((code, err), (0, ""))


ASKED = (
    ("/api/v1/metrics/query", {"q": "temperature", "s": START, "e": START + 300}),
    ("/api/v1/metrics/query", {"q": "temperature * on (instance) group_left "
                               "http_requests_total", "s": START, "e": START + 300}),
    ("/api/v1/metrics/query", {"q": "topk(3, http_requests_total)", "s": START,
                               "e": START + 300}),
    ("/api/v1/metrics/query", {"q": "sum by (job) (rate(temperature[5m]))",
                               "s": START, "e": START + 300}),
    ("/api/v1/query", {"query": "temperature", "time": END}),
    ("/api/v1/query", {"query": "avg(temperature) or up", "time": END}),
    ("/api/v1/query_range", {"query": "rate(http_requests_total[5m]) > 1",
                             "start": START, "end": END, "step": 60}),
    ("/api/v1/series", {"match[]": "temperature"}))


class SameBytes(EndpointTest):
    def test_answers_do_not_depend_on_the_number_of_shards(self):
        for shards in (1, 2, 8):
            load(self.fabric.store, standard_lines(), tenant=f"shards-{shards}", shards=shards)
        for path, params in ASKED:
            with self.subTest(path=path, params=params):
                answers = {self.fabric.get(path, params, headers={
                    "X-Scope-OrgID": f"shards-{shards}"})[2] for shards in (1, 2, 8)}
                self.assertEqual(len(answers), 1)


class Small(FabricTest):
    """What is small is one work item for all shards; the answer is the same."""
    workers = 3
    api_flags = ("--small-scan=1s",)

    def test_one_work_item_and_the_same_bytes(self):
        for shards in (1, 8):
            load(self.fabric.store, standard_lines(), tenant=f"shards-{shards}", shards=shards)
        for path, params in ASKED:
            with self.subTest(path=path, params=params):
                answers = {self.fabric.get(path, params, headers={
                    "X-Scope-OrgID": f"shards-{shards}"})[2] for shards in (1, 8) for _ in "ab"}
                self.assertEqual(len(answers), 1)
        body = self.fabric.get("/api/v1/metrics/query", {
            "q": "temperature", "s": START, "e": END, "progress": "true"},
            headers={"X-Scope-OrgID": "shards-8"})[2]
        first = next(e for e in parse_events(body) if e["type"] == "progress")["data"]
        self.assertGreater(first["segments"], 1)
        self.assertEqual(first["work_total"], 1)


if __name__ == "__main__":
    unittest.main()
