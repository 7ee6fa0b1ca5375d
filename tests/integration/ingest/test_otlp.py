"""test_otlp.py - OpenTelemetry's protocol for metrics: a real node, requests made by hand in protobuf and
JSON, and what its log has of them."""
import gzip
import json
import random
import shutil
import struct
import tempfile
import unittest

from harness import Node
from messages import STALE_BITS, double, field, log_of, now_ms, number

PATH, PROTOBUF, JSON = "/api/v1/otlp/v1/metrics", "application/x-protobuf", "application/json"
node = None


def setUpModule():
    global node, folder
    folder = tempfile.mkdtemp(prefix="promfabric-otlp-")
    node = Node(folder, args=["--request-bytes", "1MiB", "--http-body-bytes", "2MiB",
                              "--tenant-series", "10000"]).start("--bootstrap")


def tearDownModule():
    node.kill()
    shutil.rmtree(folder, True)


def fixed(n, value):
    return double(n, struct.pack("<Q", value & (1 << 64) - 1))


def pairs(n, attributes):
    return b"".join(field(n, field(1, k.encode()) + field(2, field(1, v.encode())))
                    for k, v in attributes.items())


def message(metrics, resource=()):
    """An ExportMetricsServiceRequest of one resource and scope."""
    scope = field(2, field(1, field(1, b"scope") + field(2, b"1.0"))
                  + b"".join(field(2, m) for m in metrics))
    return field(1, field(1, pairs(1, dict(resource))) + scope)


def gauge(name, ts, value, unit="", attributes=()):
    point = fixed(3, ts * 10**6) + double(4, value) + pairs(7, dict(attributes))
    return field(1, name.encode()) + field(3, unit.encode()) + field(5, field(1, point))


def counter(name, ts, value, temporality=2, monotonic=1):
    point = fixed(2, (ts - 1000) * 10**6) + fixed(3, ts * 10**6) + fixed(6, value)
    return (field(1, name.encode())
            + field(7, field(1, point) + number(2, temporality) + number(3, monotonic)))


