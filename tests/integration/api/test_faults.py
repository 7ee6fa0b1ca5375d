"""test_faults.py - workers that die, stall, drain or lie: the client's answer stays the same."""
import pathlib
import signal
import socket
import threading
import time
import unittest

from harness import (START, Fabric, FabricTest, check_one_end, load, standard_lines, wait_for,
                     without_comments)

END = START + 7000
QUERIES = [
    ("sum by (job) (rate(http_requests_total[5m]))", START + 300, END, "30s"),
    ("temperature * on (instance) group_left http_requests_total", START + 300, START + 3000, "60s"),
    ("topk(3, http_requests_total)", START, END, "60s"),
]


class Slow(FabricTest):
    """Workers of this class run one work at a time, so that faults meet queries in flight."""
    workers = 3
    api_flags = ("--query-timeout=60s", "--sse-keepalive=1s")
    worker_flags = ("--slots=1",)

    def setUp(self):
        for i, worker in enumerate(self.fabric.workers):
            if worker is None or worker.process.poll() is not None:
                self.fabric.start_worker(i)
        self.fabric.wait_workers(3)

    def undisturbed(self):
        answers = []
        for query in QUERIES:
            status, raw, events = self.fabric.events(*query)
            self.assertEqual((status, check_one_end(events)), (200, "ok"))
            answers.append(without_comments(raw))
        return answers

    def run_under(self, disturb, rounds=6):
        """Ask again and again while disturb() happens: the same bytes every time."""
        want = self.undisturbed()
        got, failures = [], []

        def client(index):
            for _ in range(rounds):
                status, raw, events = self.fabric.events(*QUERIES[index])
                raw = without_comments(raw)
                got.append(raw)
                if (status, raw) != (200, want[index]):
                    failures.append((status, index, events[-3:]))

        threads = [threading.Thread(target=client, args=(i,)) for i in range(len(QUERIES))]
        for thread in threads:
            thread.start()
        disturb()
        for thread in threads:
            thread.join(120)
        self.assertEqual(failures, [])
        self.assertEqual(len(got), rounds * len(QUERIES))

    def test_killed_worker(self):
        again = self.fabric.metric("promfabric_api_work_reassigned_total")

        def has_work(name):
            return any(w["assigned"] + w["accepted"] + w["ready"]
                       for w in self.fabric.data("/api/v1/workers") if w["worker_id"] == name)

        def disturb():
            # The first one certainly has work, for it keeps what it gets; the others may.
            self.fabric.workers[0].signal(signal.SIGSTOP)
            wait_for("work of worker-0", lambda: has_work("worker-0"))
            for i in range(3):
                self.fabric.workers[i].kill()
                self.fabric.start_worker(i)
                time.sleep(0.5)
        self.run_under(disturb, rounds=12)
        wait_for("the figures", lambda: self.fabric.metric(
            "promfabric_api_work_reassigned_total") > again)

    def test_stopped_worker_is_lost_after_three_heartbeats(self):
        lost = self.fabric.metric("promfabric_api_control_disconnects_total")
        self.fabric.workers[1].signal(signal.SIGSTOP)
        try:
            begun = time.monotonic()
            self.run_under(lambda: None, rounds=2)
            self.assertLess(time.monotonic() - begun, 30)
            wait_for("the loss", lambda: self.fabric.metric(
                "promfabric_api_control_disconnects_total") > lost)
        finally:
            self.fabric.workers[1].signal(signal.SIGCONT)
        self.fabric.wait_workers(3)

    def test_drained_worker(self):
        def disturb():
            time.sleep(0.05)
            self.assertEqual(self.fabric.workers[2].stop(), 0)
        self.run_under(disturb)

    def test_all_workers_gone_and_back(self):
        want = self.undisturbed()
        for worker in self.fabric.workers:
            worker.kill()
        answer = {}

        def ask():
            answer["got"] = self.fabric.events(*QUERIES[0])

        thread = threading.Thread(target=ask)
        thread.start()
        wait_for("waiting work", lambda: self.fabric.scaling()["work"]["queued"] > 0)
        self.assertEqual(self.fabric.get("/livez")[0], 200)
        time.sleep(1.5)
        self.assertTrue(thread.is_alive())
        self.assertGreater(self.fabric.scaling()["work"]["oldest_age_seconds"], 1)
        self.fabric.start_worker(0)
        thread.join(30)
        status, raw, events = answer["got"]
        self.assertEqual((status, check_one_end(events)), (200, "ok"))
        self.assertIn(b": keep-alive", raw)
        self.assertEqual(without_comments(raw), want[0])

    def test_corrupted_artifact_is_run_again(self):
        """Spoil every artifact in one worker's spool as soon as it appears, for a while."""
        self.fabric.workers[0].stop()
        self.fabric.start_worker(0, ["--artifact-memory=0B"])
        self.fabric.wait_workers(len(self.fabric.workers))
        spool = pathlib.Path(self.fabric.folder) / "spool-0"
        stop = threading.Event()
        spoiled = []

        def spoil():
            while not stop.is_set():
                for path in spool.rglob("*"):
                    try:
                        if path.is_file() and path.stat().st_size > 100 and path not in spoiled \
                                and "segment" not in str(path) and "cache" not in str(path):
                            with open(path, "r+b") as file:
                                file.seek(50)
                                file.write(b"spoiled!")
                            spoiled.append(path)
                    except OSError:
                        pass
                time.sleep(0.0005)

        name = 'promfabric_api_artifact_fetch_failures_total{reason="checksum"}'
        seen = self.fabric.metric(name)
        thread = threading.Thread(target=spoil)
        thread.start()
        try:
            self.run_under(lambda: None, rounds=6)
        finally:
            stop.set()
            thread.join()
        # An artifact may be fetched before it is spoiled, but hardly all of them.
        print(f"\n{len(spoiled)} spoiled, {self.fabric.metric(name) - seen:.0f} refused")
        self.assertGreater(self.fabric.metric(name), seen)



