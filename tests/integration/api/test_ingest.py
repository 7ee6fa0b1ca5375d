"""test_ingest.py - what ingest nodes acknowledged is in the next answer and stays there: real ingest nodes,
workers and an API, killed, restarted and sealing meanwhile."""
import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import unittest

from harness import Fabric, Process, free_port, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "..", "ingest"), os.path.join(HERE, "..", "..", "lib")]
from history import History  # noqa: E402
from messages import TYPE_2, Series, snappy, version_2  # noqa: E402

SEAL_AGE = "2s"


class Node:
    """One ingest node; its folder outlives its processes."""

    def __init__(self, folder, store, name, flags=()):
        self.folder, self.store, self.name, self.flags = folder, store, name, list(flags)
        self.port, self.peer_port = free_port(), free_port()
        self.process = None

    def start(self, *flags):
        self.process = Process(self.folder, self.name, [
            "ingest", f"--data={self.folder}/{self.name}", f"--ingest-id={self.name}",
            f"--store={self.store}", f"--http-listen=127.0.0.1:{self.port}",
            f"--peer-listen=127.0.0.1:{self.peer_port}", *self.flags, *flags])
        return self

    def request(self, method, path, body=None, headers=None, timeout=10):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()

    def await_ready(self):
        try:
            wait_for(self.name, self.ready, 60)
        except AssertionError as error:
            raise AssertionError(f"{error}: exit code {self.process.process.poll()}; log:\n"
                                 f"{self.process.log_text()[-6000:]}") from error

    def ready(self):
        try:
            return self.request("GET", "/readyz", timeout=2)[0] == 200
        except OSError:
            return False

    def write(self, lines, tenant="default"):
        """True once it is acknowledged; False if nobody knows."""
        try:
            status, body = self.request("POST", "/api/v1/import/prometheus", "\n".join(lines) + "\n",
                                        {"X-Scope-OrgID": tenant, "Content-Type": "text/plain"})
        except OSError:
            return False
        if status // 100 not in (2, 5) and status != 429:
            raise AssertionError((status, body))
        return status // 100 == 2


class Cluster:
    """An API, workers and ingest nodes over one store: a folder of its own, or the bucket that is given."""

    def __init__(self, nodes=1, workers=2, flags=(f"--seal-age={SEAL_AGE}",), api_flags=(), store=None):
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = tempfile.mkdtemp(prefix="pf-fresh-", dir=memory)
        self.fabric = Fabric.__new__(Fabric)
        if not store:
            store = os.path.join(self.folder, "store")
            os.mkdir(store)
        self.nodes = [Node(self.folder, store, f"n{i}", flags) for i in range(nodes)]
        for i, node in enumerate(self.nodes):
            node.flags += [f"--peer={other.name}=127.0.0.1:{other.peer_port}"
                           for other in self.nodes if other is not node]
            node.start(*(["--bootstrap"] if i == 0 else []))
        wait_for("the first node", self.nodes[0].ready, 60)
        for node in self.nodes[1:]:
            for change in ("add", "promote"):
                wait_for(f"{node.name}: {change}", lambda: self.nodes[0].request(
                    "POST", f"/v1/members?change={change}&name={node.name}")[0] == 200, 60)
        for node in self.nodes:
            node.await_ready()
        api_flags = [*api_flags, *(f"--ingest=127.0.0.1:{node.port}" for node in self.nodes)]
        self.fabric.__init__(workers, api_flags)
        self.fabric_store(store)

    def fabric_store(self, store):
        """The fabric of the harness has a store of its own: start again on this one."""
        for process in [self.fabric.api, *self.fabric.workers]:
            process.stop()
        self.fabric.store = store
        for i in range(len(self.fabric.workers)):
            self.fabric.start_worker(i)
        self.fabric.start_api()
        self.fabric.wait_workers(len(self.fabric.workers))

    def close(self):
        self.fabric.close()
        problems = []
        for node in self.nodes:
            node.process.stop(60)
            text = node.process.log_text()
            problems += [f"{node.name}: {text[text.index(mark):][:3000]}" for mark in
                         ("ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "runtime error:", "Assertion",
                          "WARNING: ThreadSanitizer") if mark in text]
        shutil.rmtree(self.folder, ignore_errors=True)
        assert not problems, problems

    def restart_nodes(self, number=signal.SIGKILL):
        for node in self.nodes:
            node.process.signal(number)
        for node in self.nodes:
            node.process.process.wait(60)
            node.process.log.close()
            node.start()
        for node in self.nodes:
            node.await_ready()

    def values(self, expr, at=None):
        """label i -> value, of an instant query."""
        result = self.fabric.query(expr, at or time.time() + 1)["result"]
        return {s["metric"].get("i"): float(s["value"][1]) for s in result}

    def segments(self):
        return list(pathlib.Path(self.fabric.store).rglob("*.parquet"))


