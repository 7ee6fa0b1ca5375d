"""test_blobs.py - segments on our own nodes: sealed at a majority, listed from the log, read while keepers die and rot."""
import json
import os
import re
import shutil
import subprocess
import time
import unittest

from harness import BINARY, NodeTest, wait_for
from heads import status, write
from keepers import Keeper, api

NOW = int(time.time() * 1000) - 60000
NODES = "/v1/admin/storage-nodes"


class BlobsTest(NodeTest):
    def setUp(self):
        super().setUp()
        self.processes = []

    def tearDown(self):
        for process in self.processes:
            process.kill()
        super().tearDown()

    def started(self, process):
        self.processes.append(process)
        return process.start()

    def fabric(self, keepers=3, copies=3, shards=2, api_args=()):
        """An ingest node that seals into the ring, keepers that were told, and an API."""
        self.a = self.node("a", ["--bootstrap", "--segment-shards", str(shards), "--seal-age", "1s"])
        self.store = f"ring://127.0.0.1:{self.a.port}"
        self.a.args += ["--store", self.store]
        self.a.start()
        self.keepers = [self.started(Keeper(self.folder, f"k{i}", self.store)) for i in range(keepers)]
        for keeper in self.keepers:
            code, answer = self.a.request("POST", NODES, {"name": keeper.name, "url": keeper.url})
            self.assertEqual(code, 200, answer)
        code, answer = self.a.request("POST", "/v1/admin/ring", {"copies": copies})
        self.assertEqual(code, 200, answer)
        for keeper in self.keepers:
            self.assertEqual(keeper.tell()[0], 200)
        self.api = self.started(api(self.folder, self.store, self.a, self.keepers, *api_args))

    def write_and_seal(self, value, ts):
        lines = "".join(f'm{{s="{i}"}} {value + i} {ts}\n' for i in range(20))
        self.assertEqual(write(self.a, lines), 204)
        self.sealed()

    def sealed(self):
        def nothing_waits():
            code, answer = status(self.a)
            return code == 200 and not any(p["ranges"] for p in answer["partitions"])
        wait_for("everything to be sealed", nothing_waits, 60)

    def query(self, text="sum(m)", ts=NOW):
        code, body, _ = self.api.raw("GET", "/api/v1/query", {"query": text, "time": ts / 1000})
        answer = json.loads(body)
        self.assertEqual(code, 200, answer)
        return [float(row["value"][1]) for row in answer["data"]["result"]]


class Slice(BlobsTest):
    def test_what_is_sealed_is_with_a_majority_and_answers_queries(self):
        self.fabric()
        self.write_and_seal(100, NOW)
        held = [set(k.blobs()) for k in self.keepers]
        self.assertEqual(len([h for h in held if h == held[0] and h]), 3, held)
        self.assertEqual(self.query(), [20 * 100 + 190])


