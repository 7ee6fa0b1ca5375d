"""test_fresh.py - with --ingest, answers have what ingest nodes acknowledged, or fail and say which
partition did not answer. Against ingest nodes of paper."""
import http.client
import json
import threading
import time
import unittest

from fake_ingest import FakeIngest
from harness import START, Fabric, load, wait_for

LATER = START + 7200


def series(answer):
    return {tuple(sorted(s["metric"].items())): s.get("value", s.get("values"))
            for s in answer["result"]}


class FreshTest(unittest.TestCase):
    partitions, shards, nodes = 1, 4, 1
    api_flags = ()

    def setUp(self):
        self.ingest = FakeIngest(self.partitions, self.shards, self.nodes)
        self.addCleanup(self.ingest.close)
        self.fabric = Fabric(2, [*self.ingest.flags(), *self.api_flags])
        self.addCleanup(self.fabric.close)
        self.fabric.wait_workers(2)

    def head(self, generation=7, start=LATER, tenant="default"):
        """Ten series with one sample each."""
        self.ingest.add(generation, [f'fresh{{i="{i}"}} {i}x0' for i in range(10)], start, tenant)

    def count(self, expr="count(fresh)", at=LATER, **params):
        result = self.fabric.query(expr, at, **params)["result"]
        return int(float(result[0]["value"][1])) if result else 0


class Answers(FreshTest):
    def test_what_is_only_in_a_head_is_in_the_next_answer(self):
        self.assertEqual(self.count(), 0)
        self.head()
        self.assertEqual(self.count(), 10)
        got = series(self.fabric.query("fresh", LATER))
        self.assertEqual(got[(("__name__", "fresh"), ("i", "3"))], [LATER, "3"])

    def test_segments_and_heads_are_one_series(self):
        load(self.fabric.store, ['c{i="a"} 0+1x10', 'c{i="b"} 0+2x10'])
        self.ingest.add(9, ['c{i="a"} 11+1x9', 'c{i="b"} 22+2x9'], START + 165, length=10)
        got = series(self.fabric.query_range("c", START, START + 300, 15))
        self.assertEqual([v for _, v in got[(("__name__", "c"), ("i", "a"))]],
                         [str(n) for n in range(21)])
        got = series(self.fabric.query('increase(c{i="b"}[5m])', START + 300))
        self.assertEqual(len(got), 1)

    def test_of_equal_timestamps_the_greater_generation_counts(self):
        load(self.fabric.store, ['v 1x10'])
        time.sleep(0.01)
        self.ingest.add(9, ['v 2x5'], START, length=6)
        got = self.fabric.query_range("v", START, START + 150, 15)["result"][0]["values"]
        self.assertEqual([v for _, v in got], ["2"] * 6 + ["1"] * 5)

    def test_ingest_nodes_that_keep_heads_for_less_than_a_query_are_warned_of(self):
        self.count()
        self.assertNotIn("raise --query-timeout", self.fabric.api.log_text())
        self.ingest.query_timeout_ms = 60000
        self.count()
        self.count()
        self.assertEqual(self.fabric.api.log_text().count("raise --query-timeout"), 1)

    def test_a_time_range_that_no_head_has_reads_none(self):
        self.head()
        load(self.fabric.store, ['old 1x10'])
        self.assertEqual(self.count("count(old)", START + 60), 1)
        self.assertEqual(self.ingest.reads, [])

    def test_series_and_labels_see_heads(self):
        self.head()
        load(self.fabric.store, ['old{k="v"} 1x10'])
        found = self.fabric.data("/api/v1/series", {"match[]": "fresh"})
        self.assertEqual(len(found), 10)
        names = self.fabric.data("/api/v1/label/__name__/values")
        self.assertEqual(names, ["fresh", "old"])
        self.assertEqual(self.fabric.data("/api/v1/label/i/values"), [str(i) for i in range(10)])
        self.assertEqual(self.fabric.data("/api/v1/labels"), ["__name__", "i", "k"])

    def test_answers_say_how_much_came_from_heads(self):
        self.head()
        stats = self.fabric.query("count(fresh)", LATER, stats="true")["stats"]
        self.assertEqual(stats["heads"]["inputs"], 4)
        self.assertGreaterEqual(stats["heads"]["samples"], 10)
        self.assertGreater(stats["heads"]["bytes"], 0)
        _, _, events = self.fabric.events("fresh", LATER, LATER, "15s")
        self.assertEqual(events[-1]["data"]["heads"]["inputs"], 4)
        _, _, events = self.fabric.events("fresh", LATER, LATER, "15s", explain=True, format="batch")
        (plan,) = [e["data"] for e in events if e["type"] == "plan"]
        self.assertEqual([work["heads"] for work in plan["works"]], [1] * 4)
        self.assertEqual(events[-1]["data"]["coverage"]["heads"], 4)
        self.assertGreaterEqual(events[-1]["data"]["stats"]["heads"]["samples"], 10)

    def test_tenants_see_their_own(self):
        self.head(tenant="other")
        self.assertEqual(self.count(), 0)
        answer = self.fabric.data("/api/v1/query", {"query": "count(fresh)", "time": LATER},
                                  headers={"X-Scope-OrgID": "other"})
        self.assertEqual(answer["result"][0]["value"][1], "10")

    def test_what_was_sealed_meanwhile_is_there_once(self):
        self.head()
        self.assertEqual(self.count(), 10)
        self.ingest.seal(self.fabric.store)
        self.assertEqual(self.count(), 10)
        self.assertEqual(self.count("count(count_over_time(fresh[5m]) == 1)"), 10)

    def test_an_expression_without_data_asks_nobody(self):
        self.assertEqual(self.fabric.query("1 + 1", LATER)["result"][1], "2")
        self.assertEqual(self.fabric.json("/api/v1/query", {"query": "sum("})[0], 400)
        self.assertEqual(self.ingest.statuses, [])

    def test_metadata_and_exemplars_are_asked_of_ingest_nodes(self):
        self.assertEqual(self.fabric.data("/api/v1/metadata", {"metric": "up", "limit": 3}),
                         {"up": [{"type": "gauge", "help": "h", "unit": ""}]})
        self.assertEqual(self.ingest.others[-1], {"tenant": "default", "metric": "up"})
        self.assertEqual(self.fabric.data("/api/v1/query_exemplars", {
            "query": 'sum(rate(a{x="y"}[5m])) / b', "start": 1, "end": 2}),
            [{"seriesLabels": {"a": "b"}, "exemplars": [
                {"labels": {"trace_id": "x"}, "value": "0.5", "timestamp": 1.5}]}])
        self.assertEqual(self.ingest.others[-1], {"tenant": "default", "min_ts": 1000, "max_ts": 2000,
                                                  "match": ['{x="y", __name__="a"}', '{__name__="b"}']})
        self.assertEqual(self.fabric.get("/api/v1/query_exemplars", {"query": "1"})[0], 204)

    def test_many_ask_at_once(self):
        self.head()
        got, threads = [], []
        for _ in range(40):
            threads.append(threading.Thread(target=lambda: got.append(self.count())))
            threads[-1].start()
        for thread in threads:
            thread.join()
        self.assertEqual(got, [10] * 40)