def now_ms():
    return int(time.time() * 1000)


class Members(unittest.TestCase):
    """Nodes come and go under queries and writes."""

    def status(self, node):
        code, body = node.request("POST", "/v1/heads/status", json.dumps(
            {"tenant": "default", "min_ts": 0, "max_ts": now_ms()}))
        return code, json.loads(body)

    def change(self, at, change, name):
        wait_for(f"{name}: {change}", lambda: at.request(
            "POST", f"/v1/members?change={change}&name={name}")[0] == 200, 60)

    def epoch_above(self, node, epoch, members):
        """The epoch once partition 0 has these members."""
        def known():
            code, answer = self.status(node)
            part = answer["partitions"][0] if code == 200 else {}
            return code == 200 and sorted(part["members"]) == members and answer
        answer = wait_for(f"{members}", known, 60)
        self.assertGreater(answer["epoch"], epoch)
        return answer

    def test_a_member_added_and_one_removed_under_queries(self):
        cluster = Cluster(nodes=3)
        self.addCleanup(cluster.close)
        nodes, stop, errors, asked = cluster.nodes, threading.Event(), [], 0
        begun = now_ms()

        def work():
            nonlocal asked
            for i in range(100000):
                if stop.is_set():
                    return
                while not nodes[i % 2 * 2].write([f"m{{i=\"{i % 5}\"}} {i} {begun + i}"]):
                    pass
                try:
                    value = cluster.values(f'm{{i="{i % 5}"}}', (begun + i) / 1000 + 0.001)
                except AssertionError as error:
                    errors.append((i, str(error)))
                    continue
                asked += 1
                if value != {str(i % 5): i}:
                    errors.append((i, value))

        thread = threading.Thread(target=work)
        thread.start()
        try:
            epoch = self.epoch_above(nodes[0], 0, ["n0", "n1", "n2"])["epoch"]
            new = Node(cluster.folder, cluster.fabric.store, "n3", nodes[0].flags[:1])
            new.flags += [f"--peer={n.name}=127.0.0.1:{n.peer_port}" for n in nodes]
            new.start()
            cluster.nodes.append(new)
            self.change(nodes[0], "add", "n3")
            self.change(nodes[0], "promote", "n3")
            epoch = self.epoch_above(nodes[0], epoch, ["n0", "n1", "n2", "n3"])["epoch"]
            self.change(nodes[0], "remove", "n1")
            answer = self.epoch_above(nodes[0], epoch, ["n0", "n2", "n3"])
            self.assertNotIn(f"http://127.0.0.1:{nodes[1].port}", answer["partitions"][0]["replicas"])
            # Who has left says so, or knows of nobody: an API asks the next one.
            self.assertEqual(self.status(nodes[1])[0], 503)
            before = asked
            wait_for("queries to go on", lambda: asked > before + 10, 60)
        finally:
            stop.set()
            thread.join()
        self.assertEqual(errors, [])
        self.assertIn("joined or left", cluster.fabric.api.log_text())


