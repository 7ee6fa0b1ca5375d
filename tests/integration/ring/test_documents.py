"""test_documents.py - documents on real keepers: written and read through any ingest node, at each level, with keepers away."""
import concurrent.futures
import signal
import time
import unittest

from harness import wait_for
from keepers import varint
from test_migrations import MIGRATIONS, MigrationTest, NODES

PATH = "/v1/key-value"


class DocumentTest(MigrationTest):
    def put(self, node, key, value, headers=None, method="POST", **params):
        headers = {"X-Scope-OrgID": "t", **(headers or {})}
        return node.request(method, PATH, {"key": key, **params}, value, headers)

    def get(self, node, key, tenant="t", **params):
        return node.request("GET", PATH, {"key": key, **params}, headers={"X-Scope-OrgID": tenant})

    def written(self, node, key, value, **params):
        """A write that is expected to be done; nodes learn of the ring one after the other."""
        def done():
            status, answer = self.put(node, key, value, **params)
            return status == 200 and answer
        return wait_for(f"{key} to be written", done, 30)

    def known(self):
        for node in self.nodes:
            self.written(node, f"probe {node.name}", b"x", level="all")

    def bytes_at(self, keeper):
        root = self.keepers[keeper].disk / "docs"
        return {str(f.relative_to(root)): f.read_bytes() for f in root.rglob("*") if f.is_file() and f.name[0] != "."}

    def outcome(self, node, outcome):
        return node.metric(f'promfabric_ingest_documents_requests_total{{outcome="{outcome}"}}')