class Partitions(FreshTest):
    partitions, shards = 4, 8

    def test_each_partition_gives_its_series(self):
        self.head()
        self.assertEqual(self.count(), 10)
        self.assertEqual({r["partition"] for r in self.ingest.reads}, {0, 1, 2, 3})

    def test_segments_of_fewer_shards_than_partitions(self):
        load(self.fabric.store, [f'fresh{{i="{i}"}} 1x0' for i in range(20)], shards=2, start=LATER - 15)
        self.head()
        self.assertEqual(self.count("count(count_over_time(fresh[1m]))"), 20)
        self.assertEqual(self.count("sum(count_over_time(fresh[1m]))"), 30)

    def test_segments_of_more_shards(self):
        load(self.fabric.store, [f'fresh{{i="{i}"}} 1x0' for i in range(20)], shards=16, start=LATER - 15)
        self.head()
        self.assertEqual(self.count("sum(count_over_time(fresh[1m]))"), 30)


class SmallScans(Partitions):
    """The same in one work item."""
    api_flags = ("--small-scan=1s",)

    def test_each_partition_is_asked_once(self):
        self.head()
        self.assertEqual(self.count(), 10)
        self.assertEqual(sorted(r["partition"] for r in self.ingest.reads), [0, 1, 2, 3])


