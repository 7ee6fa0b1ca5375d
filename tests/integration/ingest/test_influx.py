"""test_influx.py - InfluxDB's line protocol into one node."""
import gzip
import unittest

from harness import NodeTest
from messages import log_of, now_ms


class Influx(NodeTest):
    def post(self, node, lines, path="/write", **headers):
        body = lines if isinstance(lines, bytes) else lines.encode()
        return node.raw("POST", path, body=body, headers={"Content-Type": "text/plain; charset=utf-8", **{
            k.replace("_", "-"): v for k, v in headers.items()}})

    def test_lines_are_written_and_a_repetition_is_one_record(self):
        node, now = self.node().start("--bootstrap"), now_ms()
        lines = f"cpu,host=a\\ b user=1.5,n=3i,text=\"x y\" {now}000000\nmem free=7 {now}000000\n"
        for _ in range(2):
            self.assertEqual(self.post(node, lines, "/write?db=telegraf")[:2], (204, b""))
        log = log_of(node)
        self.assertEqual(log.sample_records, 1)
        self.assertEqual(log.value({"__name__": "cpu_user", "host": "a b"}, now), 1.5)
        self.assertEqual(log.value({"__name__": "cpu_n", "host": "a b"}, now), 3.0)
        self.assertEqual(log.value({"__name__": "mem_free"}, now), 7.0)
        self.assertEqual(len(log.samples), 3)
        # Another precision is another request, though the bytes are the same.
        body = f"p f=1 {now}"
        self.assertEqual(self.post(node, gzip.compress(body.encode()), "/api/v2/write?precision=ms",
                                   Content_Encoding="gzip")[0], 204)
        self.assertEqual(self.post(node, f"p f=2 {now // 1000}", "/write?precision=s", X_Scope_OrgID="t")[0], 204)
        self.assertEqual(log_of(node).value({"__name__": "p_f"}, now), 1.0)
        self.assertEqual(log_of(node).value({"__name__": "p_f"}, now // 1000 * 1000, "t"), 2.0)
        self.assertEqual(node.metric('promfabric_ingest_write_requests_total{protocol="influx"}'), 4)

    def test_what_cannot_be_read_is_400_and_the_rest_is_written(self):
        node, now = self.node().start("--bootstrap"), now_ms()
        status, why, _ = self.post(node, f"good f=1 {now}\nbad f=x {now}\n", "/write?precision=ms")
        self.assertEqual(status, 400)
        self.assertIn(b"line 2: the value of a field is no number", why)
        self.assertEqual(log_of(node).value({"__name__": "good_f"}, now), 1.0)
        self.assertEqual(self.post(node, "m f=1", "/write?precision=d")[0], 400)
        self.assertEqual(self.post(node, "m f=1", Content_Encoding="zstd")[0], 415)
        self.assertEqual(self.post(node, "")[0], 204)
        # Fields times tags: more memory than its bytes allow.
        line = "m" + "".join(f",t{i}=v" for i in range(200)) + " " + ",".join(f"f{i}=1" for i in range(20000))
        self.assertEqual(self.post(node, line)[0], 413)

    def test_samples_without_a_time_are_two_when_they_are_sent_twice(self):
        node = self.node().start("--bootstrap")
        for _ in range(2):
            self.assertEqual(self.post(node, "m f=1")[0], 204)
        self.assertEqual(log_of(node).sample_records, 2)


if __name__ == "__main__":
    unittest.main()
