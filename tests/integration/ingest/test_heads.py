"""Heads as queries see them: what was acknowledged is in the next status and can be read, cut at it;
closed ranges go into the store; what is no longer here is 410."""
import json
import os
import threading
import time
import unittest

from harness import NodeTest, wait_for
import messages
from heads import fresh, read, status, stored, write
from messages import Series, version_1, version_2

NOW = int(time.time() * 1000)


def log_bytes(node):
    return node.metric("promfabric_ingest_queue_log_bytes")


def fill_log(node, size):
    """Samples, until the log has @size bytes; how many records."""
    records = 0
    while log_bytes(node) < size:
        lines = "".join(f'm{{s="{j}"}} {records}.{j} {NOW + records}\n' for j in range(5000))
        assert write(node, lines) == 204
        records += 1
    return records


class HeadsTest(NodeTest):
    def alone(self, *args, store=True):
        self.store = os.path.join(self.folder, "store")
        args = [*args, "--store", self.store] if store else list(args)
        return self.node("a", ["--bootstrap", *args]).start()

    def partition(self, node, tenant="default", **more):
        code, answer = status(node, tenant, **more)
        self.assertEqual(code, 200, answer)
        return answer["partitions"][0]

    def sealed(self, node, ranges, tenant="default"):
        """Wait until @ranges are in the store; the files told of."""
        return wait_for("ranges to be sealed", lambda: (lambda p: not p["ranges"] and len(
            {f["index"] for f in p["files"]}) >= ranges and p["files"])(self.partition(node, tenant)), 30)


