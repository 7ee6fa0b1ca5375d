"""test_write_protocol.py - what the specification of remote write asks of a receiver, and what hostile
senders get.

One node for all of it: nothing that one request does may matter to the next."""
import gzip
import random
import shutil
import socket
import struct
import tempfile
import unittest

from harness import Node
from messages import (STALE_BITS, TYPE_1, TYPE_2, Series, double, field, histogram, log_of, now_ms,
                      number, snappy, text, varint, version_1, version_2, write, write_series,
                      zstd, zstd_bomb)

SAMPLES, HISTOGRAMS, EXEMPLARS = (f"X-Prometheus-Remote-Write-{kind}-Written"
                                  for kind in ("Samples", "Histograms", "Exemplars"))
node = None


def setUpModule():
    global node, folder
    folder = tempfile.mkdtemp(prefix="promfabric-protocol-")
    node = Node(folder, args=["--request-bytes", "1MiB", "--http-body-bytes", "2MiB"]).start("--bootstrap")


def tearDownModule():
    node.kill()
    shutil.rmtree(folder, True)


class Protocol(unittest.TestCase):
    def setUp(self):
        self.now = now_ms()
        self.name = f"m{random.getrandbits(60):x}"

    def labels(self, **more):
        return {"__name__": self.name, **more}

    def sample(self, offset=0, value=1.0):
        return [(self.now + offset, value)]

    def stored(self, **labels):
        """Times and values of a series that begins with this test's name."""
        wanted = tuple(sorted(self.labels(**labels).items()))
        log = log_of(node)
        return {ts: log.value(found, ts) for (_, found, ts) in log.samples if found == wanted}

    def refused(self, answer, *texts, status=400):
        self.assertEqual(answer[0], status, answer[1])
        for part in texts:
            self.assertIn(part, answer[1].decode())
        node.process.poll()
        self.assertIsNone(node.process.returncode)


class Negotiation(Protocol):
    def test_a_type_without_a_message_is_version_1(self):
        body = version_1([Series(self.labels(), self.sample())])
        for i, content in enumerate((TYPE_1, TYPE_1 + ";proto=prometheus.WriteRequest",
                                     "Application/X-Protobuf ; proto=\"prometheus.WriteRequest\"")):
            status, why, headers = write(node, body, headers={"Content-Type": content})
            self.assertEqual(status, 204, why)
            self.assertIsNone(headers[SAMPLES])
        self.assertEqual(len(self.stored()), 1)

    def test_version_2_answers_with_counts(self):
        status, why, headers = write_series(
            node, Series(self.labels(a="1"), self.sample(), exemplars=[([("trace_id", "7")], 1.0, self.now)]),
            Series(self.labels(a="2"), histograms=[histogram(self.now)]), version=2)
        self.assertEqual((status, why), (204, b""))
        self.assertEqual((headers[SAMPLES], headers[HISTOGRAMS], headers[EXEMPLARS]), ("1", "1", "1"))

    def test_an_empty_request_is_fine(self):
        self.assertEqual(write(node, b"")[0], 204)
        status, _, headers = write(node, b"", 2)
        self.assertEqual((status, headers[SAMPLES]), (204, "0"))

    def test_types_and_encodings_that_are_not_spoken_are_415(self):
        body = version_1([Series(self.labels(), self.sample())])
        for headers in ({"Content-Type": "application/json"}, {"Content-Type": None},
                        {"Content-Type": "application/x-protobuf;proto=io.prometheus.write.v3.Request"},
                        {"Content-Encoding": "br"}, {"Content-Encoding": "gzip"},
                        {"Content-Encoding": None}):
            self.refused(write(node, body, headers=headers), "expected", status=415)
        self.refused(write(node, body, 2, headers={"Content-Encoding": "zstd"}), "expected", status=415)
        self.assertEqual(self.stored(), {})

    def test_the_type_says_which_message_it_is_and_the_version_header_does_not(self):
        series = [Series(self.labels(), self.sample())]
        for version, body, header in ((1, version_1(series), "2.0.0"), (2, version_2(series), "0.1.0"),
                                      (2, version_2(series), "2.7.0"), (1, version_1(series), None)):
            status, why, _ = write(node, body, version, headers={"X-Prometheus-Remote-Write-Version": header})
            self.assertEqual(status, 204, why)
        self.assertEqual(self.stored(), {self.now: 1.0})

    def test_fields_of_later_minor_versions_are_passed_over(self):
        later = number(99, 7) + field(100, b"later") + double(101, 1.0)
        sample = field(2, double(1, 1.0) + number(2, self.now) + later)
        labels = b"".join(field(1, field(1, n) + field(2, v) + later)
                          for n, v in ((b"__name__", self.name.encode()), (b"v", b"1")))
        self.assertEqual(write(node, field(1, labels + sample + later) + later)[0], 204)
        symbols = b"".join(field(4, s) for s in (b"", b"__name__", self.name.encode(), b"v", b"2"))
        status, why, headers = write(node, symbols + field(5, field(1, bytes([1, 2, 3, 4])) + sample + later) + later, 2)
        self.assertEqual((status, headers[SAMPLES]), (204, "1"), why)
        self.assertEqual((self.stored(v="1"), self.stored(v="2")), ({self.now: 1.0}, {self.now: 1.0}))

    def zstd(self, frame):
        return write(node, frame, headers={"Content-Encoding": "zstd"}, compressed=False)

    def test_zstd_as_vmagent_sends_it(self):
        body = version_1([Series(self.labels(pad="p" * 7000, n=str(i)), self.sample()) for i in range(40)])
        for frame in (zstd(body), zstd(body[:100]) + zstd(b"") + zstd(body[100:])):
            status, why, _ = self.zstd(frame)
            self.assertEqual(status, 204, why)
        self.assertEqual(len(self.stored(pad="p" * 7000, n="39")), 1)

    def test_zstd_that_lies(self):
        body = version_1([Series(self.labels(), self.sample())])
        whole = zstd(body)
        for cut in range(1, len(whole)):
            self.refused(self.zstd(whole[:cut]), "zstd")
        self.refused(self.zstd(b""), "ends within its zstd frame")
        self.refused(self.zstd(whole + b"more"), "not zstd")
        self.refused(self.zstd(zstd(body, len(body) + 1)), "not zstd")
        self.refused(self.zstd(zstd(body, 3)), "not zstd")
        self.refused(self.zstd(zstd(body, 0xfffffff0)), "too long", status=413)
        self.refused(self.zstd(zstd_bomb(64 << 20)), "1048576 bytes", status=413)
        self.refused(self.zstd(zstd_bomb(1 << 20, window=0xa8)), "not zstd")  # 2 GiB to look back
        self.assertEqual(self.stored(), {})

    def test_other_methods_are_405(self):
        status, _, headers = node.raw("GET", "/api/v1/write")
        self.assertEqual(status, 405)
        self.assertIn("POST", headers["Allow"])