class Hedged(unittest.TestCase):
    def test_a_stalled_workers_items_are_run_by_another(self):
        """A worker that stalls for less than it takes to be lost holds nobody up."""
        fabric = Fabric(2, ("--hedge-after=2",))
        try:
            load(fabric.store, standard_lines())
            fabric.wait_workers(2)
            want = [without_comments(fabric.events(*QUERIES[0])[1]) for _ in range(3)][-1]
            holder = max(fabric.workers, key=lambda w: w.log_text().count("work_id="))
            lost = fabric.metric("promfabric_api_control_disconnects_total")
            holder.signal(signal.SIGSTOP)
            try:
                status, raw, _ = fabric.events(*QUERIES[0])
            finally:
                holder.signal(signal.SIGCONT)
            self.assertEqual((status, without_comments(raw)), (200, want))
            if fabric.metric("promfabric_api_control_disconnects_total") > lost:
                self.skipTest("the machine was too busy: the worker was lost first")
            wait_for("the hedges in the metrics", lambda: fabric.metric(
                'promfabric_api_work_hedges_total{event="won"}') > 0)
        finally:
            fabric.close()


class Limits(unittest.TestCase):
    def test_without_workers_a_query_fails_after_the_wait(self):
        fabric = Fabric(1, ("--worker-wait=1s",), start_workers=False)
        try:
            load(fabric.store, standard_lines(2, 50))
            begun = time.monotonic()
            status, answer = fabric.json("/api/v1/query", {"query": "up", "time": START + 60})
            self.assertEqual((status, answer["status"]), (503, "error"), answer)
            self.assertLess(time.monotonic() - begun, 5)
            self.assertEqual(fabric.json("/api/v1/query", {"query": "1"})[0], 200)
        finally:
            fabric.close()

    def test_admission_refuses_beyond_its_bounds(self):
        fabric = Fabric(1, ("--queries-active=1", "--queries-max=4", "--tenant-queue=2",
                            "--worker-wait=20s"), start_workers=False)
        try:
            load(fabric.store, standard_lines(2, 50))
            statuses, threads = [], []

            def ask():
                statuses.append(fabric.get("/api/v1/query", {"query": "up", "time": START + 60}))

            for _ in range(6):
                threads.append(threading.Thread(target=ask))
                threads[-1].start()
                time.sleep(0.1)
            wait_for("refusals", lambda: len(statuses) == 3)
            self.assertEqual({s[0] for s in statuses}, {429})
            self.assertTrue(all("Retry-After" in s[1] for s in statuses))
            fabric.start_worker(0)
            for thread in threads:
                thread.join(30)
            self.assertEqual(sorted(s[0] for s in statuses), [200] * 3 + [429] * 3)
        finally:
            fabric.close()

    def test_a_client_that_goes_away_cancels_its_query(self):
        fabric = Fabric(1, ("--worker-wait=60s",), start_workers=False)
        try:
            load(fabric.store, standard_lines(2, 50))
            for request in (f"GET /api/v1/query?query=up&time={START} HTTP/1.1\r\nHost: localhost\r\n\r\n",
                            f"GET /api/v1/metrics/query?q=up&s={START}&e={START} HTTP/1.1\r\n"
                            "Host: localhost\r\n\r\n"):
                client = socket.create_connection(("127.0.0.1", fabric.api_port))
                client.sendall(request.encode())
                wait_for("the query", lambda: fabric.scaling()["work"]["inflight"] > 0)
                begun = time.monotonic()
                client.close()
                wait_for("its end", lambda: fabric.scaling()["work"]["inflight"] == 0)
                self.assertLess(time.monotonic() - begun, 2)
            self.assertEqual(fabric.data("/api/v1/queries"), [])
        finally:
            fabric.close()

    def test_delete_cancels_with_one_end(self):
        fabric = Fabric(1, ("--worker-wait=60s",), start_workers=False)
        try:
            load(fabric.store, standard_lines(2, 50))
            answer = {}

            def ask():
                answer["got"] = fabric.events("up", START, START, "15s")

            thread = threading.Thread(target=ask)
            thread.start()
            # While it is planned it would end with a JSON error and no stream.
            wait_for("its work", lambda: fabric.scaling()["work"]["inflight"] > 0)
            queries = wait_for("the query", lambda: fabric.data("/api/v1/queries"))
            status, _, _ = fabric.request("DELETE", "/api/v1/queries/" + queries[0]["query_id"])
            self.assertEqual(status, 200)
            thread.join(10)
            status, _, events = answer["got"]
            self.assertEqual((status, check_one_end(events)), (200, "error"))
            self.assertEqual(events[-2]["data"]["code"], "canceled")
        finally:
            fabric.close()

    def test_deadline_ends_with_one_error(self):
        fabric = Fabric(1, ("--worker-wait=60s", "--query-timeout=1s"), start_workers=False)
        try:
            load(fabric.store, standard_lines(2, 50))
            status, _, events = fabric.events("up", START, START, "15s")
            self.assertEqual((status, check_one_end(events)), (200, "error"))
            self.assertEqual(events[-2]["data"]["code"], "timeout")
        finally:
            fabric.close()

    def test_sigterm_lets_running_queries_finish(self):
        fabric = Fabric(1, ("--worker-wait=60s",), start_workers=False)
        try:
            load(fabric.store, standard_lines(2, 50))
            answer = {}

            def ask():
                answer["got"] = fabric.events("up", START, START, "15s")

            thread = threading.Thread(target=ask)
            thread.start()
            wait_for("the query", lambda: fabric.scaling()["work"]["inflight"] > 0)
            fabric.api.signal(signal.SIGTERM)
            wait_for("not ready", lambda: fabric.get("/readyz")[0] == 503)
            self.assertEqual(fabric.get("/livez")[0], 200)
            self.assertEqual(fabric.json("/api/v1/query", {"query": "1"})[0], 503)
            fabric.start_worker(0)
            thread.join(30)
            self.assertEqual(check_one_end(answer["got"][2]), "ok")
            self.assertEqual(fabric.api.process.wait(10), 0)
        finally:
            fabric.close()

    def test_a_second_signal_cuts_the_drain(self):
        fabric = Fabric(1, ("--worker-wait=60s",), start_workers=False)
        try:
            load(fabric.store, standard_lines(2, 50))
            answer = {}

            def ask():
                try:
                    answer["got"] = fabric.events("up", START, START, "15s")
                except Exception as error:  # a cut connection is an answer too
                    answer["got"] = error

            thread = threading.Thread(target=ask)
            thread.start()
            wait_for("the query", lambda: fabric.scaling()["work"]["inflight"] > 0)
            fabric.api.signal(signal.SIGTERM)
            wait_for("not ready", lambda: fabric.get("/readyz")[0] == 503)
            begun = time.monotonic()
            fabric.api.signal(signal.SIGTERM)
            self.assertEqual(fabric.api.process.wait(10), 0)
            self.assertLess(time.monotonic() - begun, 5)
            thread.join(10)
            self.assertFalse(thread.is_alive())
        finally:
            fabric.close()


