"""test_example.py - the worked example of the manual: its commands, its rows, its queries, and the answers that it promises."""
import datetime
import json
import os
import pathlib
import re
import shlex
import subprocess
import time
import unittest

from states import wait_for
from test_info import InfoTest, fabric_of

BINARY = os.environ["PROMFABRIC_BINARY"]
MANUAL = pathlib.Path(__file__).resolve().parents[3] / "docs" / "maps.md"


def second_of(text):
    return int(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp())


class Example(InfoTest):
    def section(self):
        return re.search(r"(?ms)^## A worked example$(.*?)^## ", MANUAL.read_text()).group(1)

    def run_command(self, node, line):
        words = shlex.split(line.strip().replace("127.0.0.1:8083", f"127.0.0.1:{node.port}"))
        done = subprocess.run([BINARY, *words[1:]], cwd=self.folder, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, (line, done.stdout + done.stderr))
        return done.stdout

    def labels(self, fabric, expr, at):
        return [one["metric"] for one in fabric.query(expr, at)["result"]]

    def check_table(self, fabric, section):
        rows = re.findall(r"(?m)^\| `(.*)` \| (any time|\S+Z) \| `(\S*?)`.*\|$", section)
        self.assertEqual(len(rows), 5)
        for expr, at, answer in rows:
            at = second_of("2026-01-31T12:05:00Z" if at == "any time" else at)
            found = wait_for(expr, lambda expr=expr, at=at: self.labels(fabric, expr, at))
            if answer == "latency":
                self.assertEqual([one["__name__"] for one in found], ["latency"])
            else:
                self.assertEqual(found, [dict(re.findall(r'(\w+)="(.*?)"', answer))], (expr, at))

    def test_answers_as_the_manual_says(self):
        node, section = self.start(), self.section()
        fabric = self.fabric(node)
        commands = re.findall(r"(?m)^    (promfabric state .*)$", section)
        pathlib.Path(self.folder, "example.jsonl").write_text("".join(re.findall(r"(?m)^    (\{.*\n)", section)))
        for command in commands[:6]:
            self.run_command(node, command)
        looked_up = [json.loads(self.run_command(node, command)) for command in commands[6:]]
        self.assertEqual([looked_up[0]["value"]["version"], looked_up[1]["key"], looked_up[2]["value"]], ["1.6", "bob", "cardiff"])
        # What is written from now on has a site.
        sample = 'latency{service="checkout",instance="10.0.1.7:9100"}'
        status, why, _ = node.raw("POST", "/api/v1/import/prometheus", body=f"{sample} 7 {int(time.time() * 1000)}\n")
        self.assertEqual(status, 204, why)
        self.assertEqual(wait_for("it", lambda: self.labels(fabric, "latency", int(time.time()) + 1)),
                         [{"__name__": "latency", "service": "checkout", "instance": "10.0.1.7:9100", "site": "cardiff"}])
        # What was written before has none, and is joined all the same.
        fabric_of.load(self.store, [f"{sample} 7x480"], start=second_of("2026-01-31T11:00:00Z"))
        wait_for("old samples", lambda: self.labels(fabric, "latency", second_of("2026-01-31T12:05:00Z")))
        self.check_table(fabric, section)


if __name__ == "__main__":
    unittest.main()