class Meaning(Protocol):
    def test_labels_may_come_unsorted_and_empty_ones_are_none(self):
        labels = [("z", "1"), ("__name__", self.name), ("e", ""), ("a", "2")]
        self.assertEqual(write_series(node, Series(labels, self.sample()))[0], 204)
        self.assertEqual(len(self.stored(z="1", a="2")), 1)

    def test_names_may_be_any_utf_8(self):
        self.assertEqual(write_series(node, Series(self.labels(**{"völlig.egal": "ö \n \" x"}),
                                                   self.sample()), version=2)[0], 204)
        self.assertEqual(len(self.stored(**{"völlig.egal": "ö \n \" x"})), 1)

    def test_all_values_keep_their_bits(self):
        bits = [STALE_BITS, 0x7FF8000000000001, 0x7FF8000000000123, 0xFFF0000000000000, 0x8000000000000000, 1]
        samples = [(self.now + i, struct.pack("<Q", b)) for i, b in enumerate(bits)]
        self.assertEqual(write_series(node, Series(self.labels(), samples))[0], 204)
        log = log_of(node)
        key = ("default", (("__name__", self.name),))
        self.assertEqual([log.samples[(*key, ts)] for ts, _ in samples], [v for _, v in samples])

    def test_a_histogram_may_be_stale(self):
        stale = number(1, 0) + double(3, struct.pack("<Q", STALE_BITS)) + number(4, 0) + number(15, self.now)
        self.assertEqual(write_series(node, Series(self.labels(), histograms=[stale]), version=2)[0], 204)

    def test_out_of_order_samples_are_written(self):
        for offset in (0, -60_000, -30_000):
            self.assertEqual(write_series(node, Series(self.labels(), self.sample(offset)))[0], 204)
        self.assertEqual(len(self.stored()), 3)

    def test_the_same_value_again_is_fine_and_another_one_is_not(self):
        self.assertEqual(write_series(node, Series(self.labels(), self.sample()))[0], 204)
        self.assertEqual(write_series(node, Series(self.labels(), self.sample()), version=2)[0], 204)
        self.refused(write_series(node, Series(self.labels(), self.sample(value=2.0))),
                     "duplicate sample for timestamp", self.name)
        self.assertEqual(self.stored(), {self.now: 1.0})

    def test_metadata_alone_are_fine(self):
        self.assertEqual(write(node, version_1([], [(1, self.name, "What it is.", "s")]))[0], 204)
        self.assertTrue(any(self.name.encode() in extra for extra in log_of(node).extras))

    def test_start_times_of_both_kinds(self):
        series = Series(self.labels(), self.sample(), start=self.now - 100)
        self.assertEqual(write_series(node, series, version=2)[0], 204)
        old = field(1, varint(1) + varint(2)) + field(2, double(1, 1.0) + number(2, self.now)) \
            + number(6, self.now - 50)
        body = b"".join(field(4, s) for s in (b"", b"__name__", self.name.encode() + b"_old")) + field(5, old)
        self.assertEqual(write(node, body, 2)[0], 204)
        starts = log_of(node).starts
        self.assertEqual(starts["default", (("__name__", self.name),), self.now], self.now - 100)
        self.assertEqual(starts["default", (("__name__", self.name + "_old"),), self.now], self.now - 50)


    def test_a_start_time_of_0_is_none(self):
        sample = field(2, double(1, 1.0) + number(2, self.now) + number(3, 0))
        body = b"".join(field(4, s) for s in (b"", b"__name__", self.name.encode())) \
            + field(5, field(1, varint(1) + varint(2)) + sample + number(6, 0))
        self.assertEqual(write(node, body, 2)[0], 204)
        self.assertEqual(self.stored(), {self.now: 1.0})
        self.assertNotIn(("default", (("__name__", self.name),), self.now), log_of(node).starts)


