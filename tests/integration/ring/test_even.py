"""test_even.py - keepers compare their documents with each other: what one lacks it gets without anybody reading it."""
import shutil
import unittest

from harness import wait_for
from test_documents import DocumentTest

LONG = 200  # they give way to everything else, also to whatever a test machine has to do


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
