"""test_explain.py - queries that are watched: their events, and that others see none of them."""
import json
import os
import pty
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
from harness import (BINARY, START, Fabric, check_one_end, load, standard_lines,  # noqa: E402
                     wait_for)

END = START + 3600
# Keeps a worker busy for minutes, and the API not at all.
LONG = "sum(quantile_over_time(0.9, rate(http_requests_total[5m])[2h:1s]))"


def values_of_batches(events):
    """{(sorted labels, timestamp): value} of columnar events; ids must have been told before."""
    series, values = [], {}
    for event in events:
        data = event["data"]
        if event["type"] == "series":
            assert data["first"] == len(series), data["first"]
            series += [tuple(sorted(tags.items())) for tags in data["list"]]
        elif event["type"] == "batch":
            for row in data["rows"]:
                assert len(row) == data["steps"] + 1
                for k, value in enumerate(row[1:]):
                    if value is not None:
                        key = series[row[0]], data["start"] + k * data["step"]
                        assert key not in values, key
                        values[key] = value
    assert len(set(series)) == len(series)
    return values


class Fabrics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.fabric = Fabric(2)
        load(cls.fabric.store, standard_lines() + ['odd{v="<b>x</b>"} NaN Inf -Inf 1e-7x20',
                                                   'gap{a="1"} 1 _x100 2x20',
                                                   'gap{a="2"} _x50 3x20'], shards=4)
        cls.fabric.wait_workers(2)

    @classmethod
    def tearDownClass(cls):
        cls.fabric.close()


