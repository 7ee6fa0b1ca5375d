"""test_quarantine.py - a segment that costs workers is not read for a while, and the query says so."""
import threading
import unittest
import urllib.parse

from harness import START, Fabric, load, wait_for

# Seconds of work for one item: as many windows as an answer may have, each of an hour.
SLOW = {"query": "quantile_over_time(0.5, heavy[1h])", "start": START, "end": START + 7200, "step": 1}


class Quarantine(unittest.TestCase):
    def setUp(self):
        self.fabric = Fabric(2, ("--worker-wait=20s",))
        self.addCleanup(self.fabric.close)
        load(self.fabric.store, [f'heavy{{i="{i}"}} 0+1x400' for i in range(100)], shards=1,
             window=10 * 86400)
        load(self.fabric.store, ["light 1x400"], tenant="other", shards=1)
        self.fabric.wait_workers(2)

    def running(self):
        """The index of the worker that has accepted work."""
        for worker in self.fabric.data("/api/v1/workers"):
            if worker["accepted"]:
                return worker["worker_id"][-1]
        return None

    def cost_two_workers(self):
        """The answer of a query whose work two workers die of."""
        got = []
        asking = threading.Thread(target=lambda: got.append(
            self.fabric.json("/api/v1/query_range", SLOW)))
        asking.start()
        for _ in range(2):
            index = int(wait_for("a worker that runs it", self.running))
            self.fabric.workers[index].kill()
            self.fabric.start_worker(index)
        asking.join()
        self.fabric.wait_workers(2)
        return got[0]

    def ask(self, query, **headers):
        return self.fabric.json("/api/v1/query", {"query": query, "time": START + 300},
                                headers=headers)

    def test_a_segment_that_cost_two_workers(self):
        assigned = "promfabric_api_work_assigned_total"
        status, answer = self.cost_two_workers()
        self.assertEqual((status, answer["errorType"]), (503, "unavailable"))
        self.assertRegex(answer["error"],
                         r"^segment tenant=default/\S+\.parquet cost 2 workers and is not read before 2")
        (entry,) = self.fabric.data("/api/v1/quarantine")
        self.assertEqual((entry["state"], entry["deaths"]), ("quarantined", 2))
        self.assertIn(entry["segment"], answer["error"])
        self.assertIn("segment in quarantine", self.fabric.api.log_text())
        wait_for("the figure",
                 lambda: self.fabric.metric("promfabric_api_segments_quarantined") == 1)

        # Others are refused before a worker has it; who does not need it does not notice.
        before = self.fabric.metric(assigned)
        status, refused = self.ask("heavy")
        self.assertEqual((status, refused["error"][:60]), (503, answer["error"][:60]))
        self.assertEqual(self.fabric.metric(assigned), before)
        self.assertEqual(self.ask("light", **{"X-Scope-OrgID": "other"})[0], 200)

        # The operator knows better.
        path = "/api/v1/quarantine/" + urllib.parse.quote(entry["segment"])
        self.assertEqual(self.fabric.request("DELETE", path)[0], 200)
        self.assertEqual(self.fabric.request("DELETE", path)[0], 404)
        status, answer = self.ask("heavy")
        self.assertEqual((status, len(answer["data"]["result"])), (200, 100))

    def test_a_good_end_between_two_deaths(self):
        """One death makes it suspect; read to a good end it is not any more."""
        thread = threading.Thread(target=lambda: self.fabric.json("/api/v1/query_range", SLOW))
        thread.start()
        index = int(wait_for("a worker that runs it", self.running))
        self.fabric.workers[index].kill()
        self.fabric.start_worker(index)
        (entry,) = wait_for("a suspect", lambda: self.fabric.data("/api/v1/quarantine"))
        self.assertEqual((entry["state"], entry["deaths"]), ("suspect", 1))
        self.assertEqual(self.ask("heavy")[0], 200)
        self.assertEqual(self.fabric.data("/api/v1/quarantine"), [])
        for query in self.fabric.data("/api/v1/queries"):
            self.fabric.request("DELETE", f"/api/v1/queries/{query['query_id']}")
        thread.join()


if __name__ == "__main__":
    unittest.main()
