"""test_nodes.py - Fabric with real ingest nodes: what they lead and hold, one that dies, and the API's list of them."""
import os
import sys
import time
import unittest

from browser import SCREENS, By, Page, browser, wait_for

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
from test_ingest import Cluster, now_ms  # noqa: E402


class Nodes(Page):
    # An open page goes on asking while the API is started again.
    expected = ("ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE", "ERR_INCOMPLETE_CHUNKED_ENCODING")

    @classmethod
    def setUpClass(cls):
        SCREENS.mkdir(parents=True, exist_ok=True)
        cls.cluster = Cluster(nodes=3, workers=1, flags=("--partitions=8",))
        cls.addClassCleanup(cls.cluster.close)
        cls.fabric = cls.cluster.fabric
        cls.browser = browser()
        cls.addClassCleanup(cls.browser.quit)

    def nodes(self):
        return self.fabric.data("/api/v1/ingest")

    def led(self):
        return sorted(i for node in self.nodes() for i in node.get("leads", ()))

    def write(self, value):
        """A value for each of 100 series, sent again, as senders do, while a partition has no leader."""
        wait_for("a write", lambda: self.cluster.nodes[0].write([f's{{i="{k}"}} {value} {now_ms()}' for k in range(100)]))

    def test_nodes_are_shown_and_one_that_dies(self):
        for i in range(20):
            self.write(i)
        wait_for("a leader for each", lambda: self.led() == list(range(8)))
        wait_for("their names", lambda: [n.get("node") for n in self.nodes()] == ["n0", "n1", "n2"])
        wait_for("all of them at once", lambda: [n.get("head_series") for n in self.nodes()] == [100] * 3)
        self.open(tab="fabric")
        self.await_text("ingest", "n2")
        nodes = wait_for("answers of all", lambda: (found := self.nodes()) and all(
            n["state"] == "alive" for n in found) and found)
        wait_for("cards of all", lambda: self.shown("ingest").count("leads ") == 3)
        cards = self.browser.find_elements(By.CSS_SELECTOR, "[data-testid='ingest-node']")
        for card, node in zip(cards, nodes):
            for text in (node["node"], node["address"], f"leads {len(node['leads'])} of 8 partitions"):
                self.assertIn(text, card.text)
            self.assertRegex(card.text, r"Series in heads\s+100")
            self.assertEqual(len(card.find_elements(By.CSS_SELECTOR, ".squares .busy")), len(node["leads"]))
        self.assertIsNone(self.find("leaderless"))
        # What flows in is seen: the page counts what nodes say they applied.
        end = time.monotonic() + 20
        while not any(float(text) > 0 for text in self.rates()):
            self.assertLess(time.monotonic(), end, self.shown("ingest"))
            self.write(7)
        self.screen("ingest")
        self.cluster.nodes[2].process.kill()
        self.await_text("ingest", "does not answer")
        # How it fails changes while it dies, and the page asks now and then.
        wait_for("why", lambda: next(n for n in self.nodes() if n["state"] == "away")["error"] in self.shown("ingest"))
        wait_for("others lead", lambda: self.led() == list(range(8)), 30)
        wait_for("said so", lambda: not self.find("leaderless"))
        self.screen("ingest-away")
        self.cluster.nodes[1].process.kill()
        self.await_text("leaderless", "No node that answers leads partition")

    def rates(self):
        return self.run_script(
            "return [...document.querySelectorAll(`[data-testid='ingest-node'] dd:first-of-type`)]"
            ".filter((e) => e.previousElementSibling.innerText === 'Samples a second')"
            ".map((e) => e.innerText.replace('k', ''))") or ["0"]

    def test_zz_no_ingest_nodes_no_list(self):
        """Last: the API is started without any."""
        self.fabric.api.stop()
        self.fabric.api_flags = []
        self.fabric.start_api()
        self.fabric.wait_workers(1)
        self.assertEqual(self.nodes(), [])
        self.open(tab="fabric")
        self.await_text("fabric", "worker-0")
        time.sleep(1.2)
        self.assertIsNone(self.find("ingest"))


if __name__ == "__main__":
    unittest.main()