class Replaced(unittest.TestCase):
    def test_a_segment_of_another_size_than_planned_is_planned_anew(self):
        # Both have the same series, shard and times; the second has more samples.
        fabric = Fabric(1)
        try:
            fabric.wait_workers(1)
            load(fabric.store, ["v 1 _x9 1"], shards=1)
            self.assertEqual(fabric.query("v", START)["result"][0]["value"][1], "1")
            other = f"{fabric.folder}/other"
            pathlib.Path(other).mkdir()
            load(other, [f"v {' '.join(str(i) for i in range(2, 13))}"], shards=1)
            (old,), (new,) = (list(pathlib.Path(p).rglob("*.parquet")) for p in (fabric.store, other))
            self.assertNotEqual(old.stat().st_size, new.stat().st_size)
            # In place: the folder looks as before, so that the catalogue believes what it knows.
            with open(old, "r+b") as file:
                file.write(new.read_bytes())
                file.truncate()
            self.assertEqual(fabric.query("v", START)["result"][0]["value"][1], "2")
            self.assertEqual(fabric.query("v", START)["result"][0]["value"][1], "2")
        finally:
            fabric.close()


class Expired(unittest.TestCase):
    def test_an_artifact_that_expired_before_its_fetch_is_made_again(self):
        """The API is stopped while the worker finishes, for longer than artifacts live."""
        fabric = Fabric(1, (), ("--artifact-ttl=500ms",))
        try:
            load(fabric.store, standard_lines())
            fabric.wait_workers(1)
            want = fabric.events(*QUERIES[0])[1]
            answer = {}

            def ask():
                answer["got"] = fabric.events(*QUERIES[0])

            again = fabric.metric("promfabric_api_work_reassigned_total")
            fabric.workers[0].signal(signal.SIGSTOP)
            thread = threading.Thread(target=ask)
            thread.start()
            wait_for("assigned work", lambda: fabric.scaling()["work"]["inflight"] > 0)
            fabric.api.signal(signal.SIGSTOP)
            fabric.workers[0].signal(signal.SIGCONT)
            time.sleep(1.8)  # longer than the artifact lives, shorter than three heartbeats
            fabric.api.signal(signal.SIGCONT)
            thread.join(30)
            status, raw, events = answer["got"]
            self.assertEqual((status, check_one_end(events)), (200, "ok"))
            self.assertEqual(without_comments(raw), want)
            wait_for("the figures", lambda: fabric.metric(
                "promfabric_api_work_reassigned_total") > again)
        finally:
            fabric.close()


class ApiKilled(unittest.TestCase):
    def test_workers_cancel_and_a_new_api_goes_on(self):
        fabric = Fabric(2)
        try:
            load(fabric.store, standard_lines())
            fabric.wait_workers(2)
            want = fabric.events(*QUERIES[0])[1]
            fabric.api.kill()
            fabric.start_api()
            fabric.wait_workers(2)
            self.assertEqual(fabric.events(*QUERIES[0])[1], want)
        finally:
            fabric.close()


if __name__ == "__main__":
    unittest.main()
