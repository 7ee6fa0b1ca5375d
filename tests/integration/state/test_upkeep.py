"""test_upkeep.py - what ingest nodes do for their maps by themselves, and what their figures say."""
import json
import unittest

from states import StateTest, wait_for


class Upkeep(StateTest):
    def values(self, node, name):
        status, answer = node.request("GET", f"/api/v1/state/{name}/rows")
        self.assertEqual(status, 200, answer)
        return [row.get("value", (row.get("start"), row.get("end"))) for row in answer["data"]["rows"]]

    def figures(self, node):
        text = node.raw("GET", "/metrics")[1].decode()
        return {line.split()[0].removeprefix("promfabric_ingest_state_"): float(line.split()[1])
                for line in text.splitlines() if line.startswith("promfabric_ingest_state_")}

    def test_owners_condense_and_let_go_by_themselves(self):
        node = self.node().start("--bootstrap", "--state-upkeep-every", "200ms")
        self.define(node, "version", "temporal", condense="1d", retention="3650d")
        self.define(node, "kept", "temporal")
        self.define(node, "on_call", "session", condense="1d")
        days = [{"key": "k", "time": f"2024-01-{day:02}T00:00:00Z", "value": day // 10} for day in range(1, 31)]
        old = [{"key": "k", "time": f"200{year}-01-01T00:00:00Z", "value": 10 - year} for year in (1, 2)]
        self.load(node, *[{"map": name, **row} for name in ("version", "kept") for row in days + old],
                  *[{"map": "on_call", "key": "a", "start": f"2024-01-01T{hour:02}:00:00Z", "timeout": "1h"} for hour in range(9)])
        before = node.request("GET", "/api/v1/state/version", {"key": "k", "time": "2024-01-15T00:00:00Z"})[1]
        wait_for("condensation and retention", lambda: self.values(node, "version") == [8, 0, 1, 2, 3], 60)
        wait_for("sessions to be one",
                 lambda: self.values(node, "on_call") == [("2024-01-01T00:00:00Z", "2024-01-01T09:00:00Z")], 60)
        # No answer changed but for the time that the row is from, and what has no settings is as it was.
        after = node.request("GET", "/api/v1/state/version", {"key": "k", "time": "2024-01-15T00:00:00Z"})[1]
        self.assertEqual(after["data"]["row"]["value"], before["data"]["row"]["value"])
        self.assertEqual(len(self.values(node, "kept")), 32)
        wait_for("the rows to be counted", lambda: self.figures(node)["map_rows"] == 38, 60)
        self.assertEqual(self.figures(node)["dropped_rows_total"], 35)

    def test_figures_say_what_there_is(self):
        node = self.node().start("--bootstrap")
        self.assertEqual(self.figures(node)["maps"], 0)
        self.define(node, "team")
        self.define(node, "full", map_bytes=2 << 20)
        self.load(node, {"map": "team", "key": "a", "value": "1"}, {"map": "team", "key": "b", "value": "2"}, {"map": "team"},
                  **{"on-error": "skip"})
        node.request("POST", "/api/v1/state/team", body=json.dumps({"keys": ["a", "b", "c"]}))
        wait_for("the maps to be counted", lambda: self.figures(node)["maps"] == 2, 60)
        figures = wait_for("the node to know that it has everything",
                           lambda: (f := self.figures(node))["behind"] == 0 and f["age_seconds"] < 30 and f, 60)
        self.assertEqual([figures[name] for name in ("map_rows", "loads_total", "loaded_rows_total", "skipped_rows_total",
                                                     "merges_total", "lookups_total", "waiting_parts", "stuck")],
                         [2, 1, 2, 1, 1, 3, 0, 0])
        self.assertGreater(figures["map_bytes"], 0)
        # A map that is full keeps its part waiting.
        for part, expect in enumerate((200, 503)):
            self.load(node, *[{"map": "full", "key": f"{part} {i}", "value": "x" * 1000} for i in range(900)], expect=expect)
        wait_for("the part to be counted", lambda: self.figures(node)["waiting_parts"] == 1, 60)


if __name__ == "__main__":
    unittest.main()