class Reads(HeadsTest):
    def test_what_was_acknowledged_is_in_the_next_read(self):
        node = self.alone()
        for i in range(20):
            self.assertEqual(write(node, f'm{{s="{i % 3}"}} {i} {NOW + i}\n'), 204)
            self.assertEqual(fresh(node)[f'm{{s="{i % 3}"}}'][NOW + i], i)

    def test_a_read_is_cut_at_its_position(self):
        node = self.alone()
        cuts = []
        self.assertEqual(write(node, f"m 7 {NOW + 9}\n"), 204)  # only the latest sample is not written over
        for i in range(3):
            self.assertEqual(write(node, f"m {i} {NOW}\nn {i} {NOW + i}\n"), 204)
            cuts.append(self.partition(node)["applied"])
        partition = self.partition(node)
        generation = partition["ranges"][0]["generation"]
        for i, cut in enumerate(cuts):
            code, series = read(node, partition, generation, cut=cut)
            self.assertEqual((code, series), (200, {"m": {NOW: i, NOW + 9: 7}, "n": {NOW + j: j for j in range(i + 1)}}))
        code, answer = read(node, partition, generation, cut=partition["applied"] + 1)
        self.assertEqual((code, answer["error"]), (503, "unavailable"))

    def test_matchers_times_and_shards(self):
        node = self.alone()
        lines = "".join(f'm{{s="{i}"}} {i} {NOW + i}\n' for i in range(10))
        self.assertEqual(write(node, lines + f"n 1 {NOW}\n"), 204)
        partition = self.partition(node)
        generation = partition["ranges"][0]["generation"]
        code, series = read(node, partition, generation, match='m{s=~"[2-4]"}', min_ts=NOW + 3)
        self.assertEqual((code, sorted(series)), (200, ['m{s="3"}', 'm{s="4"}']))
        self.assertEqual(read(node, partition, generation, match="nothing")[0], 204)
        together = []
        for shard in range(4):
            code, series = read(node, partition, generation, shard=shard, shards=4, match="m")
            together += series or []
        self.assertEqual(sorted(together), [f'm{{s="{i}"}}' for i in range(10)])
        code, answer = status(node, min_ts=NOW - 1000, max_ts=NOW - 1)
        self.assertEqual(answer["partitions"][0]["ranges"], [])

    def test_what_cannot_be_asked(self):
        node = self.alone()
        self.assertEqual(write(node, f"m 1 {NOW}\n"), 204)
        partition = self.partition(node)
        generation = partition["ranges"][0]["generation"]
        for wrong, code in (({"shards": 3}, 400), ({"shard": 4, "shards": 4}, 400), ({"cut": "x"}, 400),
                            ({"match": "m{"}, 400), ({"tenant": "../x"}, 400), ({"queue": "xyz"}, 400),
                            ({"queue": "00000000000000ff"}, 410), ({"partition": 7}, 410),
                            ({"generation": generation + 1}, 410), ({"tenant": "other"}, 410)):
            ask = dict(wrong)
            body = {"tenant": "default", "partition": 0, "queue": partition["queue"],
                    "generation": generation, "cut": partition["applied"], "shard": 0, "shards": 1,
                    "min_ts": 0, "max_ts": NOW, **ask}
            got, answer = node.request("POST", "/v1/heads/read", body=json.dumps(body))
            self.assertEqual(got, code, (wrong, answer))
            self.assertTrue(answer["message"] or answer["error"], wrong)
        for body in (b"", b"[]", b"{", b"{}", b'{"tenant":"default"}', b'{"tenant":1,"min_ts":0,"max_ts":0}',
                     b'{"tenant":"t","min_ts":0,"max_ts":0,"covered":{}}'):
            self.assertEqual(node.request("POST", "/v1/heads/status", body=body)[0], 400, body)

    def test_only_operators_read_heads(self):
        keys = os.path.join(self.folder, "keys")
        with open(keys, "w") as file:
            file.write("operator-key-0123456789 *\ntenant-key-0123456789 t\n")
        os.chmod(keys, 0o600)
        node = self.alone("--api-keys", keys)
        operator = {"Authorization": "Bearer operator-key-0123456789"}
        tenant = {"Authorization": "Bearer tenant-key-0123456789"}
        self.assertEqual(write(node, f"m 1 {NOW}\n", headers=tenant), 204)
        self.assertEqual(status(node, "t")[0], 401)
        self.assertEqual(status(node, "t", headers=tenant)[0], 403)
        code, answer = status(node, "t", headers=operator)
        self.assertEqual(code, 200)
        partition = answer["partitions"][0]
        generation = partition["ranges"][0]["generation"]
        self.assertEqual(read(node, partition, generation, "t", headers=tenant)[0], 403)
        self.assertEqual(read(node, partition, generation, "t", headers=operator)[1], {"m": {NOW: 1}})

    def test_tenants_are_apart(self):
        node = self.alone()
        self.assertEqual(write(node, f"m 1 {NOW}\n", "a"), 204)
        self.assertEqual(write(node, f"m 2 {NOW}\n", "b"), 204)
        self.assertEqual((fresh(node, "a"), fresh(node, "b"), fresh(node, "c")),
                         ({"m": {NOW: 1}}, {"m": {NOW: 2}}, {}))


