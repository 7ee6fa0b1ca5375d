"""test_migrations.py - real keepers come, go, die and lose their disks: everything that is named stays with its owners."""
import shutil
import time
import unittest

from clusters import ClusterTest
from harness import wait_for
from heads import status, write
from keepers import Keeper, api

NOW = int(time.time() * 1000) - 60000
NODES = "/v1/admin/storage-nodes"
MIGRATIONS = "/v1/admin/migrations"


class MigrationTest(ClusterTest):
    def setUp(self):
        super().setUp()
        self.processes = []

    def tearDown(self):
        for process in self.processes:
            process.kill()
        super().tearDown()

    def fabric(self, nodes=1, keepers=3, copies=2, grace="24h", args=()):
        """Ingest nodes that seal into a ring of keepers. Nobody but the leader of meta tells these anything."""
        self.names = []
        if nodes == 1:
            self.nodes = [self.node("a", ["--bootstrap"])]
            self.nodes[0].args += self.args(args)
            self.nodes[0].start()
        else:
            self.nodes = [self.node(name, ["--election-timeout", "500ms"]) for name in "abc"]
            for node in self.nodes:
                node.args += [f"--peer={other.name}=127.0.0.1:{other.peer_port}" for other in self.nodes if other is not node]
                node.args += self.args(args)
            self.nodes[0].start("--bootstrap")
            for node in self.nodes[1:]:
                node.start(ready=False)
                self.join(self.nodes[0], node)
        self.keepers = {}
        for i in range(keepers):
            self.add(f"k{i}")
        answer = self.ask("POST", "/v1/admin/ring", {"copies": copies, "grace": grace})
        self.assertEqual(answer["changed"], True)
        wait_for("keepers to be told", lambda: all(int(n["incarnation"], 16) for n in self.nodes_of_ring()), 60)

    def args(self, args):
        self.store = "ring://" + ",".join(f"127.0.0.1:{n.port}" for n in self.nodes)
        return ["--segment-shards", "4", "--seal-age", "1s", "--store", self.store, *args]

    def ask(self, method, path, params=None):
        """Of any ingest node that answers; retried while meta has no leader."""
        def once():
            for node in self.nodes:
                try:
                    status_, answer = node.request(method, path, params, timeout=15)
                except OSError:
                    continue
                if status_ == 200:
                    return answer
                if status_ not in (429, 500, 503):
                    raise AssertionError((method, path, status_, answer))
            return None
        return wait_for(f"{method} {path}", once, 60)

    mend_every = "1h"  # keepers also mend themselves; here it is shown that the leader of meta brings everything

    def add(self, name):
        keeper = Keeper(self.folder, name, self.store, "--keep-mend-every", self.mend_every)
        self.processes.append(keeper)
        self.keepers[name] = keeper.start()
        return self.ask("POST", NODES, {"name": name, "url": keeper.url}).get("migration")

    def nodes_of_ring(self):
        return self.ask("GET", NODES)["nodes"]

    def state(self, name):
        return next(n for n in self.nodes_of_ring() if n["name"] == name)

    def write(self, value, tenants=8):
        """Samples of many tenants, whose shards lie in many slots; wait until all of them are sealed."""
        for i in range(tenants):
            lines = "".join(f'm{{s="{s}"}} {value + s} {NOW}\n' for s in range(12))
            self.assertEqual(write(self.nodes[0], lines, tenant=f"t{i}"), 204)

        def nothing_waits():
            for i in range(tenants):
                code, answer = status(self.nodes[0], f"t{i}")
                if code != 200 or any(p["ranges"] for p in answer["partitions"]):
                    return False
            return True
        wait_for("everything to be sealed", nothing_waits, 120)

    def ended(self, migration, timeout=120):
        def over():
            answer = self.ask("GET", f"{MIGRATIONS}/{migration}")
            return answer["status"] in ("completed", "rolled_back") and answer
        return wait_for("the migration to end", over, timeout)

    def copies(self):
        """By name of a blob: who holds it."""
        held = {}
        for name, keeper in self.keepers.items():
            for blob in keeper.blobs():
                held.setdefault(blob, set()).add(name)
        return held

    def check_answers(self, value, tenants=8):
        workers = [k for k in self.keepers.values() if k.process]
        reader = api(self.folder, self.store, self.nodes[0], workers)
        self.processes.append(reader.start())
        for i in range(tenants):
            def right():
                code, body, _ = reader.raw("GET", "/api/v1/query", {"query": "sum(m)", "time": NOW / 1000},
                                           headers={"X-Scope-OrgID": f"t{i}"})
                return code == 200 and f'"{12 * value + 66}"'.encode() in body
            wait_for(f"the answer of t{i}", right, 30)
        reader.kill()