class Together(DocumentTest):
    """Three ingest nodes and three keepers, which all of this happens to one after the other: a start costs seconds."""

    def test_documents_through_any_node_at_each_level(self):
        self.fabric(nodes=3, copies=3)
        self.known()
        self.every_level()
        self.concurrent_writes()
        self.deletions()
        self.idempotency()
        self.hostile_input()
        self.keepers_away()
        self.without_meta()

    def every_level(self):
        a, b, c = self.nodes
        for level in ("one", "quorum", "all"):
            answer = self.written(a, f"of {level}", f"value {level}", level=level)
            self.assertEqual((answer["status"], answer["key"]), ("ok", f"of {level}"))
        for node in self.nodes:
            status, answer = self.get(node, "of all", level="one")
            self.assertEqual((status, answer["value"], answer["siblings"]), (200, "value all", []))
            for level in ("one", "quorum"):
                status, answer = self.get(node, f"of {level}", level="all")
                self.assertEqual((status, answer["value"]), (200, f"value {level}"))
        self.assertEqual(self.get(b, "of all", tenant="u")[0], 404)  # another tenant's is another one
        raw = bytes(range(256))
        self.written(b, "bytes", raw)
        self.assertEqual(self.get(c, "bytes")[1]["base64"][:8], "AAECAwQF")
        self.written(b, "largest", b"x" * 65536)
        self.assertEqual(len(self.get(c, "largest")[1]["value"]), 65536)
        self.written(b, "empty", b"")
        self.assertEqual(self.get(c, "empty")[1]["value"], "")

    def concurrent_writes(self):
        a, b, c = self.nodes
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for each in [pool.submit(self.written, n, "k", f"by {n.name}") for n in (a, b)]:
                each.result()
        status, answer = self.get(c, "k")
        values = [answer["value"]] + [s["value"] for s in answer["siblings"]]
        self.assertEqual((status, sorted(values)), (200, ["by a", "by b"]))
        self.assertGreaterEqual(answer["time_ms"], answer["siblings"][0]["time_ms"])  # the later one wins
        self.assertGreater(c.metric("promfabric_ingest_documents_conflicts_total"), 0)
        # Who has read both replaces both, through whichever node.
        self.written(c, "k", "of both", context=answer["context"])
        status, answer = self.get(a, "k")
        self.assertEqual((answer["value"], answer["siblings"]), ("of both", []))
        # And many at the same moment through one node: the later ones replace the earlier ones, none is torn.
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda i: self.written(a, "many", f"value {i}"), range(16)))
        status, answer = self.get(b, "many", level="all")
        self.assertEqual((status, answer["siblings"]), (200, []))

    def deletions(self):
        a, b, _ = self.nodes
        self.written(a, "gone", "x")
        read = self.get(b, "gone")[1]
        self.assertEqual(self.put(b, "gone", None, method="DELETE", context=read["context"])[0], 200)
        status, answer = self.get(a, "gone")
        self.assertEqual((status, answer["error"]), (404, "not_found"))
        self.written(a, "gone", "again", context=answer["context"])
        self.assertEqual(self.get(b, "gone")[1]["value"], "again")
        self.assertEqual(self.get(b, "never")[0], 404)

    def idempotency(self):
        a, b, _ = self.nodes
        key = {"Idempotency-Key": "once"}
        status, first = self.put(a, "i", "x", key)
        self.assertEqual(status, 200)
        for node in (a, b):  # whoever is asked: it is in the document
            self.assertEqual(self.put(node, "i", "x", key), (200, first))
        self.assertEqual(self.put(b, "i", "y", key)[0], 409)
        self.assertEqual(self.put(b, "i", None, key, method="DELETE")[0], 409)
        status, answer = self.get(b, "i")
        self.assertEqual((answer["value"], answer["siblings"]), ("x", []))
        self.assertEqual(self.put(a, "i", "y", {"Idempotency-Key": "twice"})[0], 200)
        self.assertEqual(self.get(b, "i")[1]["value"], "y")
        self.assertEqual(self.put(b, "i", "x", key), (200, first))  # does not bring the former value back
        self.assertEqual(self.get(b, "i")[1]["value"], "y")
        self.assertEqual(self.outcome(b, "repeated"), 2)
        self.same_moment()

    def same_moment(self):
        """Two requests of one key at one node at the same moment: neither would find the other one in the document."""
        a, key = self.nodes[0], {"Idempotency-Key": "at once"}
        frozen = [self.keepers[name].process for name in ("k0", "k1")]
        for process in frozen:
            process.send_signal(signal.SIGSTOP)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            first = pool.submit(self.put, a, "o", "x", key)  # waits for a quorum
            try:
                def refused():
                    status, answer = self.put(a, "o", "y", key)
                    return status == 409 and "under way" in answer["message"]
                wait_for("the second one to be refused", refused, 4)
            finally:
                for process in frozen:
                    process.send_signal(signal.SIGCONT)
            status, answer = first.result()
        if status == 503:  # it had waited for too long
            status, answer = wait_for("the first one to be done", lambda: [r for r in [self.put(a, "o", "x", key)] if r[0] == 200], 30)[0]
        self.assertEqual(status, 200)
        self.assertEqual(self.put(a, "o", "x", key), (200, answer))
        self.assertEqual(self.put(a, "o", "y", key)[0], 409)
        self.assertEqual(self.get(a, "o")[1]["value"], "x")

    def hostile_input(self):
        a = self.nodes[0]
        context = self.get(a, "of all")[1]["context"]
        for status, params, value in ((413, {}, b"x" * 65537), (400, {"level": "most"}, b""), (400, {"level": "ONE"}, b""),
                                      (400, {"key": ""}, b""), (400, {"key": "k" * 513}, b""),
                                      (400, {"key": "a\nb"}, b""), (400, {"key": b"\xff"}, b""), (400, {"context": "x"}, b""),
                                      (400, {"context": context[:-2]}, b""), (400, {"context": "00" * 600}, b"")):
            answer = self.put(a, params.pop("key", "h"), value, **params)
            self.assertEqual(answer[0], status, (params, answer))
        self.assertEqual(self.put(a, "h", b"", {"Idempotency-Key": "k" * 257})[0], 400)
        self.assertEqual(self.put(a, "h", b"", {"X-Scope-OrgID": "no/tenant"})[0], 400)
        self.assertEqual(a.request("GET", PATH)[0], 400)
        self.assertEqual(a.request("PUT", PATH, {"key": "h"}, b"")[0], 405)
        self.assertEqual(self.get(a, "h" * 600)[0], 400)
        self.assertEqual(self.get(a, "h", level="some")[0], 400)
        self.assertEqual(self.get(a, "h")[0], 404)  # nothing of it was written
        # A context of numbers and times that are still to come cannot put the document out of reach.
        far = "01" + varint(1 << 61).hex() + "00"
        self.assertEqual(self.put(a, "h", b"", context=far)[0], 400)

    def keepers_away(self):
        a, b, _ = self.nodes
        self.keepers["k0"].kill()
        self.written(a, "one away", "x")
        self.written(a, "of all", "newer", context=self.get(a, "of all")[1]["context"])
        self.assertEqual(self.get(b, "one away")[1]["value"], "x")
        status, answer = self.put(a, "not everybody", "x", level="all")
        self.assertEqual((status, answer["error"], answer["unknown"]), (503, "unavailable", True))
        self.assertIn("2 of 3", answer["message"])
        said = {r["node"]: r["answer"] for r in answer["replicas"]}
        self.assertEqual((said["k1"], said["k2"]), ("ok", "ok"))
        self.assertNotEqual(said["k0"], "ok")
        self.keepers["k1"].kill()
        for status, answer in (self.put(a, "two away", "x"), self.get(b, "of all")):
            self.assertEqual(status, 503)
            self.assertEqual(len(answer["replicas"]), 3)
            self.assertNotEqual({r["node"]: r["answer"] for r in answer["replicas"]}["k0"], "ok")
        self.written(b, "by one", "x", level="one")
        self.assertEqual(self.get(a, "by one", level="one")[1]["value"], "x")
        self.assertGreater(self.outcome(a, "level_not_met"), 1)
        # Who was away gets what it missed.
        for name in ("k0", "k1"):
            self.keepers[name].start()
        wait_for("all of it to be repaired", lambda: self.bytes_at("k0") == self.bytes_at("k1") == self.bytes_at("k2"), 60)
        self.assertEqual(self.get(b, "two away", level="all")[1]["value"], "x")  # "unknown" was said, and it was there
        self.assertGreater(sum(n.metric("promfabric_ingest_documents_repairs_total") for n in self.nodes), 0)


    def without_meta(self):
        """Two of three ingest nodes are gone: nobody leads meta, and what is known of the ring goes on being used."""
        a, *others = self.nodes
        for node in others:
            node.kill()
        read = self.get(a, "of all")[1]
        self.written(a, "of all", "without meta", context=read["context"])
        self.assertEqual(self.get(a, "of all")[1]["value"], "without meta")
        # Requests leave a line with tenant and key, those that collide at info.
        self.assertRegex(a.log_text(), r'level=info [^\n]*msg="an idempotency key stands for another request" tenant=t key=o method=POST status=409')
        self.assertGreater(a.metric("promfabric_ingest_documents_seconds_count"), 20)