class Sealing(HeadsTest):
    def test_a_closed_range_goes_into_the_store_and_is_told(self):
        node = self.alone("--seal-age", "1s")
        self.assertEqual(write(node, f"m 1 {NOW}\n"), 204)
        first = self.partition(node)
        files = self.sealed(node, 1)
        self.assertEqual(stored(self.store), {"m": {NOW: 1}})
        for file in files:
            path = os.path.join(self.store, file["name"])
            self.assertEqual(os.path.getsize(path), file["size"])
            self.assertIn(f"_g{first['ranges'][0]['generation']}_", file["name"])
        # What the caller covers is not told again; under another queue's id it is.
        partition = self.partition(node)
        covered = {"partition": 0, "queue": partition["queue"], "index": partition["sealed_index"]}
        self.assertEqual(self.partition(node, covered=[covered])["files"], [])
        covered["queue"] = "0000000000000001"
        self.assertEqual(self.partition(node, covered=[covered])["files"], files)

    def test_a_later_range_stands_above_an_earlier_one(self):
        """Three ranges with one sample, the third equal to the first: it must not be taken for it."""
        node = self.alone("--seal-age", "1s")
        self.assertEqual(write(node, f"m 7 {NOW + 9}\n"), 204)
        self.sealed(node, 1)
        generations = []
        for i, value in enumerate((1, 2, 1)):
            self.assertEqual(write(node, f"# request {i}\nm {value} {NOW}\n"), 204)
            generations += [r["generation"] for r in self.partition(node)["ranges"]]
            self.sealed(node, i + 2)
        self.assertEqual(generations, sorted(set(generations)))
        self.assertEqual(len(generations), 3)
        self.assertEqual(stored(self.store), {"m": {NOW: 1, NOW + 9: 7}})

    def test_a_query_under_way_reads_what_was_sealed_meanwhile_then_it_is_gone(self):
        node = self.alone("--seal-age", "1s", "--query-timeout", "3s")
        self.assertEqual(write(node, f"m 7 {NOW + 9}\n"), 204)
        self.assertEqual(write(node, f"m 1 {NOW}\n"), 204)
        planned = self.partition(node)
        self.assertEqual(write(node, f"m 2 {NOW}\n"), 204)
        generation = planned["ranges"][0]["generation"]
        self.sealed(node, 1)
        self.assertEqual(read(node, planned, generation), (200, {"m": {NOW: 1, NOW + 9: 7}}))
        self.assertEqual(read(node, self.partition(node), generation),
                         (200, {"m": {NOW: 2, NOW + 9: 7}}))
        wait_for("the range to go", lambda: read(node, planned, generation)[0] == 410, 10)
        code, answer = read(node, planned, generation)
        self.assertEqual((code, answer["error"]), (410, "gone"))
        wait_for("its files to go", lambda: not os.listdir(node.data / "heads" / "0"))

    def test_while_the_store_is_away_everything_goes_on(self):
        """And at --data-bytes samples are refused, until it is back."""
        node = self.alone("--seal-age", "1s", "--query-timeout", "1s", "--data-bytes", "4MiB",
                          "--log-file-bytes", "1MiB")
        os.makedirs(self.store, exist_ok=True)
        blocked = os.path.join(self.store, "tenant=default")
        open(blocked, "w").close()  # where a folder should be
        want, code, rounds = {}, 204, 0
        while code == 204 and rounds < 200:
            value = rounds + 0.1
            code = write(node, "".join(f'm{{s="{i}"}} {value} {NOW + rounds}\n' for i in range(8000)))
            for i in range(8000 if code == 204 else 0):
                want.setdefault(f'm{{s="{i}"}}', {})[NOW + rounds] = value
            rounds += 1
        self.assertEqual(code, 503)
        self.assertTrue(fresh(node) == want)
        self.assertEqual(self.partition(node)["files"], [])
        node.kill()
        node.start()
        self.assertTrue(fresh(node) == want)
        os.unlink(blocked)
        wait_for("the store to have it", lambda: stored(self.store) == want, 60)
        wait_for("samples to be taken again", lambda: write(node, f"n 1 {NOW}\n") == 204, 60)

    def test_what_is_sealed_is_trimmed_from_the_log(self):
        node = self.alone("--seal-age", "3s", "--log-file-bytes", "1MiB")
        fill_log(node, 3 << 20)
        wait_for("the log to be short", lambda: log_bytes(node) < (3 << 19), 60)
        self.sealed(node, 1)