class Watched(Fabrics):
    def ask(self, query, step="60s", **more):
        status, raw, events = self.fabric.events(query, START, END, step, **more)
        self.assertEqual(status, 200, raw)
        return raw, events

    def test_streams_of_clients_that_ask_for_nothing_new_are_as_ever(self):
        raw, events = self.ask('gap{a="2"}', progress=True)
        self.assertEqual({e["type"] for e in events}, {"result", "progress", "done"})
        lines = [line for line in raw.decode().split("\n\n") if '"progress"' not in line]
        self.assertEqual(lines[0], 'data: {"type":"result","data":{"timestamp":%d,"value":3,'
                                   '"tags":{"__name__":"gap","a":"2"},"label":"gap{a=\\"2\\"}"}}'
                                   % ((START + 780) * 1000))
        self.assertEqual(lines[-2:], ['data: {"type":"done","data":{"status":"ok"}}', ""])
        for more in ({}, {"explain": False}, {"format": "results"}, {"explain": "no"}):
            again = self.ask('gap{a="2"}', **more)[0].decode()
            self.assertEqual(again, "\n\n".join(lines), more)

    def test_columns_hold_the_values_of_results(self):
        for query in ("temperature", "odd", "gap", "sum by (path) (rate(http_requests_total[5m]))",
                      "temperature > 25", "vector(1)", "nothing"):
            with self.subTest(query=query):
                results = {(tuple(sorted(e["data"]["tags"].items())), e["data"]["timestamp"]):
                           e["data"]["value"] for e in self.ask(query)[1]
                           if e["type"] == "result"}
                raw, events = self.ask(query, format="batch")
                self.assertEqual(check_one_end(events), "ok")
                self.assertEqual(values_of_batches(events), results)
                self.assertFalse({e["type"] for e in events} - {"series", "batch", "done"})
                self.assertEqual(events[-1]["data"], {"status": "ok"})
                self.assertEqual(bool(results), query != "nothing")

    def check_story(self, events):
        """Stages in order, a plan, every work item fetched, and a receipt that adds up."""
        stages = [e["data"]["name"] for e in events if e["type"] == "stage"]
        self.assertEqual(stages, ["queued", "planning", "working", "answering"])
        plans = [e["data"] for e in events if e["type"] == "plan"]
        self.assertEqual(len(plans), 1)
        works = {}
        for event in events:
            if event["type"] == "works":
                self.assertTrue(event["data"]["changed"])
                works.update({w["id"]: w for w in event["data"]["changed"]})
        self.assertEqual(sorted(works), [w["id"] for w in plans[0]["works"]])
        self.assertEqual({w["state"] for w in works.values()}, {"fetched"})
        done = events[-1]["data"]
        self.assertEqual(done["coverage"]["works"], len(works))
        self.assertEqual(done["coverage"]["segments"], plans[0]["estimate"]["segments"])
        self.assertEqual(done["stats"]["samples"], sum(w["samples"] for w in works.values()))
        self.assertGreater(done["stats"]["peak_memory_bytes"], 0)
        return plans[0], works, done

    def test_a_watched_query_tells_its_story(self):
        query = "sum by (path) (rate(http_requests_total[5m])) / 2"
        raw, events = self.ask(query, format="batch", explain=True)
        plan, works, done = self.check_story(events)
        self.assertEqual(events[0], {"type": "stage", "data": {
            "name": "queued", "t_ms": events[0]["data"]["t_ms"]}})
        self.assertTrue(plan["query_id"])
        self.assertEqual(len(plan["plan"]["leaves"]), 1)
        self.assertIn("http_requests_total", plan["plan"]["leaves"][0]["text"])
        self.assertEqual(plan["plan"]["tree"]["node"], "scalar_op")
        start, end = plan["plan"]["tree"]["pos"]
        self.assertEqual(query[start:end], query)
        for work in works.values():
            self.assertIn(work["worker"], ("worker-0", "worker-1"))
            self.assertEqual((work["attempt"], work["failures"]), (1, 0))
            self.assertGreater(work["artifact_bytes"], 0)
        # The same values as without, and the same receipt again.
        self.assertEqual(values_of_batches(events),
                         values_of_batches(self.ask(query, format="batch")[1]))
        again = self.check_story(self.ask(query, explain=True)[1])[2]
        self.assertEqual(again["coverage"], done["coverage"])
        self.assertEqual(again["stats"]["points"], done["stats"]["points"])
        self.assertEqual(again["stats"]["series"], done["stats"]["series"])

    def test_a_bad_query_is_said_in_the_stream_that_has_begun(self):
        _, events = self.ask("sum(", explain=True)
        self.assertEqual([e["type"] for e in events], ["stage", "stage", "error", "done"])
        self.assertIn("parse error", events[2]["data"]["message"])
        # Who does not watch gets a status, as ever.
        self.assertEqual(self.fabric.get("/api/v1/metrics/query", {"q": "sum("})[0], 400)

    def test_a_plan_and_its_cost_without_running_it(self):
        before = self.fabric.metric("promfabric_api_work_assigned_total")
        params = {"query": "sum(rate(http_requests_total[5m])) + temperature",
                  "start": START, "end": END, "step": 60}
        data = self.fabric.data("/api/v1/explain", params)
        self.assertEqual(len(data["plan"]["leaves"]), 2)
        self.assertEqual(data["estimate"]["segments"], sum(w["segments"] for w in data["works"]))
        self.assertEqual(data["estimate"]["bytes"], sum(w["bytes"] for w in data["works"]))
        self.assertGreater(data["estimate"]["samples"], 0)
        self.assertGreater(data["estimate"]["seconds"], 0)
        instant = self.fabric.data("/api/v1/explain", {"query": "up", "time": END})
        self.assertEqual(instant["plan"]["tree"]["steps"], 1)
        self.assertEqual(self.fabric.data("/api/v1/explain", {"query": "1 + 1"})["works"], [])
        self.assertEqual(self.fabric.metric("promfabric_api_work_assigned_total"), before)
        status, answer = self.fabric.json("/api/v1/explain", {"query": "sum("})
        self.assertEqual((status, answer["errorType"]), (400, "bad_data"))
        self.assertEqual(self.fabric.json("/api/v1/explain", {**params, "step": 0})[0], 400)

    def test_wide_answers_come_in_many_events(self):
        raw, events = self.ask('label_replace(temperature, "pad", "%s", "", "")' % ("x" * 3000),
                               step="10s", format="batch", explain=True)
        self.check_story(events)
        longest = max(len(block) for block in raw.split(b"\n\n"))
        self.assertLess(longest, 64 << 10)


