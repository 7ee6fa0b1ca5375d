"""test_explain.py - queries that are watched: their events, and that others see none of them."""
import http.client
import json
import os
import pty
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
from harness import (BINARY, LONG, START, Fabric, check_one_end, load, standard_lines,  # noqa: E402
                     wait_for)

END = START + 3600


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

    def test_times_of_nodes_are_told_in_the_order_of_the_tree(self):
        _, events = self.ask("sum by (path) (rate(http_requests_total[5m])) / 2 > 0", explain=True)
        plan, _, done = self.check_story(events)

        def nodes(tree):
            return [tree["node"]] + [n for child in tree.get("children", ()) for n in nodes(child)]
        names = nodes(plan["plan"]["tree"])
        self.assertEqual(len(done["nodes"]), len(names))
        for name, node in zip(names, done["nodes"]):
            self.assertGreater(node["blocks"], 0, name)
        self.assertGreater(done["nodes"][0]["series"], 0)
        spent = sum(node["self_us"] for node in done["nodes"]) / 1e6
        self.assertGreater(spent, 0)
        self.assertLessEqual(spent, done["stats"]["answering_seconds"] + 0.001)

    def test_stats_of_all_have_the_same_figures(self):
        params = {"query": "sum(rate(http_requests_total[5m]))", "start": START, "end": END,
                  "step": 60}
        plain = self.fabric.data("/api/v1/query_range", params)
        some = self.fabric.data("/api/v1/query_range", {**params, "stats": "1"})
        full = self.fabric.data("/api/v1/query_range", {**params, "stats": "all"})
        self.assertNotIn("stats", plain)
        self.assertEqual(set(some["stats"]), {"timings", "samples"})
        self.assertEqual((some["result"], full["result"]), (plain["result"], plain["result"]))
        fabric = full["stats"]["fabric"]
        done = self.ask(params["query"], explain=True)[1][-1]["data"]
        self.assertEqual(fabric["coverage"], done["coverage"])
        self.assertEqual(fabric["stats"]["samples"], done["stats"]["samples"])
        self.assertEqual(fabric["stats"]["samples"], full["stats"]["samples"]["samplesRead"])
        self.assertEqual(len(fabric["nodes"]), len(done["nodes"]))
        self.assertEqual(fabric["stats"]["series"], 1)
        instant = self.fabric.query("up", END, stats="all")
        self.assertGreater(instant["stats"]["fabric"]["coverage"]["works"], 0)

    def test_wide_answers_come_in_many_events(self):
        raw, events = self.ask('label_replace(temperature, "pad", "%s", "", "")' % ("x" * 3000),
                               step="10s", format="batch", explain=True)
        self.check_story(events)
        longest = max(len(block) for block in raw.split(b"\n\n"))
        self.assertLess(longest, 64 << 10)


class Costly(unittest.TestCase):
    def test_what_would_cost_too_much_is_refused_with_the_estimate(self):
        fabric = Fabric(1, ("--query-cost-max=1ms",))
        self.addCleanup(fabric.close)
        # A worker is taken to read 40 samples of three bytes each in a microsecond.
        load(fabric.store, [f'wide{{n="{i}"}} {i}.5+{i}.25x480' for i in range(1600)], shards=4)
        fabric.wait_workers(1)
        params = {"query": "sum(wide)", "start": START, "end": END, "step": 60}
        estimate = fabric.data("/api/v1/explain", params)["estimate"]
        self.assertGreater(estimate["seconds"], 0.001)
        before = fabric.metric("promfabric_api_work_assigned_total")
        for path, ask in (("/api/v1/query_range", params), ("/api/v1/series", {"match[]": "wide"})):
            status, answer = fabric.json(path, ask)
            self.assertEqual((status, answer["errorType"]), (422, "execution"), answer)
            self.assertRegex(answer["error"], r"expected to scan for [0-9.e-]+ s, and may for 0\.001 "
                                              r"s: \d+ segments of \d+ bytes, about")
        events = fabric.events(params["query"], START, END, "60s", explain=True)[2]
        self.assertEqual(check_one_end(events), "error")
        self.assertIn("expected to scan", events[-2]["data"]["message"])
        self.assertEqual(fabric.metric("promfabric_api_work_assigned_total"), before)
        self.assertEqual(fabric.data("/api/v1/query", {"query": "1 + 1"})["result"][1], "2")