class Restarts(HeadsTest):
    def test_a_killed_node_comes_back_with_its_head(self):
        node = self.alone("--seal-age", "1s", store=False)
        want = {}
        for i in range(30):
            self.assertEqual(write(node, f'm{{s="{i % 7}"}} {i} {NOW + i}\n'), 204)
            want.setdefault(f'm{{s="{i % 7}"}}', {})[NOW + i] = i
            time.sleep(0.1)
        before = self.partition(node)
        self.assertGreater(len(before["ranges"]), 1)
        node.kill()
        node.start()
        self.assertEqual(fresh(node), want)
        after = self.partition(node)
        self.assertEqual(after["queue"], before["queue"])
        self.assertEqual([r["generation"] for r in after["ranges"]][:len(before["ranges"])],
                         [r["generation"] for r in before["ranges"]])

    def test_a_range_sealed_just_before_a_kill_is_not_lost_nor_doubled(self):
        node = self.alone("--seal-age", "1s")
        want = {}
        for i in range(4):
            self.assertEqual(write(node, f"m {i} {NOW + i}\n"), 204)
            want[NOW + i] = i
            time.sleep(0.5 + 0.3 * i)
            node.kill()
            node.start()
            together = fresh(node).get("m", {})
            together.update(stored(self.store).get("m", {}))
            self.assertEqual(together, want)
        wait_for("all to be stored", lambda: stored(self.store) == {"m": want}, 30)


