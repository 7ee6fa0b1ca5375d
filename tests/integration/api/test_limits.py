"""test_limits.py - bounds, fairness, and vanished data: what happens at the edges."""
import json
import pathlib
import socket
import subprocess
import threading
import time
import unittest

from harness import BINARY, START, Fabric, check_one_end, load, standard_lines, wait_for

END = START + 3600
LARGE = {"query": "temperature", "start": START, "end": START + 7000, "step": 1}


class FabricCase(unittest.TestCase):
    def fabric(self, workers=1, api=(), worker=(), start_workers=True):
        fabric = Fabric(workers, api, worker, start_workers)
        self.addCleanup(fabric.close)
        return fabric


class Bounds(FabricCase):
    def test_a_query_over_its_limits_fails_alone(self):
        for flags, status, kind in (
                (["--query-memory=100KiB"], 422, "execution"),
                (["--query-artifact-bytes=1000B"], 422, "execution"),
                (["--query-samples=100"], 422, "execution"),
                (["--query-series=5"], 422, "execution"),
                (["--query-work-items=2"], 422, "execution"),
                (["--spool-bytes=1000B"], 503, "unavailable")):
            with self.subTest(flags=flags):
                fabric = Fabric(1, flags)
                try:
                    load(fabric.store, standard_lines())
                    fabric.wait_workers(1)
                    got, answer = fabric.json("/api/v1/query_range", {
                        "query": "temperature", "start": START, "end": END, "step": 5})
                    self.assertEqual((got, answer.get("errorType")), (status, kind), answer)
                    self.assertEqual(fabric.query("1", END)["result"][1], "1")
                    wait_for("an empty spool",
                             lambda: fabric.metric("promfabric_api_spool_bytes") == 0)
                finally:
                    fabric.close()

    def measured(self, worker=()):
        """A fabric whose API was stopped, and the bytes of artifacts that LARGE had it fetch."""
        fabric = self.fabric(1, worker=worker)
        load(fabric.store, standard_lines(48))
        fabric.wait_workers(1)
        self.assertEqual(fabric.json("/api/v1/query_range", LARGE)[0], 200)
        size = wait_for("its size", lambda: fabric.metric(
            "promfabric_api_artifact_fetch_bytes_total"))
        fabric.api.stop()
        return fabric, size

    def test_artifacts_count_before_they_are_fetched(self):
        """Four of them at once, each of which would fit."""
        fabric, size = self.measured(worker=("--slots=4",))
        fabric.api_flags = [f"--query-artifact-bytes={int(size * 0.7)}B"]
        fabric.start_api()
        fabric.wait_workers(1)
        for _ in range(10):
            self.assertEqual(fabric.json("/api/v1/query_range", LARGE)[0], 422)
        wait_for("an empty spool", lambda: fabric.metric("promfabric_api_spool_bytes") == 0)

    def hold(self, fabric, path):
        """A client that asks and reads nothing; and the bytes its query holds."""
        holder = socket.socket()
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        holder.connect(("127.0.0.1", fabric.api_port))
        holder.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        wait_for("its answer", lambda: [q for q in fabric.data("/api/v1/queries")
                                        if q["state"] == "answering"])
        held = 0
        while held == 0 or held != fabric.metric("promfabric_api_query_memory_bytes"):
            held = fabric.metric("promfabric_api_query_memory_bytes")
            time.sleep(1)
        return holder, held

    def test_queries_together_have_a_limit_too(self):
        """One that holds most of the memory: the next large one is told so, small ones go on."""
        fabric = self.fabric(1)
        load(fabric.store, standard_lines(48))
        fabric.wait_workers(1)
        path = (f"/api/v1/query_range?query=temperature&start={START}&end={START + 7000}&step=1")
        holder, held = self.hold(fabric, path)
        holder.close()
        fabric.api.stop()
        fabric.api_flags = [f"--queries-memory={int(held * 1.7)}B"]
        fabric.start_api()
        fabric.wait_workers(1)
        self.assertEqual(fabric.get(path)[0], 200)
        holder, _ = self.hold(fabric, path)
        refusals = [fabric.get(path) for _ in range(3)]
        for status, headers, body in refusals:
            answer = json.loads(body)
            self.assertEqual((status, answer.get("errorType")), (503, "unavailable"),
                             str(answer)[:500])
            self.assertIn("--queries-memory", answer["error"])
            self.assertIn("Retry-After", headers)
        status, _, events = fabric.events("temperature * 2", START, START + 60, "15s")
        self.assertEqual((status, check_one_end(events)), (200, "ok"))
        self.assertEqual(len(fabric.query("up", END)["result"]), 2)
        holder.close()
        wait_for("its end", lambda: fabric.metric("promfabric_api_query_memory_bytes") == 0)
        self.assertEqual(fabric.get(path)[0], 200)

    def test_a_full_disk_fails_the_query_that_meets_it(self):
        """The API's spool on a small file system: large artifacts do not fit, small ones do."""
        if subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
            self.skipTest("unshare -rm is not allowed here, so there is no small disk to fill")
        fabric, size = self.measured()
        spool = f"{fabric.folder}/spool-api"
        fabric.api_wrapper = ("unshare", "-rm", "sh", "-c",
                              f"mkdir -p {spool} && mount -t tmpfs -o size={int(size / 3)} none {spool} && "
                              'exec "$@"', "sh")
        fabric.start_api()
        fabric.wait_workers(1)
        for _ in range(3):
            status, answer = fabric.json("/api/v1/query_range", LARGE)
            self.assertEqual((status, answer.get("errorType")), (503, "unavailable"), str(answer)[:500])
            self.assertIn("spool", answer["error"])
            self.assertEqual(len(fabric.query("up", END)["result"]), 2)
        wait_for("an empty spool", lambda: fabric.metric("promfabric_api_spool_bytes") == 0)

    def test_more_segments_than_a_message_holds_fail_their_query_alone(self):
        fabric = self.fabric(1)
        load(fabric.store, standard_lines())
        day = time.strftime("%Y-%m-%d", time.gmtime(START))
        folder = pathlib.Path(fabric.store, "tenant=many", f"date={day}")
        folder.mkdir(parents=True)
        for i in range(16385):
            (folder / f"{START}000_{END}000_s0of1_g{i + 1}_{i:016x}.parquet").write_bytes(b"x")
        fabric.wait_workers(1)
        status, answer = fabric.json("/api/v1/query", {"query": "up", "time": START + 60},
                                     headers={"X-Scope-OrgID": "many"})
        self.assertEqual((status, answer.get("errorType")), (422, "execution"), answer)
        self.assertIn("16385 segments", answer["error"])
        self.assertEqual(len(fabric.query("up", END)["result"]), 2)
        self.assertEqual(fabric.metric("promfabric_api_control_disconnects_total"), 0)

    def test_no_memory_at_all_is_said_at_once(self):
        fabric = self.fabric(1, ("--queries-memory=100B",), start_workers=False)
        for path, params in (("/api/v1/query", {"query": "1"}),
                             ("/api/v1/query_range", {"query": "1", "start": 1, "end": 2,
                                                      "step": 1}),
                             ("/api/v1/series", {"match[]": "up"}), ("/api/v1/labels", {}),
                             ("/api/v1/label/job/values", {})):
            status, answer = fabric.json(path, params)
            self.assertEqual((status, answer["errorType"]), (503, "unavailable"), (path, answer))
        status, answer = fabric.json("/api/v1/metrics/query", {"q": "1"})
        self.assertEqual((status, answer["code"]), (503, "unavailable"))
        self.assertEqual(fabric.get("/livez")[0], 200)

    def test_tenants_take_turns(self):
        """One tenant's long queue does not keep out another's single query."""
        fabric = self.fabric(1, ("--queries-active=1", "--worker-wait=60s"), start_workers=False)
        for tenant in ("many", "one"):
            load(fabric.store, standard_lines(2, 50), tenant=tenant)
        order, threads = [], []

        def ask(tenant):
            status, _ = fabric.json("/api/v1/query", {"query": "up", "time": START + 60},
                                    headers={"X-Scope-OrgID": tenant})
            order.append((tenant, status))

        for tenant in ["many"] * 8 + ["one"]:
            threads.append(threading.Thread(target=ask, args=(tenant,)))
            threads[-1].start()
            time.sleep(0.05)
        wait_for("all queries", lambda: len(fabric.data("/api/v1/queries")) == 9)
        fabric.start_worker(0)
        for thread in threads:
            thread.join(30)
        self.assertEqual([status for _, status in order], [200] * 9)
        self.assertLess(order.index(("one", 200)), 4, order)

    def test_slow_queries_are_logged_with_their_plan(self):
        fabric = self.fabric(1, ("--slow-query=0s",))
        load(fabric.store, standard_lines(2, 50))
        fabric.query("sum(rate(http_requests_total[5m]))", START + 300)
        line = wait_for("the log", lambda: next(
            (l for l in fabric.api.log_text().splitlines() if 'msg="slow query"' in l), None))
        for part in ("query_id=", "plan=", "work_seconds=", "tenant=default", "outcome=ok"):
            self.assertIn(part, line)
        query_id = line.split("query_id=")[1].split()[0]
        self.assertIn(f"query_id={query_id}", fabric.workers[0].log_text())

    def test_bad_flags_and_missing_stores_are_one_line(self):
        worker, store = "--worker=x:1", "--store=/tmp"
        for args, code in (([store], 2), ([store, "--discovery=magic"], 2),
                           ([worker, store, "--http-listen=nowhere"], 2),
                           ([store, "--discovery=kubernetes"], 2),
                           ([worker, "--store=/nonexistent/folder"], 1),
                           ([worker, store, "--query-timeout=soon"], 2),
                           ([worker, store, "--http-tls-cert=/x"], 2),
                           ([worker, store, "--enable-feature=none"], 2)):
            run = subprocess.run([BINARY, "api", *args], capture_output=True, text=True, timeout=20)
            self.assertEqual((run.returncode, run.stderr.count("error: ")), (code, 1),
                             (args, run.stderr))


