"""test_audit.py - a line per request: who, what, how, at what cost; and never a key."""
import json
import os
import pathlib
import signal
import time
import unittest

from harness import START, Fabric, load, standard_lines, wait_for

END = START + 3600
KEY = "a-secret-of-some-length"


class Audit(unittest.TestCase):
    def fabric(self, audit):
        fabric = Fabric(1, start_workers=False)
        self.addCleanup(fabric.close)
        fabric.api.stop()
        keys = pathlib.Path(fabric.folder, "keys")
        keys.write_text(f"{KEY} team-a grafana\n")
        keys.chmod(0o600)
        self.log = pathlib.Path(fabric.folder, "audit") if audit is None else audit
        fabric.api_flags = [f"--api-keys={keys}", f"--audit-log={self.log}"]
        load(fabric.store, standard_lines(), tenant="team-a")
        fabric.start_worker(0)
        fabric.start_api()
        fabric.wait_workers(1)
        return fabric

    def ask(self, fabric, expr="sum(temperature)", key=KEY):
        return fabric.json("/api/v1/query", {"query": expr, "time": END},
                           headers={"Authorization": f"Bearer {key}"})

    def lines(self, path, wanted):
        """The entries of the log for the paths of queries, once there are so many."""
        def read():
            found = [json.loads(line) for line in path.read_text().splitlines()]
            found = [entry for entry in found if entry["path"] == "/api/v1/query"]
            return found if len(found) >= wanted else None
        return wait_for("lines of the audit log", read)

    def test_each_request_has_a_line(self):
        fabric = self.fabric(None)
        self.assertEqual(self.ask(fabric)[0], 200)
        self.assertEqual(self.ask(fabric, "sum(")[0], 400)
        self.assertEqual(self.ask(fabric, key="wrong")[0], 401)
        entries = {entry["status"]: entry for entry in self.lines(self.log, 3)}
        good = entries[200]
        self.assertEqual((good["tenant"], good["key"], good["method"], good["outcome"]),
                         ("team-a", "grafana", "GET", "ok"))
        self.assertTrue(good["complete"])
        self.assertTrue(good["query_id"].startswith("api-"), good)
        self.assertGreater(good["samples"], 0)
        self.assertGreater(good["bytes"], 0)
        self.assertGreater(good["seconds"], 0)
        self.assertEqual(good["points"], 1)
        self.assertEqual((entries[400]["tenant"], entries[400]["outcome"]), ("team-a", "parse"))
        self.assertNotIn("tenant", entries[401])
        text = self.log.read_text()
        self.assertIn('"path":"/readyz"', text)
        self.assertNotIn(KEY, text)
        self.assertNotIn("wrong", text)
        self.assertNotIn("temperature", text)
        wait_for("the metric", lambda: fabric.metric(
            'promfabric_api_audit_lines_total{result="written"}') >= 3)

    def test_a_log_that_was_moved_away_is_made_anew(self):
        fabric = self.fabric(None)
        self.assertEqual(self.ask(fabric)[0], 200)
        self.lines(self.log, 1)
        for moved in ("audit.1", "audit.2"):
            os.rename(self.log, self.log.with_name(moved))
            if moved == "audit.1":
                fabric.api.signal(signal.SIGHUP)
            else:
                time.sleep(1.2)
            self.assertEqual(self.ask(fabric)[0], 200)
            wait_for("a new log", self.log.exists)
            self.lines(self.log, 1)

    def test_a_full_disk_costs_lines_and_no_answers(self):
        fabric = self.fabric("/dev/full")
        for _ in range(20):
            self.assertEqual(self.ask(fabric)[0], 200)
        wait_for("lost lines", lambda: fabric.metric(
            'promfabric_api_audit_lines_total{result="lost"}') >= 20)


if __name__ == "__main__":
    unittest.main()
