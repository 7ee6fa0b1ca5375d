"""test_terminal.py - promfabric state --url: maps of a cluster from a terminal, the same words as for a folder of this machine."""
import json
import os
import pathlib
import subprocess
import unittest

from states import StateTest

BINARY = os.environ["PROMFABRIC_BINARY"]


class Terminal(StateTest):
    def state(self, node, *words, code=0, stdin=None):
        """What it prints: on success of the answer, else of errors."""
        done = subprocess.run([BINARY, "state", words[0], f"--url=http://127.0.0.1:{node.port}", *words[1:]], capture_output=True, text=True,
                              input=stdin, timeout=120)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def file(self, name, text):
        path = pathlib.Path(self.folder) / name
        path.write_text(text)
        return str(path)

    def test_maps_are_defined_loaded_and_asked(self):
        node = self.node().start("--bootstrap")
        self.assertEqual(self.state(node, "maps"), "")
        self.state(node, "define", "Team", "--kind=state", "--type=string", "--metric=team_info")
        self.state(node, "define", "version", "--kind=temporal", "--retention=90d")
        self.state(node, "define", "site", "--kind=ranged")
        self.assertEqual([line.split() for line in self.state(node, "maps").splitlines()],
                         [["site", "ranged", "any"], ["team", "state", "string", "metric", "team_info"],
                          ["version", "temporal", "any", "retention", "90d"]])
        csv = self.file("teams.csv", 'key,value\ncheckout,payments\nbasket,"a ""b""\nc"\n')
        self.assertEqual(self.state(node, "load", "--map=team", csv), "2 rows loaded\n")
        rows = "".join(json.dumps(row) + "\n" for row in (
            {"map": "version", "key": "checkout", "time": "2026-01-01T00:00:00Z", "value": 1},
            {"map": "version", "key": "checkout", "time": "2026-01-02T00:00:00Z", "value": 2},
            {"map": "site", "from": 1, "to": 9, "value": "cardiff"}))
        self.assertEqual(self.state(node, "load", "--format=jsonl", "-", stdin=rows), "3 rows loaded\n")
        self.assertEqual(json.loads(self.state(node, "get", "team", "basket"))["value"], 'a "b"\nc')
        self.assertEqual(json.loads(self.state(node, "get", "site", "5"))["value"], "cardiff")
        self.assertEqual(json.loads(self.state(node, "get", "version", "checkout", "--time=2026-01-01T12:00:00Z"))["value"], 1)
        self.assertIn("version says nothing of nobody", self.state(node, "get", "version", "checkout", "nobody", code=1))
        self.assertEqual(len(self.state(node, "rows", "version").splitlines()), 2)
        self.assertEqual(len(self.state(node, "rows", "version", "--limit=1").splitlines()), 1)
        self.assertEqual(len(self.state(node, "rows", "team", "--prefix=check").splitlines()), 1)
        self.assertEqual(self.state(node, "stats", "TEAM").split()[:3], ["team", "2", "rows"])
        self.assertIn("not all of these", self.state(node, "stats", "nowhere", code=1))
        self.state(node, "drop", "team")
        self.assertIn("there is no map team", self.state(node, "drop", "team", code=1))
        self.assertIn("there is no map team", self.state(node, "get", "team", "checkout", code=1))

    def test_what_is_wrong_is_told(self):
        node = self.node().start("--bootstrap")
        self.state(node, "define", "team", "--kind=state")
        bad = self.file("bad.jsonl", '{"map":"team","key":"a","value":"b"}\n{"map":"team"}\n')
        said = self.state(node, "load", bad, code=1)
        self.assertIn("line 2", said)
        self.assertIn("was not loaded to its end", said)
        self.assertEqual(self.state(node, "load", "--on-error=skip", bad), "1 rows loaded, 1 skipped\n")
        self.assertIn("kind and short keys stay", self.state(node, "define", "team", "--kind=session", code=1))
        self.assertIn("say a --kind", self.state(node, "define", "team", code=2))
        self.assertIn("by itself", self.state(node, "maintain", code=2))
        self.assertIn("xml, jsonl or csv", self.state(node, "load", self.file("what.txt", ""), code=1))
        self.assertIn("No such file", self.state(node, "load", str(pathlib.Path(self.folder) / "absent.csv"), code=1))

    def test_a_large_file_is_loaded_in_pieces(self):
        node = self.node().start("--bootstrap")
        self.state(node, "define", "team", "--kind=state")
        text = "x" * 900
        rows = [f'k{i},"{text}\n{i}"\n' for i in range(20000)]
        said = self.state(node, "load", "--map=team", self.file("large.csv", "key,value\n" + "".join(rows)))
        self.assertEqual(said, "20000 rows loaded\n")
        self.assertEqual(json.loads(self.state(node, "get", "team", "k9999"))["value"], f"{text}\n9999")
        self.assertEqual(self.state(node, "stats").split()[1], "20000")
        self.assertIn("more than 16 MiB", self.state(node, "load", self.file("large.xml", "<referenceData>" + " " * (17 << 20)), code=1))


if __name__ == "__main__":
    unittest.main()
