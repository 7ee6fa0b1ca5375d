"""test_morning.py - what somebody reads who was woken up: logs, errors, /api/v1/workers, metrics."""
import json
import os
import re
import shutil
import signal
import unittest

from harness import START, Fabric, load, standard_lines, wait_for

END = START + 3600


def lines(process, text):
    return [line for line in process.log_text().splitlines() if text in line]


class Workers(unittest.TestCase):
    def setUp(self):
        self.fabrics = []

    def tearDown(self):
        for fabric in self.fabrics:
            fabric.close()

    def start(self, *args, **kwargs):
        self.fabrics.append(Fabric(*args, **kwargs))
        return self.fabrics[-1]

    def rows(self, fabric):
        return fabric.data("/api/v1/workers")

    def test_a_worker_that_cannot_be_reached_is_told_once_and_named_to_clients(self):
        fabric = self.start(workers=1, start_workers=False, api_flags=["--worker-wait=3s"])
        load(fabric.store, standard_lines())
        status, answer = fabric.json("/api/v1/query", {"query": "up", "time": END})
        self.assertEqual((status, answer["errorType"]), (503, "unavailable"))
        self.assertRegex(answer["error"], r"^no worker is available: 1 known, last error: .")
        wait_for("a warning", lambda: [line for line in lines(fabric.api, "worker cannot be reached")
                                       if "level=warn" in line])
        self.assertTrue(self.rows(fabric)[0]["last_error"])
        warned = [line for line in lines(fabric.api, "worker cannot be reached") if "level=warn" in line]
        self.assertEqual(len(warned), 1)
        fabric.start_worker(0)
        fabric.wait_workers(1)
        self.assertEqual(self.rows(fabric)[0]["last_error"], "")

    def test_of_two_workers_with_one_name_the_second_is_refused(self):
        fabric = self.start(workers=2, start_workers=False)
        fabric.start_worker(0)
        fabric.wait_workers(1)
        fabric.start_worker(1, flags=["--worker-id=worker-0"])
        wait_for("a refusal", lambda: lines(fabric.api, "worker refused"))
        line = lines(fabric.api, "worker refused")[0]
        self.assertIn("level=error", line)
        self.assertIn("the same --worker-id worker-0", line)
        self.assertEqual(fabric.scaling()["workers"]["accepting"], 1)

    def test_a_clean_drain_is_no_warning(self):
        fabric = self.start(workers=2)
        fabric.wait_workers(2)
        self.assertEqual(fabric.workers[0].stop(), 0)
        wait_for("the end of the stream", lambda: lines(fabric.api, "control stream closed"))
        for line in lines(fabric.api, "worker-0"):
            self.assertNotIn("level=warn", line)

        def states():
            return {m.group(1): float(m.group(2)) for m in re.finditer(
                r'^promfabric_api_workers\{state="(\w+)"\} (\S+)$',
                fabric.get("/metrics")[2].decode(), re.M)}
        # The gauges are set now and then, not with every change.
        wait_for("one worker less", lambda: states()["accepting"] == 1)
        self.assertEqual(sum(states().values()), 2, states())

    def test_hangup_ends_nobody(self):
        fabric = self.start(workers=1)
        fabric.wait_workers(1)
        for process in (fabric.api, fabric.workers[0]):
            process.signal(signal.SIGHUP)
            wait_for("the signal", lambda: lines(process, "SIGHUP"))
        self.assertTrue(fabric.up())
        self.assertIsNone(fabric.workers[0].process.poll())

    def copy_without_segments(self, fabric):
        """A store that calls itself the same and has nothing: a copy that is behind."""
        elsewhere = os.path.join(fabric.folder, "elsewhere")
        wait_for("a name of the store", lambda: os.path.exists(os.path.join(fabric.store, "_store/id")))
        shutil.copytree(os.path.join(fabric.store, "_store"), os.path.join(elsewhere, "_store"))
        return elsewhere

    def test_a_worker_of_another_store_is_refused_when_it_connects(self):
        fabric = self.start(workers=2, start_workers=False)
        load(fabric.store, standard_lines())
        elsewhere = os.path.join(fabric.folder, "elsewhere")
        os.makedirs(os.path.join(elsewhere, "_store"))
        with open(os.path.join(elsewhere, "_store/id"), "w", encoding="ascii") as f:
            f.write("0123456789abcdef" * 2)
        fabric.start_worker(0)
        fabric.start_worker(1, flags=[f"--store={elsewhere}"])
        wait_for("a refusal", lambda: lines(fabric.api, "worker refused"))
        line = lines(fabric.api, "worker refused")[0]
        self.assertIn("level=error", line)
        self.assertIn("worker_id=worker-1", line)
        self.assertIn("give both the same --store", line)
        for k in range(4):
            self.assertEqual(fabric.query(f"count(http_requests_total) + {k}", END)["result"][0]["value"][1], str(12 + k))
        wait_for("its reason", lambda: any("another store" in row["last_error"] for row in self.rows(fabric)))
        rows = json.dumps(self.rows(fabric))
        self.assertNotIn(elsewhere, rows)
        self.assertEqual(fabric.scaling()["workers"]["accepting"], 1)
        self.assertFalse(lines(fabric.api, "is its --store the same?"))

    def test_one_worker_with_another_store_costs_no_query(self):
        fabric = self.start(workers=2, start_workers=False)
        load(fabric.store, standard_lines())
        elsewhere = self.copy_without_segments(fabric)
        fabric.start_worker(0)
        fabric.start_worker(1, flags=[f"--store={elsewhere}"])
        fabric.wait_workers(2)
        for k in range(8):
            data = fabric.query(f"count(http_requests_total) + {k}", END)
            self.assertEqual(data["result"][0]["value"][1], str(12 + k))
        told = lines(fabric.api, "is its --store the same?")
        self.assertTrue(told)
        self.assertIn("worker_id=worker-1", told[0])

    def test_what_no_worker_can_read_is_an_outcome_of_its_own(self):
        fabric = self.start(workers=1, start_workers=False)
        load(fabric.store, standard_lines())
        elsewhere = self.copy_without_segments(fabric)
        fabric.start_worker(0, flags=[f"--store={elsewhere}"])
        fabric.wait_workers(1)
        status, answer = fabric.json("/api/v1/query", {"query": "count(up)", "time": END})
        self.assertEqual((status, answer["errorType"]), (503, "unavailable"), answer)
        self.assertNotIn(fabric.folder, json.dumps(answer))
        # An answer is counted when it has gone out.
        wait_for("its outcome", lambda: fabric.metric('promfabric_api_queries_total{outcome="store"}') == 1)


if __name__ == "__main__":
    unittest.main()
