"""test_events.py - event streams: times in order, and exactly one end under every outcome."""
import pathlib
import signal
import socket
import struct
import threading
import time
import unittest

from harness import (LONG, START, Fabric, check_one_end, load, parse_events, standard_lines,
                     wait_for, without_comments)

END = START + 3600
# Keeps a worker busy for minutes, and the API not at all.


def chunks(raw):
    """The body of a chunked answer, and whether it is whole."""
    at = raw.index(b"\r\n\r\n") + 4
    assert b"chunked" in raw[:at].lower(), raw[:at]
    pieces = []
    while at < len(raw):
        end = raw.index(b"\r\n", at)
        count = int(raw[at:end], 16)
        if count == 0:
            return b"".join(pieces), True
        pieces.append(raw[end + 2:end + 2 + count])
        at = end + 2 + count + 2
    return b"".join(pieces), False


class Outcomes(unittest.TestCase):
    def fabric(self, api=(), worker=(), start_workers=True, lines=None, shards=4):
        fabric = Fabric(1, api, worker, start_workers)
        self.addCleanup(fabric.close)
        load(fabric.store, lines or standard_lines(), shards=shards)
        if start_workers:
            fabric.wait_workers(1)
        return fabric

    def connect(self, fabric, query, start, end, step, receive_buffer=None):
        client = socket.socket()
        self.addCleanup(client.close)
        if receive_buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.settimeout(60)
        client.connect(("127.0.0.1", fabric.api_port))
        client.sendall(f"GET /api/v1/metrics/query?q={query}&s={start}&e={end}&step={step} "
                       "HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        return client

    def read(self, client):
        pieces = []
        while piece := client.recv(1 << 16):
            pieces.append(piece)
        return b"".join(pieces)

    def expect(self, events, status, code=None, text=""):
        self.assertEqual(check_one_end(events), status, events[-2:])
        stamps = [e["data"]["timestamp"] for e in events if e["type"] == "result"]
        self.assertEqual(stamps, sorted(stamps))
        if code:
            self.assertEqual(events[-2]["data"]["code"], code, events[-2])
            self.assertIn(text, events[-2]["data"]["message"])

    def test_limits(self):
        for flag, text in (("--query-memory=120KiB", "memory"), ("--query-samples=100", "samples"),
                           ("--query-series=5", "series"),
                           ("--query-artifact-bytes=1000B", "artifact")):
            with self.subTest(flag=flag):
                fabric = self.fabric((flag,))
                status, _, events = fabric.events("temperature", START, END, "5s")
                self.assertEqual(status, 200)
                self.expect(events, "error", "limit", text)
                fabric.close()

    def test_an_error_after_results(self):
        """Series that cannot be told apart appear half an hour into the answer."""
        fabric = self.fabric(lines=["left{a=\"1\"} 1x240", "right{b=\"1\"} 1x240",
                                    "right{b=\"2\"} _x120 1x120"])
        status, _, events = fabric.events("left + on () right", START, END, "15s")
        self.assertEqual(status, 200)
        self.expect(events, "error", "execution", "found duplicate series")
        self.assertGreater(len(events), 20)  # what came before it was sent

    def test_no_worker(self):
        fabric = self.fabric(("--worker-wait=3s", "--sse-keepalive=300ms"), start_workers=False)
        status, raw, events = fabric.events("up", START, END, "15s")
        self.assertEqual(status, 200)
        self.expect(events, "error", "unavailable", "no worker")
        self.assertGreaterEqual(raw.count(b": keep-alive\n\n"), 2)

    def test_worker_killed_for_good(self):
        fabric = self.fabric(("--worker-wait=1s",), ("--work-samples-max=1000000000000",))
        got = self.ask(fabric, LONG, START, START + 10000, "1s")
        wait_for("work", lambda: fabric.scaling()["work"]["running"] > 0)
        fabric.workers[0].kill()
        wait_for("the answer", lambda: got)
        self.expect(got[0][2], "error", "unavailable", "no worker")

    def test_corrupt_segment(self):
        fabric = self.fabric(shards=1)
        path = max(pathlib.Path(fabric.store).rglob("*.parquet"), key=lambda p: p.stat().st_size)
        data = bytearray(path.read_bytes())
        for i in range(100, len(data) // 2, 50):
            data[i] ^= 0xff
        path.write_bytes(data)
        status, _, events = fabric.events("temperature", START, END, "15s")
        self.assertEqual(status, 200)
        self.expect(events, "error", "corrupt", path.name)

    def test_deadline_in_the_middle_of_work(self):
        fabric = self.fabric(("--query-timeout=2s",), ("--work-samples-max=1000000000000",))
        begun = time.monotonic()
        status, _, events = fabric.events(LONG, START, START + 10000, "1s")
        self.assertEqual(status, 200)
        self.expect(events, "error", "timeout")
        self.assertLess(time.monotonic() - begun, 5)
        wait_for("idle workers", lambda: fabric.scaling()["work"]["inflight"] == 0)

    def ask(self, fabric, *query):
        got = []
        thread = threading.Thread(target=lambda: got.append(fabric.events(*query, timeout=120)))
        thread.start()
        self.addCleanup(thread.join)
        return got

    def test_drain_cut_short(self):
        """By a second signal, or by its timeout: clients are told, then the server goes."""
        for timeout, signals in (("60s", 2), ("500ms", 1)):
            with self.subTest(signals=signals):
                fabric = self.fabric((f"--drain-timeout={timeout}", "--worker-wait=60s"),
                                     start_workers=False)
                got = self.ask(fabric, "up", START, END, "15s")
                wait_for("the query", lambda: fabric.scaling()["work"]["inflight"] > 0)
                fabric.api.signal(signal.SIGTERM)
                if signals == 2:  # a signal that follows too soon is no second one
                    wait_for("not ready", lambda: fabric.get("/readyz")[0] == 503)
                    fabric.api.signal(signal.SIGTERM)
                wait_for("the answer", lambda: got)
                self.expect(got[0][2], "error", "unavailable", "shutting down")
                self.assertEqual(fabric.api.process.wait(10), 0)

    def test_a_slow_reader_meets_the_deadline(self):
        """Its stream is full for longer than the query may take. What it reads then is a prefix of
        the answer and one end."""
        fabric = self.fabric(("--query-timeout=10s",), lines=standard_lines(24))
        whole = parse_events(fabric.events("temperature", START, START + 7000, "1s")[1])
        client = self.connect(fabric, "temperature", START, START + 7000, "1s", 1 << 16)
        wait_for("its query", lambda: [q for q in fabric.data("/api/v1/queries")
                                       if q["state"] == "answering"])
        wait_for("its end", lambda: fabric.data("/api/v1/queries") == [])
        body, complete = chunks(self.read(client))
        events = parse_events(body)
        self.assertTrue(complete)
        self.expect(events, "error", "timeout")
        self.assertEqual(events[:-2], whole[:len(events) - 2])
        self.assertLess(len(events), len(whole))

    def test_clients_that_vanish_are_noticed_within_two_seconds(self):
        """In the queue and at work, with no worker alive, by FIN and by RST."""
        fabric = self.fabric(("--worker-wait=60s", "--queries-active=1"), start_workers=False)
        for linger in (None, struct.pack("ii", 1, 0)):
            clients = [self.connect(fabric, "up", START, END, "15s") for _ in range(3)]
            wait_for("three queries", lambda: sorted(
                q["state"] for q in fabric.data("/api/v1/queries")) == ["queued", "queued",
                                                                        "working"])
            begun = time.monotonic()
            for client in clients:
                if linger:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                client.close()
            wait_for("their end", lambda: fabric.data("/api/v1/queries") == [])
            self.assertLess(time.monotonic() - begun, 2)
            self.assertEqual(fabric.scaling()["work"]["inflight"], 0)

    def test_keep_alives_change_nothing(self):
        """A worker that is stopped for a while: comments come meanwhile, and the same events."""
        fabric = self.fabric(("--sse-keepalive=200ms",))
        want = fabric.events("temperature", START, END, "60s")[1]
        fabric.workers[0].signal(signal.SIGSTOP)
        got = self.ask(fabric, "temperature", START, END, "60s")
        time.sleep(1.5)
        fabric.workers[0].signal(signal.SIGCONT)
        wait_for("the answer", lambda: got)
        _, raw, events = got[0]
        self.expect(events, "ok")
        self.assertGreaterEqual(raw.count(b": keep-alive\n\n"), 3)
        self.assertEqual(without_comments(raw), without_comments(want))


if __name__ == "__main__":
    unittest.main()