class Three(HeadsTest):
    def cluster(self, *args):
        self.store = os.path.join(self.folder, "store")
        common = ["--store", self.store, "--election-timeout", "500ms", *args]
        nodes = [self.node(name, common) for name in "abc"]
        for node in nodes:
            node.args += [f"--peer={other.name}=127.0.0.1:{other.peer_port}"
                          for other in nodes if other is not node]
        nodes[0].start("--bootstrap")
        for node in nodes[1:]:
            node.start(ready=False)
            for change in ("add", "promote"):
                wait_for(f"{node.name}: {change}", lambda: nodes[0].request(
                    "POST", "/v1/members", {"change": change, "name": node.name})[0] == 200)
            wait_for(f"{node.name} to be ready", node.is_ready)
        wait_for("all to vote", lambda: all(self.voters(node) == 3 for node in nodes))
        return nodes

    def voters(self, node):
        code, answer = node.request("GET", "/v1/queues/metrics-0/status")
        return sum(m["role"] == "voter" for m in answer["members"]) if code == 200 else 0

    def leader(self, nodes):
        def known():
            for node in nodes:
                if node.process.poll() is None:
                    code, answer = status(node)
                    if code == 200:
                        return answer["partitions"][0]["leader"]
            return None
        name = wait_for("a leader", known, 30)
        return next(n for n in nodes if n.name == name)

    def test_any_node_tells_the_status_and_every_replica_reads(self):
        nodes = self.cluster()
        for i in range(10):
            self.assertEqual(write(nodes[i % 3], f"m {i} {NOW + i}\n"), 204)
        want = {"m": {NOW + i: i for i in range(10)}}
        for node in nodes:
            code, answer = status(node)
            self.assertEqual(code, 200, answer)
            partition = answer["partitions"][0]
            self.assertEqual(sorted(partition["replicas"]),
                             sorted(f"http://127.0.0.1:{n.port}" for n in nodes))
            leader = next(n for n in nodes if n.name == partition["leader"])
            generation = partition["ranges"][0]["generation"]
            if node is leader:  # followers have less to do
                self.assertEqual(partition["replicas"][-1], f"http://127.0.0.1:{leader.port}")
            else:  # the first one has what the status counts on: nobody is asked in vain
                first = next(n for n in nodes if partition["replicas"][0] == f"http://127.0.0.1:{n.port}")
                self.assertIn(first, (node, leader))
                self.assertEqual(read(first, partition, generation), (200, want))
            for replica in nodes:
                wait_for("the replica to catch up",
                         lambda: read(replica, partition, generation) == (200, want), 10)

    def test_a_leader_that_dies_takes_nothing_along(self):
        nodes = self.cluster("--seal-age", "1s")
        want = {}
        for i in range(6):
            leader = self.leader(nodes)
            self.assertEqual(write(leader, f"m {i} {NOW + i}\n"), 204)
            want[NOW + i] = i
            if i % 2:
                leader.kill()
                other = self.leader(nodes)
                together = fresh(other).get("m", {})
                together.update(stored(self.store).get("m", {}))
                self.assertEqual(together, want)
                leader.start()
            time.sleep(0.4)
        wait_for("all to be stored", lambda: stored(self.store) == {"m": want}, 60)

    def test_under_full_head_load_no_election_happens(self):
        nodes = self.cluster("--election-timeout", "2s")
        for i in range(4):
            lines = "".join(f'm{{s="{j}",t="{i}"}} {j} {NOW}\n' for j in range(5000))
            self.assertEqual(write(nodes[0], lines), 204)
        code, answer = status(nodes[0])
        partition = answer["partitions"][0]
        generation = partition["ranges"][0]["generation"]

        def elections():
            return sum(n.metric("promfabric_ingest_queue_elections_total") for n in nodes)
        before, stop, codes = elections(), threading.Event(), []

        def hammer(node):
            while not stop.is_set():
                codes.append(read(node, partition, generation)[0])
        threads = [threading.Thread(target=hammer, args=(nodes[i % 3],)) for i in range(6)]
        for thread in threads:
            thread.start()
        try:
            end = time.monotonic() + 8
            while time.monotonic() < end:
                self.assertEqual(write(nodes[len(codes) % 3], f"n {len(codes)} {NOW + len(codes)}\n"), 204)
                time.sleep(0.05)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertGreater(codes.count(200), 0)
        self.assertEqual(elections(), before)

    def test_without_a_majority_the_partition_is_named(self):
        nodes = self.cluster("--leader-wait", "1s")
        self.assertEqual(write(nodes[0], f"m 1 {NOW}\n"), 204)
        nodes[1].kill()
        nodes[2].kill()
        began = time.monotonic()
        code, answer = wait_for("a refusal", lambda: (lambda s: s[0] == 503 and s)(
            status(nodes[0], timeout=20)), 30)
        self.assertLess(time.monotonic() - began, 15)
        self.assertEqual((code, answer["partition"]), (503, 0))
        self.assertIn("partition 0", answer["message"])
        nodes[1].start(ready=False)
        wait_for("a status again", lambda: status(nodes[0])[0] == 200, 30)
        self.assertEqual(fresh(nodes[0]), {"m": {NOW: 1}})

    def test_a_node_that_was_away_gets_the_head_with_the_snapshot(self):
        nodes = self.cluster("--seal-age", "3s", "--log-file-bytes", "1MiB")
        away = next(n for n in nodes if n is not self.leader(nodes))
        away.kill()
        there = [n for n in nodes if n is not away]
        fill_log(there[0], 3 << 20)
        wait_for("the log to be trimmed", lambda: all(log_bytes(n) < (3 << 19) for n in there), 60)
        self.assertEqual(write(there[0], f"fresh 1 {NOW}\n"), 204)
        away.start()
        code, answer = status(away)
        self.assertEqual(code, 200)
        partition = answer["partitions"][0]
        generation = partition["ranges"][-1]["generation"]
        wait_for("it to catch up", lambda: read(away, partition, generation, match="fresh") ==
                 (200, {"fresh": {NOW: 1}}), 30)
        self.assertGreater(away.metric("promfabric_ingest_queue_installs_total"), 0)