class Otlp(unittest.TestCase):
    def setUp(self):
        self.now, self.name = now_ms(), f"m{random.getrandbits(60):x}"

    def post(self, body, kind=PROTOBUF, path=PATH, **headers):
        if kind == JSON and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        return node.raw("POST", path, body=body, headers={"Content-Type": kind, **{
            k.replace("_", "-"): v for k, v in headers.items()}})

    def stored(self, tenant="default"):
        """Labels without the name, by name without this test's; the value at its time."""
        log, found = log_of(node), {}
        for (of, labels, ts) in log.samples:
            labels = dict(labels)
            name = labels.pop("__name__")
            if of == tenant and self.name in name + labels.get("job", ""):
                found[name.replace(self.name, "M"), tuple(sorted(labels.items())), ts - self.now] = \
                    log.value(tuple(sorted({**labels, "__name__": name}.items())), ts, tenant)
        return found

    def check_written(self, answer, kind=PROTOBUF):
        self.assertEqual((answer[0], answer[1]), (200, b"" if kind == PROTOBUF else b"{}"))
        self.assertEqual(answer[2]["Content-Type"], kind)

    def test_protobuf_is_translated_and_written(self):
        resource = {"service.name": self.name, "service.namespace": "ns", "service.instance.id": "i",
                    "host.name": "h"}
        self.check_written(self.post(message(
            [gauge(self.name, self.now, 1.5, "By", {"a.b": "x"}), counter(self.name, self.now, 7)], resource)))
        target = (("instance", "i"), ("job", f"ns/{self.name}"))
        self.assertEqual(self.stored(), {
            ("M_bytes", (("a_b", "x"), *target), 0): 1.5, ("M_total", target, 0): 7.0,
            ("target_info", (("host_name", "h"), *target), 0): 1.0})
        log = log_of(node)
        self.assertEqual([start for (_, labels, _), start in log.starts.items()
                          if ("__name__", self.name + "_total") in labels], [self.now - 1000])

    def request(self, *metrics):
        return {"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]}

    def point(self, **more):
        return {"timeUnixNano": str(self.now * 10**6), **more}

    def test_json_of_all_kinds(self):
        body = self.request(
            {"name": self.name + ".g", "gauge": {"dataPoints": [self.point(asInt="-3", later={"x": [1]})]}},
            {"name": self.name + ".h", "histogram": {"aggregationTemporality": 2, "dataPoints": [self.point(
                count="3", sum=2.5, bucketCounts=["1", "2"], explicitBounds=[0.5])]}},
            {"name": self.name + ".s", "summary": {"dataPoints": [self.point(
                count=2, sum=3, quantileValues=[{"quantile": 0.5, "value": 1}])]}},
            {"name": self.name + ".e", "exponentialHistogram": {"aggregationTemporality": 2, "dataPoints": [
                self.point(count="3", sum=4, scale=0, positive={"offset": 0, "bucketCounts": ["1", "2"]})]}},
            {"name": self.name + ".none", "gauge": {"dataPoints": [self.point(flags=1)]}})
        self.check_written(self.post(body, JSON), JSON)
        found = self.stored()
        self.assertIsInstance(found.pop(("M_e", (), 0)), bytes)
        self.assertEqual(struct.pack("<d", found.pop(("M_none", (), 0))), struct.pack("<Q", STALE_BITS))
        self.assertEqual(found, {
            ("M_g", (), 0): -3.0, ("M_h_bucket", (("le", "0.5"),), 0): 1.0,
            ("M_h_bucket", (("le", "+Inf"),), 0): 3.0, ("M_h_sum", (), 0): 2.5, ("M_h_count", (), 0): 3.0,
            ("M_s", (("quantile", "0.5"),), 0): 1.0, ("M_s_sum", (), 0): 3.0, ("M_s_count", (), 0): 2.0})

    def test_both_codings_of_one_request_are_the_same_samples(self):
        attributes = {"k.1": "v", "ä": "ö"}
        self.check_written(self.post(message([gauge(self.name, self.now, 2.0, "s", attributes)])))
        first = self.stored()
        self.check_written(self.post(self.request({"name": self.name, "unit": "s", "gauge": {"dataPoints": [
            self.point(asDouble=2, attributes=[{"key": k, "value": {"stringValue": v}}
                                               for k, v in attributes.items()])]}}), JSON), JSON)
        self.assertEqual(self.stored(), first)
        self.assertEqual(list(first), [("M_seconds", (("k_1", "v"), ("key_", "ö")), 0)])

    def test_gzip_and_the_shorter_path(self):
        body = message([gauge(self.name, self.now, 1.0)])
        self.check_written(self.post(gzip.compress(body), path="/v1/metrics", Content_Encoding="gzip"))
        self.assertEqual(self.stored(), {("M", (), 0): 1.0})

    def test_tenants_are_apart(self):
        self.check_written(self.post(message([gauge(self.name, self.now, 1.0)]), X_Scope_OrgID="other"))
        self.assertEqual((self.stored(), self.stored("other")), ({}, {("M", (), 0): 1.0}))

    def test_a_request_that_is_sent_again_is_one_record(self):
        body = message([gauge(self.name, self.now, 1.0)])
        before = log_of(node).sample_records
        for _ in range(3):
            self.check_written(self.post(body))
        self.assertEqual(log_of(node).sample_records, before + 1)

    def test_delta_temporality_is_refused_by_name_and_the_rest_written(self):
        body = message([counter(self.name + ".since", self.now, 1, temporality=1),
                        gauge(self.name, self.now, 1.0)])
        status, answer, headers = self.post(body)
        self.assertEqual((status, headers["Content-Type"]), (200, PROTOBUF))
        self.assertEqual(answer[:4], field(1, number(1, 1) + b"\0" * (answer[1] - 2))[:4])
        self.assertIn(f"delta temporality".encode(), answer)
        self.assertIn(f"{self.name}.since".encode(), answer)
        status, answer, headers = self.post(self.request({"name": self.name + ".d", "sum": {
            "aggregationTemporality": 1, "dataPoints": [self.point(asInt=1), self.point(asInt=2)]}}), JSON)
        answer = json.loads(answer)["partialSuccess"]
        self.assertEqual((status, answer["rejectedDataPoints"]), (200, "2"))
        self.assertIn(self.name + ".d", answer["errorMessage"])
        self.assertEqual(self.stored(), {("M", (), 0): 1.0})

    def test_what_the_leader_refuses_is_a_partial_success(self):
        status, answer, _ = self.post(self.request({"name": self.name, "gauge": {"dataPoints": [
            {"timeUnixNano": "1000000", "asInt": 1}, self.point(asInt=2)]}}), JSON)
        self.assertEqual((status, json.loads(answer)["partialSuccess"]["rejectedDataPoints"]), (200, "1"))
        self.assertEqual(self.stored(), {("M", (), 0): 2.0})

    def test_limits_are_429_in_the_coding_of_the_request(self):
        points = [self.point(asInt=i, attributes=[{"key": "i", "value": {"intValue": i}}])
                  for i in range(200)]
        for part in range(60):
            status, answer, headers = self.post(self.request({"name": f"{self.name}_{part}", "gauge": {
                "dataPoints": points}}), JSON, X_Scope_OrgID="many")
            if status != 200:
                break
        self.assertEqual((status, headers["Retry-After"], json.loads(answer)["code"]), (429, "1", 8))

    def test_exemplars_and_ids(self):
        status, answer, _ = self.post(self.request({"name": self.name, "sum": {
            "aggregationTemporality": 2, "isMonotonic": True, "dataPoints": [self.point(asInt=1, exemplars=[
                self.point(asDouble=0.5, traceId="5B8EFFF798038103D269B633813FC60C", spanId="eee19b7ec3c1b174")])]}}),
            JSON)
        self.assertEqual((status, answer), (200, b"{}"))
        self.assertTrue(any(b"5b8efff798038103d269b633813fc60c" in extra for extra in log_of(node).extras))

    def test_an_empty_request_is_fine(self):
        self.check_written(self.post(b""))
        self.check_written(self.post({}, JSON), JSON)

    def refused(self, answer, status, kind=None):
        self.assertEqual(answer[0], status, answer[1])
        if kind:
            self.assertEqual(answer[2]["Content-Type"], kind)
        self.assertIsNone(node.process.poll())

    def test_other_types_encodings_and_methods(self):
        self.refused(self.post(b"", "text/plain"), 415)
        self.refused(self.post(b"", Content_Encoding="snappy"), 415)
        self.assertEqual(node.raw("GET", PATH)[0], 405)

    def test_bodies_that_are_none_are_400_with_a_status(self):
        self.refused(self.post(b"\x0a\xff\xff\xff\xff\x0f"), 400, PROTOBUF)
        answer = self.post(b"{bad", JSON)
        self.refused(answer, 400, JSON)
        self.assertEqual(json.loads(answer[1])["code"], 3)
        self.assertIn("byte 1", json.loads(answer[1])["message"])
        self.refused(self.post(b"no gzip", Content_Encoding="gzip"), 400, PROTOBUF)

    def test_sizes_are_bounded(self):
        self.refused(self.post(gzip.compress(b"\0" * (2 << 20)), Content_Encoding="gzip"), 413, PROTOBUF)
        self.refused(self.post(b"{\"resourceMetrics\":[" + b"{}," * 340000 + b"{}]}", JSON), 413, JSON)
        # Many labels times many buckets: a small body that would be large as series.
        bounds = struct.pack("<6000d", *range(6000))
        attributes = b"".join(field(9, field(1, b"k%d" % i) + field(2, field(1, b"v"))) for i in range(250))
        point = attributes + fixed(3, self.now * 10**6) + field(7, bounds) + field(6, b"\0" * 8 * 6001)
        body = message([field(1, self.name.encode()) + field(9, field(1, point) + number(2, 2))])
        answer = self.post(body)
        self.assertIn(answer[0], (200, 413))
        self.assertEqual(self.stored(), {})
        deep = b"{\"a\":" + b"[" * 100000
        self.refused(self.post(deep, JSON), 400, JSON)

    def test_random_damage(self):
        rng = random.Random(7)
        good = message([gauge(self.name, self.now, 1.0, "s", {"a": "b"}), counter(self.name, self.now, 1)],
                       {"service.name": "s", "x": "y"})
        text = json.dumps(self.request({"name": self.name, "gauge": {"dataPoints": [self.point(asInt=1)]}})).encode()
        for _ in range(300):
            for body, kind in ((bytearray(good), PROTOBUF), (bytearray(text), JSON)):
                for _ in range(rng.randint(1, 4)):
                    body[rng.randrange(len(body))] = rng.randrange(256)
                self.assertIn(self.post(bytes(body), kind)[0], (200, 400))
        self.assertIsNone(node.process.poll())

    def test_it_is_counted_by_protocol(self):
        metric = 'promfabric_ingest_write_requests_total{protocol="%s"}'
        before = [node.metric(metric % p) for p in ("otlp", "otlp_json")]
        self.post(b"")
        self.post({}, JSON)
        self.assertEqual([node.metric(metric % p) for p in ("otlp", "otlp_json")], [n + 1 for n in before])


if __name__ == "__main__":
    unittest.main()