class Visible(unittest.TestCase):
    """On one machine."""

    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)

    def check(self, want):
        got = self.cluster.values("last_over_time(s[1h])")
        self.assertEqual(got, want)

    def test_acknowledged_is_in_the_next_answer_and_stays(self):
        node, want = self.cluster.nodes[0], {}
        for round_ in range(25):
            lines = []
            for i in range(40):
                want[str(i)] = float(round_ * 100 + i)
                lines.append(f's{{i="{i}"}} {want[str(i)]} {now_ms()}')
            self.assertTrue(node.write(lines))
            self.check(want)
        self.cluster.restart_nodes()
        self.check(want)
        wait_for("segments", self.cluster.segments, 60)
        self.check(want)
        self.cluster.restart_nodes(signal.SIGTERM)
        self.check(want)
        self.cluster.fabric.api.stop()
        self.cluster.fabric.start_api()
        self.check(want)

    def test_sealing_is_not_seen(self):
        """Samples stay, each once, while ranges close, go to the store and are forgotten."""
        node, count, end = self.cluster.nodes[0], 0, time.monotonic() + 15
        while time.monotonic() < end:
            self.assertTrue(node.write([f't{{i="x"}} 1 {now_ms()}']))
            count += 1
            got = self.cluster.values("count_over_time(t[1h])")
            self.assertEqual(got, {"x": count})
        self.assertGreater(len(self.cluster.segments()), 1)
        self.assertEqual(self.cluster.fabric.data("/api/v1/label/__name__/values"), ["t"])

    def test_a_tenant_sees_its_own_cardinality_fresh_and_sealed(self):
        node, fabric = self.cluster.nodes[0], self.cluster.fabric

        def counts(tenant):
            data = fabric.data("/api/v1/status/tsdb", headers={"X-Scope-OrgID": tenant})
            return data["headStats"]["numSeries"], {
                entry["name"]: entry["value"] for entry in data["seriesCountByMetricName"]}

        def send(round_):
            for tenant, metric, series in (("team-a", "orders", 7), ("team-b", "secrets", 3)):
                self.assertTrue(node.write([f'{metric}{{round="{round_}",n="{i}"}} 1' for i in range(series)],
                                           tenant))
        send(1)
        for _ in range(2):
            self.assertEqual(counts("team-a"), (7, {"orders": 7}))
            self.assertEqual(counts("team-b"), (3, {"secrets": 3}))
            self.assertEqual(counts("team-c"), (0, {}))
            wait_for("segments", self.cluster.segments, 60)
        send(2)
        self.assertEqual(counts("team-a"), (14, {"orders": 14}))
        self.assertEqual(counts("team-b"), (6, {"secrets": 6}))

    def test_metadata_and_exemplars_are_answered(self):
        ts = now_ms()
        series = Series({"__name__": "m_total", "a": "b"}, [(ts, 1.0)],
                        exemplars=[((("trace_id", "x"),), 1.5, ts)], metadata=(1, "what it is", "s"))
        status, body = self.cluster.nodes[0].request(
            "POST", "/api/v1/write", snappy(version_2([series])),
            {"Content-Type": TYPE_2, "Content-Encoding": "snappy",
             "X-Prometheus-Remote-Write-Version": "2.0.0"})
        self.assertEqual(status, 204, body)
        self.assertEqual(self.cluster.fabric.data("/api/v1/metadata"),
                         {"m_total": [{"type": "counter", "help": "what it is", "unit": "s"}]})
        (found,) = self.cluster.fabric.data("/api/v1/query_exemplars", {
            "query": "rate(m_total[5m])", "start": ts / 1000 - 60, "end": ts / 1000 + 60})
        self.assertEqual(found["seriesLabels"], {"__name__": "m_total", "a": "b"})
        self.assertEqual([(e["labels"], e["value"]) for e in found["exemplars"]],
                         [({"trace_id": "x"}, "1.5")])
        self.assertEqual(self.cluster.fabric.data("/api/v1/query_exemplars", {
            "query": "other", "start": ts / 1000 - 60, "end": ts / 1000 + 60}), [])

    def test_without_space_writes_are_503_and_queries_go_on(self):
        node = self.cluster.nodes[0]
        self.assertTrue(node.write([f's{{i="x"}} 1 {now_ms()}']))
        node.process.stop()
        node.start("--disk-reserve=1000TiB")  # as if the disk were full but for its reserve
        wait_for("the node", node.ready, 60)
        for _ in range(5):
            status, why = node.request("POST", "/api/v1/import/prometheus", f's{{i="y"}} 1 {now_ms()}\n')
            self.assertEqual(status, 503, why)
            self.assertIn(b"no space", why)
            self.check({"x": 1.0})
        node.process.stop()
        node.start()
        wait_for("the node", node.ready, 60)
        self.assertTrue(node.write([f's{{i="y"}} 2 {now_ms()}']))
        self.check({"x": 1.0, "y": 2.0})

    def test_without_ingest_nodes_queries_fail_and_say_so(self):
        self.assertTrue(self.cluster.nodes[0].write([f's{{i="x"}} 1 {now_ms()}']))
        self.cluster.nodes[0].process.kill()
        began = time.monotonic()
        status, answer = self.cluster.fabric.json("/api/v1/query", {"query": "s"})
        self.assertEqual((status, answer["errorType"]), (503, "unavailable"))
        self.assertIn("partition", answer["error"])
        self.assertLess(time.monotonic() - began, 10 + 20)  # it waits 10 s; the rest is a busy machine's
        self.cluster.nodes[0].start()
        wait_for("the node", self.cluster.nodes[0].ready)
        self.check({"x": 1.0})


class Checker(unittest.TestCase):
    def test_stale_reads_lost_writes_and_inventions_are_found(self):
        for bad in (0, 3):
            history = History()
            for _ in range(2):
                history.end_write(history.begin_write())
            history.end_read(history.begin_read(), bad)
            self.assertEqual(len(history.problems), 1)
        history = History()
        history.begin_write()
        history.end_read(history.begin_read(), 1)  # it counts although nobody said so ...
        history.end_read(history.begin_read(), 0)  # ... and then for ever
        self.assertEqual(len(history.problems), 1)