class Partial(Protocol):
    """Something is not valid: 400 with the first offending series, the rest is written and counted."""

    def check(self, bad, *texts, version=2, written="1"):
        good = Series(self.labels(good="yes"), self.sample())
        refused = node.metric("promfabric_ingest_samples_refused_total")
        status, why, headers = write_series(node, good, bad, version=version)
        self.assertEqual(status, 400, why)
        self.assertEqual(node.metric("promfabric_ingest_samples_refused_total"), refused + 1)
        for part in texts:
            self.assertIn(part, why.decode())
        if version == 2:
            self.assertEqual(headers[SAMPLES], written)
        self.assertEqual(self.stored(good="yes"), {self.now: 1.0})

    def test_labels(self):
        for bad, why in (
                ([("__name__", self.name), ("a", "1"), ("a", "2")], "a label is there twice"),
                ([("a", "1")], "no metric name"),
                ([("__name__", ""), ("a", "1")], "no metric name"),
                ([("__name__", self.name), ("", "1")], "has no name"),
                ([("__name__", self.name), ("a", b"\xff\xfe")], "not UTF-8"),
                ([("__name__", self.name), (b"\xc3", "1")], "not UTF-8"),
                ([("__name__", self.name), ("a" * 2000, "1")], "too long"),
                ([("__name__", self.name), ("a", "x" * 9000)], "too long"),
                ([("__name__", self.name)] + [(f"l{i}", "1") for i in range(100)], "too many labels")):
            for version in (1, 2):
                with self.subTest(why=why, version=version):
                    self.name = f"m{random.getrandbits(60):x}"
                    bad = [(n, self.name if n == "__name__" and v else v) for n, v in bad]
                    self.check(Series(bad, self.sample()), why, version=version)

    def test_times(self):
        self.check(Series(self.labels(bad="1"), self.sample(3600_000)), "future", self.name)
        self.check(Series(self.labels(bad="1"), self.sample(-5 * 3600_000)), "out of order", self.name)
        for ts in (0, -1, 1, (1 << 63) - 1, -(1 << 63)):
            self.check(Series(self.labels(bad="1"), [(ts, 1.0)]), "sample", self.name)

    def test_histograms(self):
        for bad in (histogram(self.now, count=1), histogram(self.now, spans=((0, 1000),)),
                    histogram(self.now, schema=99), histogram(self.now, deltas=(1, -5)),
                    histogram(self.now, schema=-53, custom=[2.0, 1.0]),
                    histogram(self.now, spans=((0, 1 << 31),))):
            self.check(Series(self.labels(bad="1"), histograms=[bad]))
        self.assertEqual(self.stored(bad="1"), {})

    def test_symbols_that_are_not_there(self):
        symbols = [b"", b"__name__", self.name.encode(), b"good", b"yes"]
        good = field(1, bytes([1, 2, 3, 4])) + field(2, double(1, 1.0) + number(2, self.now))
        for refs in (bytes([1, 99]), bytes([1]), bytes([1, 2, 3]), varint(1) + varint(1 << 31)):
            bad = field(1, refs) + field(2, double(1, 1.0) + number(2, self.now))
            body = b"".join(field(4, s) for s in symbols) + field(5, good) + field(5, bad)
            status, why, headers = write(node, body, 2)
            self.assertEqual((status, headers[SAMPLES]), (400, "1"), why)
        self.assertEqual(self.stored(good="yes"), {self.now: 1.0})

    def test_exemplars(self):
        good = Series(self.labels(good="yes"), self.sample(),
                      exemplars=[([("trace_id", "x" * 200)], 1.0, self.now),
                                 ([("trace_id", "7")], 1.0, self.now)])
        status, why, headers = write_series(node, good, version=2)
        self.assertEqual((status, headers[SAMPLES], headers[EXEMPLARS]), (400, "1", "1"), why)
        self.assertEqual(self.stored(good="yes"), {self.now: 1.0})

    def test_a_request_with_nothing_valid_writes_nothing(self):
        before = log_of(node).sample_records
        self.refused(write_series(node, Series([("a", "1")], self.sample())), "no metric name")
        self.refused(write_series(node, Series(self.labels(), self.sample(3600_000))), "future")
        self.assertEqual(log_of(node).sample_records, before)


