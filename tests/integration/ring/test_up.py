"""test_up.py - promfabric up --ring: workers keep the segments, and find them again after a restart."""
import http.client
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest
import urllib.parse

from harness import BINARY, wait_for

# In the last window of two hours that is over, so that it is merged.
NOW = (int(time.time()) // 7200 * 7200 - 1800) * 1000


class Up(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.store = pathlib.Path(self.folder.name) / "kept"
        self.process = None

    def tearDown(self):
        self.stop()
        self.folder.cleanup()

    def start(self, *args):
        self.log = open(os.path.join(self.folder.name, "up.log"), "ab")
        self.process = subprocess.Popen(
            [BINARY, "up", "--ring", "3", "--store", self.store, "--http-listen", "127.0.0.1:0", *args],
            stdout=subprocess.PIPE, stderr=self.log, stdin=subprocess.DEVNULL, text=True,
            env={**os.environ, "PROMFABRIC_SEAL_AGE": "1s", "PROMFABRIC_KEEP_RESERVE": "1MiB",
                 "PROMFABRIC_COMPACT_SETTLE": "0s", "PROMFABRIC_COMPACT_INTERVAL": "1s"})
        lines = [self.process.stdout.readline(), self.process.stdout.readline()]
        self.api, self.write = (re.search(r"http://([\d.:]+)", line).group(1) for line in lines)

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(60)
            self.process.stdout.close()
            self.log.close()
            self.process = None

    def request(self, address, method, path, body=None):
        connection = http.client.HTTPConnection(address, timeout=30)
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def query(self, text):
        status, body = self.request(self.api, "GET", "/api/v1/query?" + urllib.parse.urlencode(
            {"query": text, "time": NOW / 1000}))
        return [float(row["value"][1]) for row in json.loads(body)["data"]["result"]] if status == 200 else None

    def blobs(self, keeper):
        root = self.store / keeper / "blobs"
        return {str(f.relative_to(root)) for f in root.rglob("*.parquet~*")}

    def listed(self):
        done = subprocess.run([BINARY, "segments", "ls", "--store", f"ring://{self.write}"], capture_output=True, text=True, timeout=60)
        return [word for word in done.stdout.split() if word.endswith(".parquet")]

    def test_segments_are_on_all_workers_and_found_again(self):
        self.start()
        self.assertEqual(self.request(self.write, "POST", "/api/v1/import/prometheus", f"m 7 {NOW}\n")[0], 204)
        self.assertEqual(self.query("m"), [7])
        wait_for("the range to be sealed", lambda: self.blobs("worker-0"), 60)
        wait_for("all workers to have it", lambda: self.blobs("worker-0") == self.blobs("worker-1") == self.blobs("worker-2"), 60)
        self.assertEqual(self.query("m"), [7])
        self.assertEqual(self.request(self.write, "POST", "/api/v1/import/prometheus", f"m 8 {NOW - 1000}\n")[0], 204)
        wait_for("another range to be sealed, and both to be merged", lambda: len(self.blobs("worker-0")) > 2 and len(self.listed()) == 1, 120)
        self.assertEqual(self.query("sum_over_time(m[1m])"), [15])
        self.stop()
        self.start()
        wait_for("it to be found again", lambda: self.query("m") == [7], 60)

    def test_what_does_not_go_together_is_said(self):
        for args, word in ((("--demo",), "--demo"), (("--workers", "2"), "as many workers"),
                           (("--store", "s3://bucket"), "a folder"), (("--ingest-nodes", "0"), "ingest node")):
            done = subprocess.run([BINARY, "up", "--ring", "3", *args], capture_output=True, text=True, timeout=30)
            self.assertEqual(done.returncode, 2)
            self.assertIn(word, done.stderr)


if __name__ == "__main__":
    unittest.main()