class Alone(DocumentTest):
    def test_a_node_that_restarts_numbers_no_write_twice(self):
        self.fabric(keepers=1, copies=1)
        a = self.nodes[0]
        seen = set()
        for round_ in range(3):
            for _ in range(3):
                context = self.written(a, "k", b"x")["context"]
                self.assertNotIn(context, seen)
                seen.add(context)
            before = self.get(a, "k")[1]
            a.kill()
            a.start()
            # A number given twice would be taken for the write that had it, and lost.
            self.written(a, "k", f"round {round_}", context=before["context"])
            self.assertEqual(self.get(a, "k")[1]["value"], f"round {round_}")
        self.assertRegex((a.data / "documents" / "clock").read_text(), r"^[0-9a-f]{16} [0-9]+\n$")

    def test_documents_move_with_their_slots(self):
        self.fabric(keepers=1, copies=1)
        a, count = self.nodes[0], 20
        for i in range(count):
            self.written(a, f"k{i}", f"value {i}" if i else b"x" * 65536)
        # Whoever was there before goes: what is read then comes from the one who came.
        for change in (lambda: self.add("n0"), lambda: self.ask("DELETE", f"{NODES}/k0")["migration"]):
            migration = change()
            while self.ask("GET", f"{MIGRATIONS}/{migration}")["status"] not in ("completed", "rolled_back"):
                self.written(a, f"k{count}", f"value {count}")
                count += 1
                time.sleep(0.05)
            self.assertEqual(self.ask("GET", f"{MIGRATIONS}/{migration}")["status"], "completed")
        self.keepers.pop("k0").kill()
        for i in range(1, count):
            status, answer = self.get(a, f"k{i}", level="all")
            self.assertEqual((status, answer.get("value"), answer.get("siblings")), (200, f"value {i}", []))
        self.assertEqual(len(self.get(a, "k0")[1]["value"]), 65536)


class Keys(DocumentTest):
    def test_without_storage_nodes_it_says_so(self):
        a = self.node("a", ["--bootstrap"]).start()
        status, answer = self.put(a, "k", b"x")
        self.assertEqual((status, answer["error"]), (503, "unavailable"))
        self.assertEqual(self.get(a, "k")[0], 503)


if __name__ == "__main__":
    unittest.main()