class Vanished(FabricCase):
    def test_replaced_segments_are_looked_up_again(self):
        """Segments deleted and written again under other names in the middle of queries."""
        fabric = self.fabric(2)
        load(fabric.store, standard_lines())
        fabric.wait_workers(2)
        want = fabric.events("sum by (job) (rate(http_requests_total[5m]))", START, END, "60s")[1]
        stop, failures = threading.Event(), []

        def replace():
            while not stop.is_set():
                old = list(pathlib.Path(fabric.store).rglob("*.parquet"))
                load(fabric.store, standard_lines())
                for path in old:
                    path.unlink()

        thread = threading.Thread(target=replace)
        thread.start()
        try:
            for _ in range(25):
                _, raw, events = fabric.events(
                    "sum by (job) (rate(http_requests_total[5m]))", START, END, "60s")
                if raw != want:
                    failures.append(events[-2:])
        finally:
            stop.set()
            thread.join()
        self.assertEqual(failures, [])

    def test_a_corrupt_segment_is_an_error_that_names_it(self):
        fabric = self.fabric(1)
        load(fabric.store, standard_lines(), shards=1)
        fabric.wait_workers(1)
        path = max(pathlib.Path(fabric.store).rglob("*.parquet"), key=lambda p: p.stat().st_size)
        data = bytearray(path.read_bytes())
        for i in range(100, len(data) // 2, 50):
            data[i] ^= 0xff
        path.write_bytes(data)
        status, answer = fabric.json("/api/v1/query_range", {"query": "temperature", "start": START,
                                                             "end": END, "step": 60})
        self.assertEqual((status, answer["errorType"]), (500, "internal"), answer)
        self.assertIn(path.name, answer["error"])


if __name__ == "__main__":
    unittest.main()
