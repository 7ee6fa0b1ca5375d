"""test_cli.py - promfabric queue from a terminal."""
import json
import subprocess
import unittest

from harness import BINARY, NodeTest


class Commands(NodeTest):
    def setUp(self):
        super().setUp()
        self.a = self.node().start("--bootstrap")

    def run_queue(self, *args, text=None, code=0):
        run = subprocess.run([BINARY, "queue", *args, "--url", f"http://127.0.0.1:{self.a.port}"],
                             input=text, capture_output=True, text=True, timeout=60)
        self.assertEqual(run.returncode, code, run.stderr)
        return run.stdout if code == 0 else run.stderr

    def test_a_queue_from_its_beginning_to_its_end(self):
        self.assertEqual(self.run_queue("create", "orders", "--retention", "7d"), "created\n")
        self.assertEqual(self.run_queue("offer", "orders", "one record"), "1 records, offsets 3 to 3\n")
        lines = "".join(f"line {i}\n" for i in range(2500))
        self.assertEqual(len(self.run_queue("offer", "orders", text=lines).splitlines()), 3)
        tail = self.run_queue("tail", "orders", "--max", "3").splitlines()
        self.assertEqual([line.split("\t")[1] for line in tail], ["line 2497", "line 2498", "line 2499"])
        tail = self.run_queue("tail", "orders", "--from", "1", "--max", "2", "--json").splitlines()
        self.assertEqual([json.loads(line)["data"] for line in tail], ["one record", "line 0"])
        self.assertIn("orders", self.run_queue("ls"))
        self.assertIn("retention_ms         604800000", self.run_queue("show", "orders"))
        self.run_queue("offsets", "orders", "--consumer", "me", "--offset", "10")
        self.assertRegex(self.run_queue("offsets", "orders"), r"me +10  \d+ behind")
        self.assertRegex(self.run_queue("members"), r"^a +voter +[0-9a-f]{16}  leads\n$")
        self.assertEqual(self.run_queue("delete", "orders"), "deleted\n")

    def test_errors_are_one_line_and_an_exit_code(self):
        for args, want in ((["show", "none"], "there is no queue none"),
                           (["create", "UPPER"], "not the name of a queue"),
                           (["members", "--promote", "x"], "error: "),
                           (["members", "--add", "x"], "no stream to that node")):
            error = self.run_queue(*args, code=1)
            self.assertIn(want, error)
            self.assertEqual(len(error.splitlines()), 1, error)
        for args in ([], ["show"], ["nonsense", "x"]):
            run = subprocess.run([BINARY, "queue", *args], capture_output=True, text=True)
            self.assertEqual((run.returncode, len(run.stderr.splitlines())), (2, 1), run.stderr)
        run = subprocess.run([BINARY, "queue", "ls", "--url", "http://127.0.0.1:1"], capture_output=True,
                             text=True)
        self.assertEqual((run.returncode, len(run.stderr.splitlines())), (1, 1), run.stderr)


if __name__ == "__main__":
    unittest.main()