class Alone(MigrationTest):
    def test_a_keeper_more_and_one_less_and_no_answer_changes(self):
        self.fabric()
        self.write(100)
        before = self.copies()
        self.assertTrue(before and all(len(who) >= 2 for who in before.values()), before)
        done = self.ended(self.add("k3"))
        self.assertEqual((done["status"], done["progress"]["percent"]), ("completed", 100.0))
        self.assertEqual(self.state("k3")["state"], "NORMAL")
        moved = len(self.keepers["k3"].blobs())
        self.assertEqual(done["progress"]["segments"], moved)
        self.assertGreater(moved, 0)
        self.check_answers(100)
        done = self.ended(self.ask("DELETE", NODES + "/k0")["migration"])
        self.assertEqual(done["status"], "completed")
        self.keepers.pop("k0").kill()
        held = self.copies()
        self.assertEqual(set(held), set(before))
        self.assertTrue(all(len(who) >= 2 for who in held.values()), held)
        self.check_answers(100)
        leader = self.nodes[0]
        self.assertEqual(leader.metric("promfabric_ingest_ring_nodes_down"), 0)
        self.assertGreaterEqual(leader.metric("promfabric_ingest_ring_moved_blobs_total"), moved)

    def test_what_former_owners_hold_goes_after_the_grace_period(self):
        self.fabric(grace="1s")
        self.write(5)
        self.ended(self.add("k3"))
        wait_for("former owners to be cleaned", lambda: not any(n["slots_to_clean"] for n in self.nodes_of_ring()), 120)
        self.assertTrue(all(len(who) == 2 for who in self.copies().values()), self.copies())
        wait_for("the record of the change to go", lambda: not self.ask("GET", MIGRATIONS)["migrations"], 60)
        self.check_answers(5)

    def test_a_keeper_that_dies_is_down_and_one_with_another_disk_is_told(self):
        self.fabric()
        self.write(7)
        keeper = self.keepers["k1"]
        keeper.kill()
        wait_for("it to be down", lambda: self.state("k1")["down"], 60)
        unwritable = self.nodes[0].metric("promfabric_ingest_ring_slots_unwritable")  # of two copies both are a majority
        self.assertTrue(0 < unwritable < 1024, unwritable)
        self.check_answers(7)
        old = self.state("k1")["incarnation"]
        shutil.rmtree(keeper.disk)
        keeper.start()
        wait_for("it to be up with its other disk",
                 lambda: not self.state("k1")["down"] and self.state("k1")["incarnation"] != old, 60)
        wait_for("everything to be writable", lambda: not self.nodes[0].metric("promfabric_ingest_ring_slots_unwritable"), 20)
        self.check_answers(7)

    def test_a_dead_keeper_is_replaced_if_that_is_wanted(self):
        self.fabric(keepers=4, copies=3, args=["--node-dead-after", "3s"])
        self.write(9)
        self.keepers.pop("k2").kill()
        wait_for("it to be removed", lambda: not any(n["name"] == "k2" and n["state"] != "REMOVED" for n in self.nodes_of_ring()), 120)
        self.assertTrue(all(len(who) >= 2 for who in self.copies().values()), self.copies())
        self.check_answers(9)


class Three(MigrationTest):
    def test_leaders_and_a_newcomer_that_die_in_the_middle_of_a_migration_lose_nothing(self):
        self.fabric(nodes=3, args=["--move-rate", "4KiB"])
        self.write(11, tenants=16)
        before = self.copies()
        migration = self.add("k3")
        died_running = 0
        for victim in ("leader", "newcomer", "leader"):
            time.sleep(1)
            leader = wait_for("a leader", lambda: self.leader(self.nodes, "meta"), 30)
            died_running += self.ask("GET", f"{MIGRATIONS}/{migration}")["status"] == "running"
            dies = leader if victim == "leader" else self.keepers["k3"]
            dies.kill()
            time.sleep(2)
            dies.start()
        self.assertGreater(died_running, 0)  # on a slow machine the last may come too late
        done = self.ended(migration, 180)
        self.assertEqual(done["status"], "completed", done)
        held = self.copies()
        self.assertEqual(set(held), set(before))
        self.assertGreater(len(self.keepers["k3"].blobs()), 0)
        self.check_answers(11, tenants=16)


if __name__ == "__main__":
    unittest.main()
