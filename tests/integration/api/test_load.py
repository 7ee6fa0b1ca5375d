"""test_load.py - many clients, slow clients, clients that leave: the API stays level and fair.

PROMFABRIC_LEAK_QUERIES sets the length of the leak check (default 1500; 10000 for a long one)."""
import os
import random
import socket
import threading
import time
import unittest

from harness import START, FabricTest, check_one_end, parse_events, wait_for

END = START + 7000


def http_body(raw):
    """The body of a chunked answer."""
    head, _, rest = raw.partition(b"\r\n\r\n")
    assert b"chunked" in head.lower(), head
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        count = int(size, 16)
        if count == 0:
            return body
        body, rest = body + rest[:count], rest[count + 2:]
    raise AssertionError("the answer was cut short")


def read_all(client):
    raw = b""
    while True:
        piece = client.recv(1 << 16)
        if not piece:
            return raw
        raw += piece


class Load(FabricTest):
    workers = 2

    def connect(self, query, receive_buffer=None):
        client = socket.socket()
        if receive_buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.settimeout(120)
        client.connect(("127.0.0.1", self.fabric.api_port))
        client.sendall(f"GET /api/v1/metrics/query?{query} HTTP/1.1\r\nHost: x\r\n"
                       "Connection: close\r\n\r\n".encode())
        return client

    def test_five_hundred_event_streams(self):
        query = f"q=sum(temperature)&s={START}&e={START + 600}&step=15s"
        clients = [self.connect(query) for _ in range(500)]
        bodies = set()
        for client in clients:
            bodies.add(http_body(read_all(client)))
            client.close()
        self.assertEqual(len(bodies), 1)
        self.assertEqual(check_one_end(parse_events(bodies.pop())), "ok")

    def test_slow_readers_hold_nobody_up(self):
        # Some megabytes of answer each: more than the kernel and the stream buffer.
        query = f"q=temperature&s={START}&e={END}&step=1s"
        slow = [self.connect(query, receive_buffer=4096) for _ in range(80)]
        try:
            wait_for("queries that wait for their readers", lambda: len(
                [q for q in self.fabric.data("/api/v1/queries") if q["state"] == "answering"]) == 80,
                60)
            begun = time.monotonic()
            for _ in range(5):
                self.assertEqual(len(self.fabric.query("up", END)["result"]), 2)
            self.assertLess(time.monotonic() - begun, 5)
            # One of them reads after all, and misses nothing.
            events = parse_events(http_body(read_all(slow[0])))
            self.assertEqual(check_one_end(events), "ok")
            self.assertEqual(len(events) - 1, 12 * 7001)
        finally:
            for client in slow:
                client.close()
        wait_for("their end", lambda: self.fabric.data("/api/v1/queries") == [], 20)
        wait_for("an empty spool", lambda: self.fabric.metric("promfabric_api_spool_bytes") == 0)

    def figures(self):
        """Resident memory in MiB, open files, threads of the API."""
        pid = self.fabric.api.pid
        with open(f"/proc/{pid}/status") as file:
            status = dict(line.split(":", 1) for line in file if ":" in line)
        return (int(status["VmRSS"].split()[0]) / 1024, len(os.listdir(f"/proc/{pid}/fd")),
                int(status["Threads"]))

    def storm(self, count, seed):
        """Queries of all kinds; a third of the clients leave at a random moment."""
        rng = random.Random(seed)
        paths = [f"/api/v1/metrics/query?q=temperature&s={START}&e={START + 600}&step=15s",
                 f"/api/v1/query?query=sum(rate(http_requests_total[5m]))&time={END}",
                 f"/api/v1/query_range?query=temperature&start={START}&end={END}&step=60",
                 "/api/v1/labels", "/api/v1/query?query=bad{", "/api/v1/series?match[]=up"]
        jobs = [(rng.choice(paths), rng.random() < 0.33, rng.random() * 0.02)
                for _ in range(count)]
        lock, failures = threading.Lock(), []

        def work():
            while True:
                with lock:
                    if not jobs:
                        return
                    path, leaves, pause = jobs.pop()
                client = socket.create_connection(("127.0.0.1", self.fabric.api_port), timeout=60)
                client.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
                               .encode())
                if leaves:
                    time.sleep(pause)
                else:
                    raw = read_all(client)
                    if not raw.startswith((b"HTTP/1.1 200", b"HTTP/1.1 400")):
                        failures.append(raw[:200])
                client.close()

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(600)
        self.assertEqual(failures, [])
        wait_for("quiet", lambda: self.fabric.scaling()["work"]["inflight"] == 0 and
                 self.fabric.data("/api/v1/queries") == [], 20)

    def test_memory_files_and_threads_level_off(self):
        count = int(os.environ.get("PROMFABRIC_LEAK_QUERIES", "1500"))
        self.storm(count // 3, 1)
        time.sleep(1)
        before = self.figures()
        self.storm(count - count // 3, 2)
        time.sleep(1)
        after = self.figures()
        print(f"\n{count} queries: RSS {before[0]:.0f} -> {after[0]:.0f} MiB, files {before[1]} -> "
              f"{after[1]}, threads {before[2]} -> {after[2]}")
        self.assertLessEqual(after[1], before[1] + 16)
        self.assertLessEqual(after[2], before[2] + 2)
        self.assertLess(after[0], before[0] * 1.3 + 32)
        wait_for("an empty spool", lambda: self.fabric.metric("promfabric_api_spool_bytes") == 0)


if __name__ == "__main__":
    unittest.main()
