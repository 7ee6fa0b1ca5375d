"""test_even.py - owners that lack documents get them without anybody reading these: from hand-off, and from each other."""
import shutil
import unittest

from harness import wait_for
from test_documents import DocumentTest

LONG = 200  # they give way to everything else, also to whatever a test machine has to do


class Handed(DocumentTest):
    """Keepers that do not compare themselves: what they missed they get from the ingest node, over its death."""

    def test_what_an_owner_missed_is_kept_on_disk_and_joined_when_it_is_back(self):
        self.fabric(copies=3, args=["--handoff-pause", "10ms"])
        a = self.nodes[0]
        self.known()
        spool = a.data / "handoff"
        files = lambda folder: [f for f in (spool / folder).rglob("*") if f.is_file()]
        waiting = lambda: a.metric("promfabric_ingest_handoff_references")
        read = self.written(a, "changed", "before", level="all")["context"]
        for name in ("k0", "k1"):
            self.keepers[name].kill()
        # Not counted: with one keeper of three there is no quorum, however much could be kept for the others.
        self.assertEqual(self.put(a, "not enough", "x")[0], 503)
        self.keepers["k1"].start()
        for i in range(5):
            self.written(a, f"k{i}", f"value {i}")
        self.written(a, "changed", "after", context=read)
        wait_for("six writes to be kept", lambda: waiting() >= 6, 30)
        self.assertEqual(len(files("refs")), len(list((spool / "refs").rglob("k0/*"))) + len(list((spool / "refs").rglob("k1/*"))))
        kept = len(list((spool / "refs" / "k0").iterdir()))
        self.assertEqual(kept, 6)
        a.kill()  # what it noted in memory is gone
        a.start()
        wait_for("them to be read again", lambda: waiting() >= 6, 30)
        self.keepers["k0"].start()
        wait_for("hand-off to be empty", lambda: waiting() == 0, 60)
        self.assertEqual(files("refs") + files("store"), [])
        self.assertGreaterEqual(a.metric("promfabric_ingest_handoff_delivered_total"), 6)
        held, other = self.bytes_at("k0"), self.bytes_at("k2")
        self.assertEqual(self.outcome(a, "ok"), 0)  # without a read
        # All but what no quorum had, of which the node that was killed had notes alone.
        self.assertLessEqual(len(set(other) - set(held)), 1)
        for name in set(held):
            self.assertEqual(held[name], other[name])
        self.assertEqual(self.get(a, "changed", level="all")[1]["value"], "after")


class Even(DocumentTest):
    mend_every = "200ms"

    def test_a_wiped_disk_gets_its_documents_back_from_the_others_without_a_read(self):
        self.fabric(copies=3)
        a, k0 = self.nodes[0], self.keepers["k0"]
        self.known()
        for i in range(8):
            self.written(a, f"k{i}", f"value {i}" if i else b"x" * 65536, level="all")
        want = self.bytes_at("k1")
        self.assertEqual(want, self.bytes_at("k0"))
        wait_for("documents to be counted", lambda: k0.metric("promfabric_keeper_documents") == len(want), LONG)
        asked = self.outcome(a, "ok")
        k0.kill()
        shutil.rmtree(k0.disk)
        k0.start()
        wait_for("others to see what it lacks",
                 lambda: self.keepers["k1"].metric("promfabric_keeper_documents_slots_uneven") > 0, LONG)
        wait_for("its documents to be back", lambda: self.bytes_at("k0") == want, LONG)
        for name in self.keepers:
            wait_for("nothing to be uneven any more",
                     lambda: self.keepers[name].metric("promfabric_keeper_documents_slots_uneven") == 0, LONG)
        self.assertEqual(k0.metric("promfabric_keeper_documents_mended_total"), len(want))
        self.assertEqual(self.keepers["k1"].metric("promfabric_keeper_documents_mended_total"), 0)
        self.assertEqual(self.outcome(a, "ok"), asked)
        # What changed at one of them alone goes to the others, too: two that differ get the sum.
        self.keepers["k0"].kill()
        self.keepers["k1"].kill()
        self.written(a, "alone", "x", level="one")
        a.kill()  # with what it kept for the others
        shutil.rmtree(a.data / "handoff")
        a.start()
        self.keepers["k0"].start()
        self.keepers["k1"].start()
        wait_for("all to be equal", lambda: self.bytes_at("k0") == self.bytes_at("k1") == self.bytes_at("k2"), LONG)
        self.assertEqual(self.get(a, "alone", level="all")[1]["value"], "x")


if __name__ == "__main__":
    unittest.main()
