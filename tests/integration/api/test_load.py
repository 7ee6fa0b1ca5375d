"""test_load.py - many clients, slow clients, clients that leave: the API stays level and fair.

PROMFABRIC_LEAK_QUERIES sets the length of the leak check (default 2000; 10000 for a long one):
    PROMFABRIC_LEAK_QUERIES=10000 ctest --preset release -R integration_api_load -V"""
import os
import random
import socket
import threading
import time
import unittest

from harness import (BINARY, START, FabricTest, check_one_end, parse_events, wait_for,
                     without_comments)

END = START + 7000
# Freed memory that the sanitizer holds back, 256 MiB of it otherwise, is what would grow.
os.environ["ASAN_OPTIONS"] = ":".join([*filter(None, [os.environ.get("ASAN_OPTIONS")]), "quarantine_size_mb=16"])


def http_body(raw):
    """The body of a chunked answer."""
    head, _, rest = raw.partition(b"\r\n\r\n")
    assert b"chunked" in head.lower(), head
    pieces, at = [], 0
    while at < len(rest):
        start = rest.index(b"\r\n", at) + 2
        count = int(rest[at:start], 16)
        if count == 0:
            return b"".join(pieces)
        pieces.append(rest[start:start + count])
        at = start + count + 2
    raise AssertionError("the answer was cut short")


def read_all(client):
    pieces = []
    while piece := client.recv(1 << 16):
        pieces.append(piece)
    return b"".join(pieces)


class Load(FabricTest):
    workers = 2
    # However long the others take, nobody is cut off for reading slowly.
    api_flags = ("--http-idle-timeout=5m", "--query-timeout=10m")
    # Acknowledged artifacts must not be what grows.
    worker_flags = ("--artifact-ttl-after-ack=200ms",)

    def connect(self, query, receive_buffer=None):
        client = socket.socket()
        if receive_buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.settimeout(120)
        client.connect(("127.0.0.1", self.fabric.api_port))
        client.sendall(f"GET /api/v1/metrics/query?{query} HTTP/1.1\r\nHost: localhost\r\n"
                       "Connection: close\r\n\r\n".encode())
        return client

    def test_five_hundred_event_streams(self):
        query = f"q=sum(temperature)&s={START}&e={START + 600}&step=15s"
        clients = [self.connect(query) for _ in range(500)]
        bodies = set()
        for client in clients:
            bodies.add(without_comments(http_body(read_all(client))))
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
        """{process: (resident memory in MiB, open files, threads)} of the API and its workers."""
        found = {}
        for process in [self.fabric.api, *self.fabric.workers]:
            with open(f"/proc/{process.pid}/status") as file:
                status = dict(line.split(":", 1) for line in file if ":" in line)
            found[process.name] = (int(status["VmRSS"].split()[0]) / 1024,
                                   len(os.listdir(f"/proc/{process.pid}/fd")),
                                   int(status["Threads"]))
        return found

    def delete_some_query(self, rng):
        """As somebody who looks at what runs and ends one of it."""
        queries = self.fabric.data("/api/v1/queries")
        if queries:
            name = rng.choice(queries)["query_id"]
            status = self.fabric.request("DELETE", f"/api/v1/queries/{name}")[0]
            self.assertIn(status, (200, 404))

    def storm(self, count, seed):
        """Queries of all kinds from eight clients. A third of them leave at a random moment, and
        every tenth time somebody cancels a query that runs."""
        rng = random.Random(seed)
        paths = [f"/api/v1/metrics/query?q=temperature&s={START}&e={START + 600}&step=15s",
                 f"/api/v1/query?query=sum(rate(http_requests_total[5m]))&time={END}",
                 f"/api/v1/query_range?query=temperature&start={START}&end={START + 600}&step=15",
                 "/api/v1/labels", "/api/v1/query?query=bad{", "/api/v1/series?match[]=up"]
        jobs = [(rng.choice(paths), rng.random() < 0.33, rng.random() < 0.1, rng.random() * 0.02)
                for _ in range(count)]
        lock, failures, statuses = threading.Lock(), [], {}

        def ask(path, leaves, pause):
            client = socket.create_connection(("127.0.0.1", self.fabric.api_port), timeout=60)
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            if leaves:
                time.sleep(pause)
                client.close()
                return "left"
            raw = read_all(client)
            client.close()
            return raw[9:12].decode()

        def work():
            while True:
                with lock:
                    if not jobs:
                        return
                    path, leaves, deletes, pause = jobs.pop()
                try:
                    if deletes:
                        self.delete_some_query(rng)
                    status = ask(path, leaves, pause)
                except (OSError, AssertionError) as error:
                    status = repr(error)
                with lock:
                    statuses[status] = statuses.get(status, 0) + 1
                    if status not in ("200", "400", "499", "left"):  # 499: it was canceled
                        failures.append((path, status))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(900)
        self.assertEqual(failures[:5], [])
        wait_for("quiet", lambda: self.fabric.scaling()["work"]["inflight"] == 0 and
                 self.fabric.data("/api/v1/queries") == [], 20)
        return statuses

    def test_memory_files_and_threads_level_off(self):
        """A third of the queries to warm up, then the rest: nothing has grown with their number."""
        count = int(os.environ.get("PROMFABRIC_LEAK_QUERIES", "2000"))
        self.storm(count // 3, 1)
        time.sleep(1)
        before = self.figures()
        begun = time.monotonic()
        statuses = self.storm(count - count // 3, 2)
        time.sleep(1)
        after = self.figures()
        print(f"\n{count} queries, the last {count - count // 3} in {time.monotonic() - begun:.0f} s: "
              + ", ".join(f"{n} {s}" for s, n in sorted(statuses.items())))
        # Allocators keep some of what was freed, sanitizers much of it.
        factor, spare = (1.1, 8) if "/release/" in BINARY else (1.3, 32)
        for name, (rss, files, threads) in before.items():
            print(f"{name}: RSS {rss:.1f} -> {after[name][0]:.1f} MiB, files {files} -> "
                  f"{after[name][1]}, threads {threads} -> {after[name][2]}")
            # Up to 32 connections for artifacts stay open, as many as the last queries left.
            self.assertLessEqual(after[name][1], files + 48)
            self.assertLessEqual(after[name][2], threads + 2)
            self.assertLess(after[name][0], rss * factor + spare)
        wait_for("an empty spool", lambda: self.fabric.metric("promfabric_api_spool_bytes") == 0)
        self.assertEqual(self.fabric.metric("promfabric_api_query_memory_bytes"), 0)
        for status in ("200", "left"):
            self.assertGreater(statuses.get(status, 0), 0)


if __name__ == "__main__":
    unittest.main()