class Terminal(Fabrics):
    """promfabric query --explain, with its output in a file and in a terminal."""
    def ask_program(self, query, *flags, **kwargs):
        return subprocess.run([BINARY, "query", f"--url=http://127.0.0.1:{self.fabric.api_port}",
                               "--explain", *flags, query], stdout=subprocess.PIPE, check=False,
                              timeout=60, **kwargs)

    def test_the_tree_comes_before_the_answer(self):
        ran = self.ask_program("sum by (job) (rate(http_requests_total[5m])) / 2", f"--end={END}",
                               stderr=subprocess.PIPE)
        text = ran.stdout.decode()
        self.assertEqual((ran.returncode, ran.stderr), (0, b""), text)
        self.assertRegex(text, r"(?s)queued at \d+ ms.*scalar_op\n.*leaf: sum by \(job\).*4 of 4 work "
                               r"items.*work 3: fetched on worker-[01]; 1 segments.*stands on 4 "
                               r"segments in 4 work items, checksum [0-9a-f]{16}\n\{job=")
        events = [json.loads(line) for line in self.ask_program(
            "vector(1)", "--json").stdout.decode().splitlines()]
        self.assertEqual(events[0]["type"], "stage")
        bad = self.ask_program("sum(", stderr=subprocess.PIPE)
        self.assertEqual(bad.returncode, 1)
        self.assertIn(b"parse error", bad.stderr)

    def test_a_terminal_sees_it_live(self):
        head, tail = pty.openpty()
        ran = self.ask_program("sum(temperature)", f"--end={END}", stderr=tail)
        os.close(tail)
        seen = b""
        try:
            while piece := os.read(head, 65536):
                seen += piece
        except OSError:
            pass  # the other end is closed, and all is read
        os.close(head)
        self.assertEqual(ran.returncode, 0)
        self.assertIn(b"0 of 4 work items", seen)
        self.assertRegex(seen, rb"\x1b\[\d+A\x1b\[J$")  # and takes it back
        self.assertNotIn(b"\x1b", ran.stdout)


class Lost(unittest.TestCase):
    def test_work_of_a_killed_worker_is_seen_lost_and_elsewhere(self):
        fabric = Fabric(2, ("--query-timeout=60s",), ("--work-samples-max=1000000000000",))
        self.addCleanup(fabric.close)
        load(fabric.store, standard_lines(), shards=8)
        fabric.wait_workers(2)
        got = []
        thread = threading.Thread(target=lambda: got.append(fabric.events(
            LONG, START, START + 10000, "1s", timeout=120, explain=True)))
        thread.start()
        self.addCleanup(thread.join)
        wait_for("work", lambda: all(w["accepted"] > 0 for w in fabric.data("/api/v1/workers")))
        fabric.workers[0].kill()
        wait_for("the loss", lambda: fabric.scaling()["workers"]["alive"] == 1)
        query = fabric.data("/api/v1/queries")[0]
        wait_for("the work elsewhere", lambda: sum(
            w["assigned"] + w["accepted"] for w in fabric.data("/api/v1/workers")
            if w["worker_id"] == "worker-1") > 4)
        fabric.request("DELETE", "/api/v1/queries/" + query["query_id"])
        wait_for("its end", lambda: got)
        events = got[0][2]
        self.assertEqual(check_one_end(events), "error")
        lost = {w["id"]: w for e in events if e["type"] == "works" for w in e["data"]["changed"]
                if w.get("reason", "").startswith("worker worker-0 was lost")}
        self.assertTrue(lost)
        self.assertEqual({w["worker"] for w in lost.values()}, {"worker-1"})
        self.assertTrue(all(w["attempt"] > 1 for w in lost.values()), lost)
        times = [e["data"]["t_ms"] for e in events if e["type"] == "works"]
        self.assertTrue(all(b - a >= 90 for a, b in zip(times, times[1:-1])), times)


if __name__ == "__main__":
    unittest.main()