class Faults(BlobsTest):
    def cli(self, *args, code=0):
        done = subprocess.run([BINARY, "segments", *args, "--store", self.store], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, code, (done.stdout, done.stderr))
        return done.stdout

    def names(self):
        return sorted(re.findall(r"tenant=\S+\.parquet", self.cli("ls")))

    def again(self, *processes):
        for process in processes:
            process.start()

    def test_a_dead_keeper_stops_neither_writers_nor_queries(self):
        self.fabric()
        self.write_and_seal(100, NOW)
        self.keepers[0].kill()
        self.write_and_seal(200, NOW + 1000)
        self.assertEqual(self.query(ts=NOW), [20 * 100 + 190])
        self.assertEqual(self.query(ts=NOW + 1000), [20 * 200 + 190])
        held = [set(k.blobs()) for k in self.keepers]
        self.assertEqual(held[1], held[2])
        self.assertLess(len(held[0]), len(held[1]))

    def test_without_a_majority_nothing_is_sealed_and_nothing_is_lost(self):
        self.fabric()
        for keeper in self.keepers[1:]:
            keeper.kill()
        self.assertEqual(write(self.a, f"m 7 {NOW}\n"), 204)
        wait_for("sealing to fail", lambda: self.a.metric("promfabric_ingest_seal_failures_total") > 0, 60)
        self.assertEqual(self.names(), [])
        self.assertEqual(self.query(), [7])
        self.again(*self.keepers[1:])
        self.sealed()
        self.assertEqual(self.query(), [7])
        self.assertEqual(len(self.names()), 1)

    def test_all_processes_killed_and_started_again(self):
        self.fabric()
        self.write_and_seal(100, NOW)
        names = self.names()
        for process in (self.a, self.api, *self.keepers):
            process.kill()
        self.a.start()
        self.again(*self.keepers, self.api)
        self.assertEqual(self.names(), names)
        self.assertEqual(self.query(), [20 * 100 + 190])
        self.write_and_seal(200, NOW + 1000)
        self.assertEqual(len(self.names()), 2 * len(names))

    def test_a_damaged_blob_is_read_from_another_owner(self):
        self.fabric()
        self.write_and_seal(100, NOW)
        for path in [p for k in self.keepers[:2] for p in k.blobs().values()]:
            size = path.stat().st_size
            path.write_bytes(b"x" * size)
        self.cli("verify")
        self.assertEqual(self.query(), [20 * 100 + 190])

    def test_a_keeper_that_was_away_gets_what_it_missed(self):
        self.fabric()
        self.keepers[0].kill()
        self.write_and_seal(100, NOW)
        self.a.kill()
        shutil.rmtree(self.a.data / "handoff")  # so that nobody sends it
        self.again(self.a, self.keepers[0])
        names = set(self.names())
        wait_for("the keeper to be complete", lambda: set(self.keepers[0].blobs()) >= names, 60)
        # By itself or from who put it, whichever is quicker.
        wait_for("it to be told", lambda: self.keepers[0].metric("promfabric_keeper_mended_total") +
                 self.a.metric("promfabric_ingest_handoff_delivered_total") >= len(names), 60)
        for name, path in self.keepers[0].blobs().items():
            self.assertEqual(path.read_bytes(), self.keepers[1].blobs()[name].read_bytes())

    def test_a_blob_that_rots_is_fetched_again(self):
        self.fabric()
        self.write_and_seal(100, NOW)
        before = {name: path.read_bytes() for name, path in self.keepers[0].blobs().items()}
        for name, path in self.keepers[0].blobs().items():
            path.write_bytes(b"x" * len(before[name]))
        wait_for("damage to be found", lambda: self.keepers[0].metric("promfabric_keeper_damaged_total") >= len(before), 60)
        wait_for("it to be mended", lambda: {n: p.read_bytes() for n, p in self.keepers[0].blobs().items()} == before, 60)
        self.assertEqual(self.query(), [20 * 100 + 190])

    def test_works_read_blobs_of_their_own_disk_in_place(self):
        self.fabric()
        self.write_and_seal(100, NOW)
        self.assertEqual(self.query(), [20 * 100 + 190])
        for keeper in self.keepers:
            self.assertEqual(keeper.metric("promfabric_worker_downloads_total"), 0)
            self.assertEqual(keeper.metric("promfabric_worker_cache_hits_total"), keeper.metric("promfabric_worker_kept_hits_total"))
            self.assertEqual(list((keeper.disk.parent / f"spool-{keeper.name}" / "segments").iterdir()), [])
        self.assertGreater(sum(k.metric("promfabric_worker_kept_hits_total") for k in self.keepers), 0)

    def test_what_was_removed_stays_removed(self):
        self.fabric()
        self.write_and_seal(100, NOW)
        self.write_and_seal(200, NOW + 86400000 * 0 + 1000)
        name = self.names()[0]
        self.keepers[0].kill()
        self.cli("rm", "--yes", name)
        left = self.names()
        self.assertNotIn(name, left)
        self.again(self.keepers[0])
        self.assertEqual(self.names(), left)
        self.a.kill()
        self.a.start()
        self.assertEqual(self.names(), left)
        self.assertIn(name, self.keepers[0].blobs())  # until it is garbage

    def test_a_new_disk_is_another_life_and_is_filled_again(self):
        self.fabric()
        self.write_and_seal(100, NOW)
        keeper, held = self.keepers[0], set(self.keepers[1].blobs())
        before = keeper.raw("GET", "/v1/keep/status")[2]["keep-incarnation"]
        keeper.kill()
        shutil.rmtree(keeper.disk)
        keeper.start()
        self.assertNotEqual(keeper.raw("GET", "/v1/keep/status")[2]["keep-incarnation"], before)
        # The leader of meta tells it the epochs; before that it takes nothing.
        wait_for("it to be told", lambda: keeper.raw("GET", "/v1/keep/status")[2]["keep-told"] == "1", 60)
        wait_for("it to be complete", lambda: set(keeper.blobs()) >= held, 60)
        self.assertEqual(self.query(), [20 * 100 + 190])

    def test_other_ingest_nodes_than_its_own_are_refused(self):
        self.fabric()
        done = subprocess.run([BINARY, "compact", "--store", self.store, f"--ingest=127.0.0.1:{self.a.port}"], capture_output=True,
                              text=True, timeout=60)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("its own nodes are asked", done.stderr)