class Extras(HeadsTest):
    def ask(self, node, what, **body):
        return node.request("POST", f"/v1/heads/{what}", body=json.dumps({"tenant": "default", **body}))

    def exemplars(self, node, *match, **more):
        code, answer = self.ask(node, "exemplars", match=match, **{"min_ts": 0, "max_ts": NOW * 2, **more})
        self.assertEqual(code, 200, answer)
        return answer["data"]

    def test_metadata_of_both_versions_is_answered_and_survives_a_kill(self):
        node = self.alone(store=False)
        one = Series({"__name__": "one_total"}, [(NOW, 1.0)])
        two = Series({"__name__": "two_bytes"}, [(NOW, 1.0)], metadata=(2, "how \"large\"", "bytes"))
        self.assertEqual(messages.write(node, version_1([one], [(1, "one_total", "old", "")]))[0], 204)
        self.assertEqual(messages.write(node, version_1([one], [(1, "one_total", "how many", "")]))[0], 204)
        self.assertEqual(messages.write(node, version_2([two]), version=2)[0], 204)
        want = {"one_total": [{"type": "counter", "help": "how many", "unit": ""}],
                "two_bytes": [{"type": "gauge", "help": "how \"large\"", "unit": "bytes"}]}

        def told(**more):
            code, answer = self.ask(node, "metadata", **more)
            self.assertEqual(code, 200, answer)
            for (entry,) in answer["data"].values():
                self.assertGreater(entry.pop("generation"), 0)
            return answer["data"]
        for _ in range(2):
            self.assertEqual(told(), want)
            self.assertEqual(told(metric="one_total"), {"one_total": want["one_total"]})
            self.assertEqual(self.ask(node, "metadata", tenant="other"), (200, {"data": {}}))
            self.assertEqual(len(self.ask(node, "metadata", limit=1)[1]["data"]), 1)
            node.kill()
            node.start()

    def test_exemplars_are_answered_by_series_and_time(self):
        node = self.alone(store=False)
        def series(name, *exemplars):
            return Series({"__name__": "m", "s": name}, [(NOW, 1.0)], exemplars=[
                ([("trace_id", trace)], value, ts) for trace, value, ts in exemplars])
        self.assertEqual(messages.write(node, version_1([series("a", ("x", 1.5, NOW - 5), ("y", 2.0, NOW - 1)),
                                                         series("b", ("z", 3.0, NOW - 3))]))[0], 204)
        self.assertEqual(self.exemplars(node, 'm{s="a"}'), [
            {"seriesLabels": {"__name__": "m", "s": "a"}, "exemplars": [
                {"labels": {"trace_id": "x"}, "value": "1.5", "timestamp": (NOW - 5) / 1000},
                {"labels": {"trace_id": "y"}, "value": "2", "timestamp": (NOW - 1) / 1000}]}])
        self.assertEqual([s["seriesLabels"]["s"] for s in self.exemplars(node, "m")], ["a", "b"])
        self.assertEqual([s["seriesLabels"]["s"] for s in self.exemplars(node, "m", min_ts=NOW - 3, max_ts=NOW - 2)],
                         ["b"])
        self.assertEqual(len(self.exemplars(node, "m", "n", limit=1)), 1)
        self.assertEqual(self.exemplars(node, "nothing"), [])
        for bad in ({}, {"match": []}, {"match": ["m{"]}, {"match": [1]}, {"match": "m"}):
            self.assertEqual(self.ask(node, "exemplars", min_ts=0, max_ts=1, **bad)[0], 400, bad)
        node.kill()
        node.start()
        self.assertEqual(len(self.exemplars(node, "m")), 2)


class Load(HeadsTest):
    def test_reads_beyond_their_places_are_refused_and_writes_go_on(self):
        node = self.alone("--head-reads", "2", "--head-read-threads", "1")
        for i in range(4):
            lines = "".join(f'm{{s="{j}",t="{i}"}} {j} {NOW}\n' for j in range(5000))
            self.assertEqual(write(node, lines), 204)
        partition = self.partition(node)
        generation = partition["ranges"][0]["generation"]
        codes, stop = [], threading.Event()

        def hammer():
            while not stop.is_set():
                codes.append(read(node, partition, generation)[0])
        threads = [threading.Thread(target=hammer) for _ in range(6)]
        for thread in threads:
            thread.start()
        try:
            for i in range(20):
                self.assertEqual(write(node, f"n {i} {NOW + i}\n"), 204)
            wait_for("both", lambda: {200, 503} <= set(codes), 30)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(set(codes), {200, 503})
        self.assertEqual(read(node, partition, generation, match='m{s="1"}')[0], 200)


if __name__ == "__main__":
    unittest.main()
