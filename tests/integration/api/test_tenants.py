"""test_tenants.py - what one tenant may have, and that another one does not notice."""
import json
import os
import pathlib
import socket
import threading
import time
import unittest

from harness import START, Fabric, load, standard_lines, wait_for

END = START + 3600
LARGE = {"query": "temperature", "start": START, "end": START + 7000, "step": 1}
LARGE_PATH = f"/api/v1/query_range?query=temperature&start={START}&end={START + 7000}&step=1"


def as_tenant(tenant):
    return {"X-Scope-OrgID": tenant}


class TenantCase(unittest.TestCase):
    def fabric(self, limits, flags=(), tenants=("a", "b"), instances=48):
        """A fabric with tenants a and b, and the file of their limits."""
        fabric = Fabric(1, start_workers=False)
        self.addCleanup(fabric.close)
        fabric.api.stop()
        self.limits = pathlib.Path(fabric.folder, "limits")
        self.write(limits)
        fabric.api_flags = [f"--tenant-limits={self.limits}", *flags]
        for tenant in tenants:
            load(fabric.store, standard_lines(instances), tenant=tenant)
        fabric.start_worker(0)
        fabric.start_api()
        fabric.wait_workers(1)
        return fabric

    def write(self, limits):
        fresh = self.limits.with_suffix(".new")
        fresh.write_text(limits)
        os.rename(fresh, self.limits)

    def slow_reader(self, fabric, tenant, path=LARGE_PATH):
        """A client that asks for much and reads nothing."""
        reader = socket.socket()
        self.addCleanup(reader.close)
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.connect(("127.0.0.1", fabric.api_port))
        reader.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nX-Scope-OrgID: {tenant}\r\n\r\n".encode())
        return reader

    def ask(self, fabric, tenant, path="/api/v1/query", params=None):
        status, headers, body = fabric.get(path, params or {"query": "up", "time": END},
                                           headers=as_tenant(tenant))
        return status, headers, json.loads(body)

    def met(self, fabric, limit):
        return fabric.metric(f'promfabric_api_tenant_limits_total{{limit="{limit}"}}')


class Limits(TenantCase):
    def refused(self, fabric, status, words, params=None):
        """Tenant a is told the limit and its value; tenant b has its answer."""
        got, headers, answer = self.ask(fabric, "a", "/api/v1/query_range", params or LARGE)
        self.assertEqual(got, status, str(answer)[:300])
        self.assertIn(words, answer["error"])
        if status == 429:
            self.assertIn("Retry-After", headers)
        got, _, answer = self.ask(fabric, "b", "/api/v1/query_range", LARGE)
        self.assertEqual(got, 200, str(answer)[:300])

    def test_each_limit_is_named_with_its_value(self):
        fabric = self.fabric("a samples=1000\n")
        self.refused(fabric, 422, "this tenant may load 1000 (samples)")
        self.assertGreaterEqual(self.met(fabric, "samples"), 1)
        # The file is read again; what it says counts from then on.
        for limits, words, name in (
                ("a memory=200KiB\n", "more memory than its tenant may have: 204800 bytes (memory)",
                 "memory"),
                ("a spool=1000\n", "larger than its tenant may have: 1000 bytes (spool)", "spool")):
            before = fabric.api.log_text().count("tenants' limits read again")
            self.write(limits)
            wait_for("the limits", lambda: fabric.api.log_text().count(
                "tenants' limits read again") > before)
            self.refused(fabric, 422, words)
            self.assertGreaterEqual(self.met(fabric, name), 1)
        # A file that is none changes nothing, and is told.
        self.write("a memory\n")
        wait_for("the warning", lambda: "tenants' limits cannot be read" in fabric.api.log_text())
        self.refused(fabric, 422, "(spool)")

    def test_slow_readers_meet_their_own_limit(self):
        fabric = self.fabric("a streams=2 queries=1\n")
        for _ in range(2):
            self.slow_reader(fabric, "a")
        wait_for("slow readers", lambda: self.ask(fabric, "a", params={
            "query": "up", "time": END, "timeout": "1s"})[0] == 429, timeout=60)
        self.refused(fabric, 429, "too many answers of this tenant wait for their readers: 2 "
                     "(streams)")
        self.assertGreaterEqual(self.met(fabric, "streams"), 2)

    def test_a_queued_query_does_not_wait_for_slow_readers(self):
        """Queued behind the query that turns out to be its tenant's last slow reader: 429, and soon."""
        fabric = self.fabric("a streams=1 queries=1\n")
        self.slow_reader(fabric, "a")
        wait_for("its query", lambda: fabric.data("/api/v1/queries", headers=as_tenant("a")))
        status, headers, answer = self.ask(fabric, "a", params={
            "query": "up", "time": END, "timeout": "60s"})
        self.assertEqual(status, 429, answer)
        self.assertIn("Retry-After", headers)
        self.assertIn("too many answers of this tenant wait for their readers: 1 (streams)",
                      answer["error"])

    def test_memory_of_a_tenants_queries_adds_up(self):
        fabric = self.fabric("")
        reader = self.slow_reader(fabric, "a")
        held = 0
        while held == 0 or held != fabric.metric("promfabric_api_query_memory_bytes"):
            held = fabric.metric("promfabric_api_query_memory_bytes")
            time.sleep(1)
        self.write(f"a memory={int(held * 1.5)}\n")
        wait_for("the limits", lambda: "tenants' limits read again" in fabric.api.log_text())
        self.refused(fabric, 429, f"may have together: {int(held * 1.5)} bytes (memory)")
        reader.close()
        wait_for("its end", lambda: fabric.metric("promfabric_api_query_memory_bytes") == 0)
        self.assertEqual(self.ask(fabric, "a", "/api/v1/query_range", LARGE)[0], 200)


class Worst(TenantCase):
    def test_another_tenant_is_answered_while_one_does_its_worst(self):
        """More slow readers than the API has queries, heavy queries and half requests of one
        tenant: each light query of the other is answered, right and soon."""
        fabric = self.fabric("a queries=2 queued=8 streams=4 work=1\n",
                             ("--queries-max=48", "--queries-active=4"))
        stop, statuses = threading.Event(), []

        def heavy():
            while not stop.is_set():
                statuses.append(self.ask(fabric, "a", "/api/v1/query_range",
                                         {**LARGE, "timeout": "5s"})[0])

        def half_requests():
            while not stop.is_set():
                with socket.create_connection(("127.0.0.1", fabric.api_port)) as half:
                    half.sendall(b"POST /api/v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Le")
                    time.sleep(0.01)

        want = self.ask(fabric, "b")[2]["data"]
        self.assertEqual(len(want["result"]), 2)
        for _ in range(64):
            self.slow_reader(fabric, "a")
        threads = [threading.Thread(target=heavy) for _ in range(6)]
        threads.append(threading.Thread(target=half_requests))
        for thread in threads:
            thread.start()
        try:
            wait_for("its refusals", lambda: 429 in statuses and self.met(fabric, "streams") >= 1,
                     timeout=120)
            took = []
            for _ in range(60):
                start = time.monotonic()
                status, _, answer = self.ask(fabric, "b")
                took.append(time.monotonic() - start)
                self.assertEqual((status, answer.get("data")), (200, want), answer)
            self.assertLess(max(took), 5, took)  # sanitizers, and a machine that others use
        finally:
            stop.set()
            for thread in threads:
                thread.join(60)
        self.assertLessEqual(len([q for q in fabric.data("/api/v1/queries") if q["tenant"] == "a"]),
                             2 + 8 + 4 + 2)


if __name__ == "__main__":
    unittest.main()