class Hostile(Protocol):
    """Nothing of a request that is no message is written, and the node lives on."""

    def test_snappy_that_lies(self):
        body = version_1([Series(self.labels(), self.sample())])
        good = snappy(body)
        framed = b"\xff\x06\x00\x00sNaPpY\x01" + struct.pack("<I", len(body) + 4)[:3] + b"\0\0\0\0" + body
        for bad in (framed, b"", b"\xff", b"not snappy at all", good[:-1], good[:3], good + b"x",
                    varint(len(body) - 1) + good[len(varint(len(body))):],
                    varint(len(body) + 1) + good[len(varint(len(body))):],
                    varint((1 << 32) - 1) + good[1:], b"\xff" * 11,
                    varint(1000) + b"\xfe\xff\xff"):
            with self.subTest(bad=bad[:20]):
                answer = write(node, bad, compressed=False)
                self.assertIn(answer[0], (400, 413), answer[1])
        self.assertEqual(self.stored(), {})

    def test_sizes_are_bounded(self):
        self.refused(write(node, b"\0" * ((1 << 20) + 1)), "split the request", status=413)
        bomb = varint(1 << 20) + b"\0a" + b"\xfe\x01\x00" * 16384  # 64 bytes out of 3
        self.refused(write(node, bomb, compressed=False), status=400)
        self.refused(write(node, field(1, b"") * (500 << 10)), "no metric name")
        self.refused(text(node, gzip.compress(b"a 1\n" * (1 << 19)), {"Content-Encoding": "gzip"}),
                     status=413)
        self.refused(node.raw("POST", "/api/v1/write", body=b"x" * (3 << 20), headers={
            "Content-Type": TYPE_1, "Content-Encoding": "snappy"}), status=413)

    def peak_mib(self):
        """The most memory that the node ever had."""
        with open(f"/proc/{node.process.pid}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:")) >> 10

    def test_labels_that_many_series_refer_to_are_not_spelled_out_without_bound(self):
        """A hundred kilobytes whose labels, written out for each series, are 600 MiB."""
        value = "v" * 8000
        labels = {"__name__": self.name, **{f"label_{i}": value for i in range(60)}}
        body = version_2([Series(labels, self.sample(i)) for i in range(1300)])
        self.assertLess(len(body), 300 << 10)
        before = self.peak_mib()
        self.refused(write(node, body, 2), "labels of all series together are too long", status=413)
        self.assertLess(self.peak_mib() - before, 200)
        # Of OTLP: every bucket has all labels of its point.
        before = self.peak_mib()
        attributes = b"".join(field(9, field(1, f"label_{i}".encode()) + field(2, field(1, value.encode()))) for i in range(60))
        bounds = struct.pack("<1300d", *range(1300))
        counts = struct.pack("<1301Q", *[1] * 1301)
        point = (attributes + varint(3 << 3 | 1) + struct.pack("<Q", self.now * 1000000)
                 + varint(4 << 3 | 1) + struct.pack("<Q", 1301) + field(6, counts) + field(7, bounds))
        metric = field(1, self.name.encode()) + field(9, field(1, point) + number(2, 2))
        body = field(1, field(2, field(2, metric)))
        self.assertLess(len(body), 600 << 10)
        answer = node.raw("POST", "/api/v1/otlp/v1/metrics", body=body, headers={"Content-Type": TYPE_1})
        self.refused(answer, "labels of all series together are too long", status=413)
        self.assertLess(self.peak_mib() - before, 200)
        self.assertEqual(self.stored(), {})
        self.assertEqual(write(node, version_1([Series(self.labels(), self.sample())]))[0], 204)

    def test_messages_that_are_none(self):
        body = version_1([Series(self.labels(), self.sample())])
        for bad in (b"\x0a", b"\x0a\xff\xff\xff\xff\x0f", body[:-1], b"\x0b", b"\x08\x01", b"\x0a\x01\x0a",
                    b"\xff" * 30, number(1, 5), field(1, number(2, 7)), field(1, field(2, b"\x09\x01"))):
            with self.subTest(bad=bad[:20]):
                self.refused(write(node, bad), "no remote write 1.0 message")
        self.refused(write(node, field(5, field(2, b"\x09")), 2), "no remote write 2.0 message")
        self.assertEqual(self.stored(), {})

    def test_random_damage(self):
        prng = random.Random(7)
        series = [Series(self.labels(i=str(i)), self.sample(), [histogram(self.now)],
                         [([("trace_id", "1")], 1.0, self.now)], (1, "help", "s")) for i in range(3)]
        bodies = {1: version_1(series), 2: version_2(series)}
        for i in range(300):
            version = 1 + i % 2
            body = bytearray(bodies[version])
            for _ in range(prng.randrange(1, 4)):
                body[prng.randrange(len(body))] = prng.randrange(256)
            status = write(node, bytes(body), version)[0]
            self.assertIn(status, (204, 400, 413))
        self.assertEqual(write(node, version_1([Series(self.labels(), self.sample())]))[0], 204)

    def test_text_that_is_none(self):
        for bad in ("{", "a", "a b", "a{b} 1", 'a{b="c} 1', "a 1 2 3", "1a 1", "a 1 99999999999999999999",
                    'a{b="\\', "a NaNa", "\0 1", 'a{b="c",b="d"} 1', "# HELP", "a {count:1} 5"):
            with self.subTest(bad=bad):
                status, why, _ = text(node, f"{self.name} 1 {self.now}\n{bad}\n")
                self.assertIn(status, (204, 400))
                if status == 400:
                    self.assertIn(b"line 2", why)
        self.assertEqual(self.stored(), {self.now: 1.0})

    def test_gzip_that_is_none(self):
        whole = gzip.compress(b"a 1\n")
        for bad in (b"", b"x", whole[:-1], whole[:12], whole + b"x", b"\x1f\x8b"):
            self.refused(text(node, bad, {"Content-Encoding": "gzip"}))
        self.refused(text(node, "a 1\n", {"Content-Encoding": "br"}), status=415)

    def test_keys_that_are_too_long(self):
        body = version_1([Series(self.labels(), self.sample())])
        self.refused(write(node, body, headers={"Idempotency-Key": "k" * 300}))
        self.assertEqual(self.stored(), {})

    def test_tenants_that_are_none(self):
        body = version_1([Series(self.labels(), self.sample())])
        self.refused(write(node, body, headers={"X-Scope-OrgID": "../x"}))

    def test_clients_that_go_away(self):
        body = snappy(version_1([Series(self.labels(), self.sample())]))
        head = (f"POST /api/v1/write HTTP/1.1\r\nHost: x\r\nContent-Type: {TYPE_1}\r\n"
                f"Content-Encoding: snappy\r\nContent-Length: {len(body)}\r\n\r\n").encode()
        for piece in (head[:20], head, head + body[:5], head + body):
            with socket.create_connection(("127.0.0.1", node.port)) as connection:
                connection.sendall(piece)
        self.assertEqual(write(node, version_1([Series(self.labels(z="1"), self.sample())]))[0], 204)


if __name__ == "__main__":
    unittest.main()