class Keys(NodeTest):
    """A keeper takes requests of those who have a key for all tenants, and nothing that cannot be."""

    def setUp(self):
        super().setUp()
        keys = os.path.join(self.folder, "keys")
        with open(keys, "w") as file:
            file.write("operator *\nteam one\n")
        os.chmod(keys, 0o600)
        self.keeper = Keeper(self.folder, "k", os.path.join(self.folder, "none"), "--keep-keys", keys)
        os.mkdir(os.path.join(self.folder, "none"))
        self.keeper.start()

    def tearDown(self):
        self.keeper.kill()
        super().tearDown()

    def test_only_the_operators_key_opens_it(self):
        for key, code in ((None, 401), ("wrong", 401), ("team", 403), ("operator", 412)):
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            status, body, _ = self.keeper.raw("POST", "/v1/keep/hold", {"slot": 1, "epoch": 1}, bytes([1, 0, 0]), headers)
            self.assertEqual(status, code, body)

    def test_requests_that_cannot_be_are_400(self):
        headers = {"Authorization": "Bearer operator"}
        for path, params in (("blob", {"slot": 1, "epoch": 1}), ("blob", {"slot": 1024, "epoch": 1, "name": "a"}),
                             ("blob", {"slot": 1, "epoch": "x", "name": "a"}), ("blob", {"slot": 1, "epoch": 1, "name": "../a"}),
                             ("doc", {"slot": 1, "epoch": 1, "name": "a~"}), ("docs", {"slot": 1})):
            self.assertEqual(self.keeper.raw("GET", f"/v1/keep/{path}", params, headers=headers)[0], 400, params)
        upload = {"slot": 1, "epoch": 1, "name": "a", "size": 1, "from": 0, "upload": "0" * 15 + "1", "sum": "0" * 32}
        for key, value in (("size", "x"), ("from", -1), ("upload", "1"), ("sum", "0" * 31), ("size", 1 << 60)):
            status, body, _ = self.keeper.raw("PUT", "/v1/keep/blob", {**upload, key: value}, b"x", headers)
            self.assertEqual(status, 400, (key, value, body))
        for path in ("tell", "hold", "stream"):
            status = self.keeper.raw("POST", f"/v1/keep/{path}", {"slot": 1, "epoch": 1}, b"\xff" * 50, headers)[0]
            self.assertEqual(status, 400, path)
        self.assertEqual(self.keeper.raw("PUT", "/v1/keep/blob", upload, b"x" * (5 << 20), headers)[0], 413)
        self.assertEqual(self.keeper.raw("GET", "/v1/keep/status", headers=headers)[0], 200)


if __name__ == "__main__":
    unittest.main()
