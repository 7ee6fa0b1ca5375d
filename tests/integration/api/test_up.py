"""test_up.py - promfabric up: everything on one machine, with one command."""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.request

from harness import BINARY, START, load, standard_lines, wait_for

END = START + 3600


class Up(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="pf-up-")
        self.process = None

    def tearDown(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, *flags):
        self.out = open(f"{self.folder}/out", "wb")
        self.process = subprocess.Popen(
            [BINARY, "up", "--http-listen=127.0.0.1:0", *flags],
            stdout=self.out, stderr=subprocess.STDOUT, env={**os.environ, "TMPDIR": self.folder})
        found = wait_for("the greeting", lambda: re.search(r"is up: (http://\S+)", self.text()) or
                         self.process.poll() is not None, 60)
        self.assertIsNone(self.process.poll(), self.text())
        return found.group(1)

    def text(self):
        with open(f"{self.folder}/out", errors="replace") as file:
            return file.read()

    def children(self):
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        with open(path) as file:
            return [int(pid) for pid in file.read().split()]

    def query(self, url, *args):
        return subprocess.run([BINARY, "query", f"--url={url}", *args], capture_output=True,
                              text=True, timeout=60)

    def end(self):
        children = self.children()
        self.process.send_signal(signal.SIGINT)
        self.assertEqual(self.process.wait(30), 0, self.text())
        self.out.close()
        for pid in children:
            self.assertFalse(os.path.exists(f"/proc/{pid}"), f"{pid} is left over")
        self.assertEqual([n for n in os.listdir(self.folder) if n.startswith("promfabric")], [])
        for mark in ("Sanitizer", "runtime error:"):
            self.assertNotIn(mark, self.text())

    def test_answers_restarts_and_ends_clean(self):
        os.mkdir(f"{self.folder}/store")
        load(f"{self.folder}/store", standard_lines())
        url = self.start("--workers=2", f"--store={self.folder}/store")
        want = self.query(url, f"--end={END}", "sum by (job) (rate(http_requests_total[5m]))")
        self.assertEqual(want.returncode, 0, want.stderr)
        self.assertEqual(len(want.stdout.splitlines()), 2)
        api, *workers = self.children()
        self.assertEqual(len(workers), 2)
        os.kill(workers[0], signal.SIGKILL)
        wait_for("a new worker", lambda: len(self.children()) == 3 and
                 workers[0] not in self.children())
        again = self.query(url, f"--end={END}", "sum by (job) (rate(http_requests_total[5m]))")
        self.assertEqual(again.stdout, want.stdout)
        self.end()

    def test_demo_data_has_something_to_show(self):
        url = self.start("--workers=1", "--demo")
        run = self.query(url, "--start=e-30m", "sum by (job) (rate(http_requests_total[5m]))")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("last", run.stdout)
        self.end()

    def test_a_busy_port_is_one_clear_line(self):
        url = self.start("--workers=1", f"--store={self.folder}/store")
        port = url.rsplit(":", 1)[1]
        run = subprocess.run([BINARY, "api", f"--store={self.folder}/store",
                              f"--http-listen=127.0.0.1:{port}", "--worker=127.0.0.1:1"],
                             capture_output=True, text=True, timeout=30)
        self.assertEqual(run.returncode, 1)
        self.assertEqual(run.stderr.splitlines()[-1],
                         f"error: cannot listen on 127.0.0.1:{port}: Address already in use")
        self.end()


if __name__ == "__main__":
    unittest.main()