class Covered(FreshTest):
    def test_what_is_covered_is_said_and_bound_to_its_queue(self):
        self.ingest.sealed_index = 5
        self.count()
        self.count()
        wait_for("a status that says so", lambda: self.count() == 0 and self.ingest.statuses[-1]["covered"])
        self.assertEqual(self.ingest.statuses[0]["covered"], [])
        self.assertEqual(self.ingest.statuses[-1]["covered"],
                         [{"partition": 0, "queue": self.ingest.queues[0], "index": 5}])
        self.ingest.queues, self.ingest.sealed_index = ["ff"], 2
        self.count()
        wait_for("another queue", lambda: self.count() == 0 and self.ingest.statuses[-1]["covered"]
                 == [{"partition": 0, "queue": "ff", "index": 2}])

    def test_below_a_covered_floor_nobody_is_asked(self):
        load(self.fabric.store, ['old 1x10'])
        self.ingest.floor = (START + 3600) * 1000
        self.count()
        wait_for("the floor", lambda: self.count("count(old)", START + 60) == 1 and
                 self.fabric.get("/metrics")[2].decode().find(
                     'promfabric_api_fresh_questions_total{outcome="below_floor"} 0') < 0)
        asked = len(self.ingest.statuses)
        self.ingest.unavailable = (0, "partition 0 has no leader")
        self.assertEqual(self.count("count(old)", START + 60), 1)
        self.assertEqual(len(self.ingest.statuses), asked)

    def test_history_stays_readable_while_others_wait(self):
        load(self.fabric.store, ['old 1x10'])
        self.ingest.floor = (START + 3600) * 1000
        self.count()
        wait_for("the floor", lambda: self.count("count(old)", START + 60) == 1 and
                 'outcome="below_floor"} 0' not in self.fabric.get("/metrics")[2].decode())
        self.ingest.unavailable = (0, "partition 0 has no leader")
        threads = [threading.Thread(target=lambda: self.fabric.json(
            "/api/v1/query", {"query": "fresh", "time": LATER})) for _ in range(20)]
        for thread in threads:
            thread.start()
        began = time.monotonic()
        for _ in range(10):
            self.assertEqual(self.count("count(old)", START + 60), 1)
        self.assertLess(time.monotonic() - began, 5)
        self.ingest.unavailable = None
        for thread in threads:
            thread.join()


class Gone(FreshTest):
    def test_what_is_gone_is_planned_anew(self):
        self.head()
        self.ingest.gone = 1
        self.assertEqual(self.count(), 10)
        self.assertEqual(len(self.ingest.statuses), 2)

    def test_not_for_ever(self):
        self.head()
        self.ingest.gone = 1000
        status, answer = self.fabric.json("/api/v1/query", {"query": "fresh", "time": LATER})
        self.assertEqual((status, answer["errorType"]), (503, "unavailable"))
        self.assertEqual(len(self.ingest.statuses), 4)

    def test_busy_replicas_are_asked_again(self):
        self.head()
        self.ingest.busy = 2
        self.assertEqual(self.count(), 10)
        self.assertEqual(len(self.ingest.statuses), 1)


class Unavailable(FreshTest):
    nodes = 2

    def test_the_partition_is_named(self):
        self.ingest.unavailable = (1, "partition 1 has no leader")
        began = time.monotonic()
        status, answer = self.fabric.json("/api/v1/query", {"query": "fresh", "time": LATER})
        took = time.monotonic() - began
        self.assertEqual((status, answer["errorType"]), (503, "unavailable"))
        self.assertIn("partition 1 has no leader", answer["error"])
        self.assertTrue(9 < took < 14, took)
        began = time.monotonic()  # it has been waited for long enough
        self.assertEqual(self.fabric.json("/api/v1/query", {"query": "fresh", "time": LATER})[0], 503)
        self.assertLess(time.monotonic() - began, 5)

    def test_an_election_is_waited_for(self):
        self.head()
        self.ingest.unavailable = (0, "partition 0 has no leader")
        threading.Timer(1.5, lambda: setattr(self.ingest, "unavailable", None)).start()
        self.assertEqual(self.count(), 10)

    def test_a_node_that_is_away_costs_nothing(self):
        self.head()
        self.ingest.nodes[0].shutdown()
        self.ingest.nodes[0].server_close()
        self.assertEqual(self.count(), 10)
        self.assertEqual(self.count(), 10)

    def test_who_waits_can_be_canceled(self):
        self.ingest.unavailable = (0, "partition 0 has no leader")
        connection = http.client.HTTPConnection("127.0.0.1", self.fabric.api_port)
        connection.request("GET", f"/api/v1/query?query=fresh&time={LATER}")
        (query,) = wait_for("the query", lambda: self.fabric.data("/api/v1/queries"))
        self.assertEqual(query["state"], "planning")
        began = time.monotonic()
        self.assertEqual(self.fabric.request("DELETE", f"/api/v1/queries/{query['query_id']}")[0], 200)
        self.assertEqual(json.loads(connection.getresponse().read())["errorType"], "canceled")
        self.assertLess(time.monotonic() - began, 2)
        connection.close()

    def test_nobody_answers(self):
        for node in self.ingest.nodes:
            node.shutdown()
            node.server_close()
        status, answer = self.fabric.json("/api/v1/query", {"query": "fresh", "time": LATER,
                                                            "timeout": "3s"})
        self.assertEqual(status, 503)


if __name__ == "__main__":
    unittest.main()