class Lists(Fabrics):
    """What ran and what runs, asked for and watched."""
    def watch(self, path, until, **kwargs):
        """Events of a watched list until @until says enough."""
        connection = http.client.HTTPConnection("127.0.0.1", self.fabric.api_port, timeout=20)
        self.addCleanup(connection.close)
        connection.request("GET", path, **kwargs)
        response = connection.getresponse()
        self.assertEqual((response.status, response.getheader("Content-Type")),
                         (200, "text/event-stream"))
        events = []
        while not until(events):
            line = response.readline()
            self.assertTrue(line, events)
            if line.startswith(b"data: "):
                events.append(json.loads(line[6:]))
        return events

    def test_finished_queries_are_listed(self):
        def finished(*queries):
            """Their rows, newest first, once all are over for the coordinator, too."""
            rows = [row for row in self.fabric.data("/api/v1/queries", {"state": "finished"})
                    if row["query"] in ("count(up)", "sum(")][:len(queries)]
            return rows if [row["query"] for row in rows] == list(queries) else None
        self.fabric.query("count(up)", END)
        wait_for("the first", lambda: finished("count(up)"))
        self.fabric.get("/api/v1/query", {"query": "sum("})
        bad, good = wait_for("both", lambda: finished("sum(", "count(up)"))
        self.assertEqual((good["outcome"], good["kind"], good["points"]), ("ok", "query", 1))
        self.assertEqual((good["segments"], good["works"]), (4, 4))
        self.assertGreater(good["samples"], 0)
        self.assertGreaterEqual(good["seconds"]["total"], good["seconds"]["working"])
        self.assertEqual((bad["outcome"], bad["works"]), ("parse", 0))
        self.assertIn("parse error", bad["error"])
        self.assertEqual(self.fabric.get("/api/v1/queries", {"state": "late"})[0], 400)
        self.assertEqual(len(self.fabric.data("/api/v1/queries", {"state": "finished",
                                                                  "limit": 1})), 1)

    def test_names_are_told_without_a_scan_where_the_catalogue_knows_them(self):
        paths = ("/api/v1/label/__name__/values", "/api/v1/labels", "/api/v1/label/job/values")
        scanned = [self.fabric.data(path) for path in paths]

        def known():
            """What is stored of every metric, once the catalogue has read all footers."""
            rows = self.fabric.data("/api/v1/storage/metrics")
            return rows if [row["name"] for row in rows] == scanned[0] else None
        stored = wait_for("all names", known)

        def told():
            """All lists, if none of them took work."""
            before = self.fabric.metric("promfabric_api_work_assigned_total")
            lists = [self.fabric.data(path, {"scan": 0}) for path in paths]
            return lists if self.fabric.metric(
                "promfabric_api_work_assigned_total") == before else None
        self.assertEqual(wait_for("lists without a scan", told), scanned)
        self.assertIn("temperature", scanned[0])
        whole = self.fabric.data("/api/v1/storage")["bytes"]
        self.assertAlmostEqual(sum(row["bytes"] for row in stored), whole, delta=len(stored))
        self.assertEqual(next(row["samples"] for row in stored if row["name"] == "temperature"),
                         12 * 481)
        # Another time, another tenant: nothing. A limit is one.
        self.assertEqual(self.fabric.data(paths[0], {"scan": 0, "start": 1, "end": 2}), [])
        self.assertEqual(self.fabric.data(paths[0], {"scan": 0},
                                          headers={"X-Scope-OrgID": "nobody"}), [])
        answer = self.fabric.json(paths[0], {"scan": 0, "limit": 1})[1]
        self.assertEqual((answer["data"], answer["warnings"]),
                         (scanned[0][:1], ["results truncated due to limit"]))
        # Who asks for what matches gets a scan, whatever else is said.
        self.assertEqual(self.fabric.data(paths[0], {"scan": 0, "match[]": "up"}), ["up"])

    def test_who_watches_sees_queries_come_and_go(self):
        def over(events):
            if len(events) == 1:
                self.fabric.query("count(temperature)", END)
            return any(row["query"] == "count(temperature)" for event in events
                       if event["type"] == "finished" for row in event["data"])
        events = self.watch("/api/v1/queries?watch=1", over)
        self.assertEqual(events[0]["type"], "queries")

    def test_who_watches_workers_sees_them_and_the_scaling(self):
        events = self.watch("/api/v1/workers?watch=true", lambda events: len(events) >= 4)
        self.assertEqual([event["type"] for event in events[:2]], ["workers", "scaling"])
        self.assertEqual({row["worker_id"] for row in events[0]["data"]}, {"worker-0", "worker-1"})
        self.assertEqual(events[1]["data"]["workers"]["alive"], 2)

    def test_watchers_do_not_hold_up_a_drain(self):
        fabric = Fabric(1)
        self.addCleanup(fabric.close)
        connection = http.client.HTTPConnection("127.0.0.1", fabric.api_port, timeout=20)
        self.addCleanup(connection.close)
        connection.request("GET", "/api/v1/queries?watch=1")
        response = connection.getresponse()
        self.assertTrue(response.readline())
        self.assertEqual(fabric.api.stop(timeout=20), 0)
        response.read()  # ends well, not cut

    def test_names_that_are_not_ours_are_refused_on_the_loopback(self):
        for host, status in (("evil.example", 403), ("localhost:80", 200), ("[::1]", 200),
                             (f"127.0.0.1:{self.fabric.api_port}", 200), ("evil.example.", 403)):
            for path in ("/api/v1/query?query=1", "/", "/metrics"):
                self.assertEqual(self.fabric.get(path, headers={"Host": host})[0], status,
                                 (host, path))
        fabric = Fabric(1, ("--http-host=metrics.example",))
        self.addCleanup(fabric.close)
        self.assertEqual(fabric.get("/metrics", headers={"Host": "metrics.example"})[0], 200)
        self.assertEqual(fabric.get("/metrics", headers={"Host": "evil.example"})[0], 403)


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
        self.assertRegex(text, r"(?s)queued at \d+ ms.*scalar_op  \(\d+ us in the API, 2 series\)\n.*leaf: sum "
                               r"by \(job\).*4 of 4 work items.*work 3: fetched on worker-[01]; 1 segments.*stands on 4 "
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