class Faults(unittest.TestCase):
    """Three ingest nodes, workers and an API under faults, one at a time: killed, stopped for a while, all
    ingest nodes killed at once."""
    seconds = float(os.environ.get("FRESH_SECONDS", "20"))
    seed = os.environ.get("FRESH_SEED", "1")
    series = 4

    def setUp(self):
        self.cluster = Cluster(nodes=3)
        self.addCleanup(self.cluster.close)
        self.stop = threading.Event()
        self.errors, self.reads, self.writes, self.failed, self.faults = [], 0, 0, 0, 0
        self.histories = [History() for _ in range(self.series)]

    def guarded(self, target, *args):
        def run():
            try:
                while not self.stop.is_set():
                    target(*args)
            except Exception as error:  # pylint: disable=broad-except
                self.errors.append(str(error))
        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def write_one(self, i, random_):
        """The next value of a series, until somebody says that it is written."""
        history = self.histories[i]
        value = history.begin_write()
        line = f's{{i="{i}"}} {value} {self.base + value}'
        while not self.stop.is_set():
            if random_.choice(self.cluster.nodes).write([line]):
                history.end_write(value)
                self.writes += 1
                return
            time.sleep(0.05)

    def read_all(self):
        least = [history.begin_read() for history in self.histories]
        try:
            status, answer = self.cluster.fabric.json("/api/v1/query", {
                "query": "last_over_time(s[1h])", "time": self.base / 1000 + 3000})
        except OSError as error:
            self.errors.append(repr(error))
            return
        if status != 200:
            if status != 503:
                self.errors.append(answer["error"])
            self.failed += 1
            return
        got = {s["metric"]["i"]: float(s["value"][1]) for s in answer["data"]["result"]}
        for i, history in enumerate(self.histories):
            history.end_read(least[i], got.get(str(i), 0))
        self.reads += 1

    def kill_node(self, random_):
        node = random_.choice(self.cluster.nodes)
        node.process.kill()
        self.stop.wait(1)
        node.start()

    def stop_node(self, random_):
        node = random_.choice(self.cluster.nodes)
        node.process.signal(signal.SIGSTOP)
        self.stop.wait(random_.choice((0.3, 3)))
        node.process.signal(signal.SIGCONT)

    def end_node(self, random_):
        node = random_.choice(self.cluster.nodes)
        node.process.stop(60)
        node.start()

    def kill_all(self, _random):
        self.cluster.restart_nodes()

    def kill_worker(self, random_):
        i = random_.randrange(len(self.cluster.fabric.workers))
        self.cluster.fabric.workers[i].kill()
        self.cluster.fabric.start_worker(i)

    def fault(self, random_):
        """One of them; in a short run those first that matter most."""
        kinds = [self.kill_node, self.stop_node, self.kill_worker, self.kill_all, self.end_node]
        kind = kinds[self.faults] if self.faults < len(kinds) else random_.choice(kinds)
        self.faults += 1
        kind(random_)
        for node in self.cluster.nodes:
            node.await_ready()
        self.stop.wait(1)

    def test_no_read_is_stale_and_nothing_is_lost(self):
        self.base = now_ms() - 3_000_000
        threads = [self.guarded(self.write_one, i, random.Random(i)) for i in range(self.series)]
        threads += [self.guarded(self.read_all) for _ in range(2)]
        threads += [self.guarded(self.fault, random.Random(self.seed))]
        time.sleep(self.seconds)
        self.stop.set()
        for thread in threads:
            thread.join()
        self.assertFalse(self.errors, "\n".join(self.errors))
        self.assertEqual([h.problems for h in self.histories], [[]] * self.series)
        self.assertGreater(self.reads, 5)
        self.assertGreater(self.writes, 20)
        for node in self.cluster.nodes:
            node.await_ready()
        want = {str(i): h.acknowledged for i, h in enumerate(self.histories)}
        self.cluster.restart_nodes()
        got = self.cluster.values("count_over_time(s[1h])", self.base / 1000 + 3000)
        for i, acknowledged in want.items():
            self.assertTrue(acknowledged <= got[i] <= self.histories[int(i)].begun, (i, got, want))
        print(f"seed {self.seed}: {self.faults} faults, {self.writes} writes, {self.reads} reads, "
              f"{self.failed} queries failed and said so")


if __name__ == "__main__":
    unittest.main()
