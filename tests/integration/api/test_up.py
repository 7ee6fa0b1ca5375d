"""test_up.py - promfabric up: everything on one machine, with one command."""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.request

from harness import BINARY, LONG, START, load, standard_lines, wait_for

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
        self.assertEqual(self.process.wait(90), 0, self.text())
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
        self.assertTrue(self.text().startswith("promfabric is up: "), self.text())  # no warning before it
        *workers, _ingest, _api = self.children()
        self.assertEqual(len(workers), 2)
        os.kill(workers[0], signal.SIGKILL)
        wait_for("a new worker", lambda: len(self.children()) == 4 and
                 workers[0] not in self.children())
        again = self.query(url, f"--end={END}", "sum by (job) (rate(http_requests_total[5m]))")
        self.assertEqual(again.stdout, want.stdout)
        self.end()

    def test_a_retention_is_the_api_s(self):
        now = int(time.time())
        text = f"{self.folder}/text"
        with open(text, "w") as file:
            file.writelines(f"kept {i} {(now - i * 3600) * 1000}\n" for i in range(6))
        subprocess.run([BINARY, "import", "--quiet", f"--store={self.folder}/store", text], check=True, stdout=subprocess.DEVNULL)
        url = self.start("--workers=1", "--ingest-nodes=0", f"--store={self.folder}/store", "--retention=150m")
        with urllib.request.urlopen(f"{url}/api/v1/query?query=count_over_time(kept[1d])&time={now}", timeout=60) as answer:
            result = json.load(answer)["data"]["result"]
        self.assertEqual([series["value"][1] for series in result], ["3"])
        self.end()

    def write(self, line):
        """Through the URL that is printed second; true once it is acknowledged."""
        url = re.search(r"write to it: (http://\S+)/api/v1/write", self.text()).group(1)
        try:
            with urllib.request.urlopen(f"{url}/api/v1/import/prometheus", (line + "\n").encode(),
                                        timeout=10) as answer:
                return answer.status == 204
        except OSError:
            return False

    def test_samples_are_taken_and_stay(self):
        for start in range(2):
            url = self.start("--workers=1", f"--store={self.folder}/store")
            lines = self.text()[self.text().index("promfabric is up: http://"):].splitlines()
            self.assertRegex(lines[0], r"^promfabric is up: http://127\.0\.0\.1:\d+ ")
            self.assertRegex(lines[1], r"^write to it: http://127\.0\.0\.1:\d+/api/v1/write ")
            if start == 0:
                self.assertTrue(self.write("taken 42"))
            run = self.query(url, "last_over_time(taken[1h])")
            self.assertIn("42", run.stdout, run.stderr)
            self.end()

    def test_three_ingest_nodes_of_which_one_dies(self):
        url = self.start("--workers=1", "--ingest-nodes=3", f"--store={self.folder}/store")
        self.assertTrue(self.write("taken 42"))
        children = self.children()
        self.assertEqual(len(children), 5)
        os.kill(children[-2], signal.SIGKILL)  # the API was started last
        wait_for("an acknowledgement", lambda: self.write("taken 43"))
        self.assertIn("43", wait_for("an answer", lambda: self.query(url, "taken").stdout))
        wait_for("a new node", lambda: len(self.children()) == 5)
        self.end()

    def test_the_demo_goes_on(self):
        url = self.start("--workers=1", "--demo")
        began = time.time()
        newest = url + "/api/v1/query?query=max(timestamp(process_load))"
        wait_for("a sample of now", lambda: float(json.loads(urllib.request.urlopen(newest).read())
                                                  ["data"]["result"][0]["value"][1]) > began, 60)
        self.end()

    def test_demo_data_has_something_to_show(self):
        url = self.start("--workers=1", "--demo")
        run = self.query(url, "--start=e-30m", "sum by (job) (rate(http_requests_total[5m]))")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("last", run.stdout)
        self.end()

    def test_what_it_suggests_can_be_typed(self):
        self.start("--workers=1", "--demo")
        lines = self.text().split("\nthings to try in a terminal:\n")[1].split("\n\n")[0].splitlines()
        self.assertEqual(len(lines), 4)
        for line in lines:
            wanted = r'team="storefront"' if "team_info" in line else r'job="|"job":"'

            def shows(line=line, wanted=wanted):  # the map is loaded a moment after the start
                run = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60,
                                     cwd="/")
                self.assertEqual(run.returncode, 0, (line, run.stderr))
                return re.search(wanted, run.stdout)
            wait_for(line, shows, 60)
        before = len(self.text())
        self.end()
        self.assertNotIn("level=warn", self.text()[before:])  # an end asked for is no news

    def test_a_signal_before_it_serves_is_a_clean_end(self):
        """Whenever it comes, once the processes are there."""
        with open(f"{self.folder}/out", "wb") as out:
            self.process = subprocess.Popen(
                [BINARY, "up", "--http-listen=127.0.0.1:0", "--workers=1",
                 f"--store={self.folder}/store"],
                stdout=out, stderr=subprocess.STDOUT, env={**os.environ, "TMPDIR": self.folder})
        wait_for("a child", self.children)
        self.process.terminate()
        self.assertEqual(self.process.wait(60), 0, self.text())

    def test_a_busy_port_is_one_clear_line(self):
        url = self.start("--workers=1", f"--store={self.folder}/store")
        port = url.rsplit(":", 1)[1]
        run = subprocess.run([BINARY, "api", f"--store={self.folder}/store",
                              f"--http-listen=127.0.0.1:{port}", "--worker=127.0.0.1:1"],
                             capture_output=True, text=True, timeout=30)
        self.assertEqual(run.returncode, 1)
        self.assertEqual(run.stderr.splitlines()[-1],
                         f"error: cannot listen on 127.0.0.1:{port}: Address already in use")
        self.assertEqual(self.run_up(f"--http-listen=127.0.0.1:{port}", "--workers=1",
                                     f"--store={self.folder}/store"),
                         (1, f"error: cannot listen on 127.0.0.1:{port}: Address already in use\n"))
        self.end()
        self.assertNotIn("level=", self.text())  # nothing to warn of in all of this

    def test_it_listens_where_it_is_told_to(self):
        url = self.start("--workers=1", f"--store={self.folder}/store", "--http-listen=127.0.0.2:0")
        self.assertTrue(url.startswith("http://127.0.0.2:"), url)
        self.end()

    def run_up(self, *flags, env=None):
        """Exit code and stderr of an `up` that is expected to end by itself."""
        run = subprocess.run([BINARY, "up", *flags], capture_output=True, text=True, timeout=60,
                             env={**os.environ, "TMPDIR": self.folder, **(env or {})})
        return run.returncode, run.stderr

    def test_mistakes_are_one_clear_line(self):
        for flags, code, text in (
                (["--bogus"], 2, "error: unknown flag --bogus; try --help\n"),
                (["--workers=x"], 2, "error: --workers x: expected a whole number\n"),
                (["--workers=100"], 2, "error: --workers: at most 64\n"),
                (["--http-listen=nowhere"], 2, 'error: --http-listen: bad address "nowhere": want host:port\n'),
                (["--store=/proc/none/x"], 2,
                 "error: cannot make /proc/none/x: No such file or directory\n"),
                (["--log-level=loud"], 2, "error: --log-level: expected debug, info, warn or error\n"),
                (["--log-format=xml"], 2, "error: --log-format: expected logfmt or json\n"),
                (["extra"], 2, "error: unexpected argument extra; try --help\n")):
            self.assertEqual(self.run_up(*flags), (code, text))
        for args, text in (
                (["extra"], "unexpected argument extra; try --help"),
                (["--end=soon"], "--end soon: expected now, 2026-01-31T12:00:00Z or Unix seconds"),
                (["--range=1s"], "--range: at least a --step"), (["--step=0s"], "--step: more than nothing"),
                (["--range=1000000h", "--step=1s"], "--range: at most 10000000 steps"),
                (["--instances=0"], "--instances: 1 to 100000")):
            run = subprocess.run([BINARY, "demo-data", f"--store={self.folder}/demo", *args], capture_output=True, text=True)
            self.assertEqual((run.returncode, run.stderr), (2, f"error: {text}\n"))
        self.assertEqual(os.listdir(self.folder), [])
        self.assertEqual(self.run_up(env={"PROMFABRIC_WORKERS": "100"}),
                         (2, "error: --workers: at most 64\n"))
        for args in ([], ["a", "b"]):
            run = subprocess.run([BINARY, "query", *args], capture_output=True, text=True)
            self.assertEqual((run.returncode, run.stderr),
                             (2, "error: one expression is needed; try promfabric query --help\n"))
        run = subprocess.run([BINARY, "query", "--url=http://127.0.0.1:1", "up"],
                             capture_output=True, text=True)
        self.assertEqual((run.returncode, len(run.stderr.splitlines())), (1, 1))
        for flag in ("--start", "--end"):
            run = subprocess.run([BINARY, "query", "--url=http://127.0.0.1:1", f"{flag}=soon", "up"], capture_output=True, text=True)
            self.assertEqual(run.returncode, 1)
            self.assertIn(f'cannot parse "{flag}": "soon" is not a time. Times are now, -30m, now-30m, ', run.stderr)
            self.assertIn("2026-01-31T12:00:00Z or Unix seconds", run.stderr)

    def test_every_command_has_help_and_every_flag_its_variable(self):
        out = subprocess.run([BINARY, "--help"], capture_output=True, text=True).stdout
        for command in ("api", "worker", "up", "import", "query"):
            self.assertIn(f"  {command} ", out)
            run = subprocess.run([BINARY, command, "--help"], capture_output=True, text=True)
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            self.assertIn(f"usage: promfabric {command}", run.stdout)
            self.assertIn("PROMFABRIC_", run.stdout)

    def test_ctrl_c_lets_a_running_query_finish(self):
        """The answer comes, then everything ends."""
        os.mkdir(f"{self.folder}/store")
        load(f"{self.folder}/store", standard_lines())
        url = self.start("--workers=1", f"--store={self.folder}/store", "--drain-timeout=60s")
        asked = subprocess.Popen([BINARY, "query", f"--url={url}", f"--start={START + 7000}",
                                  f"--end={START + 7010}", "--step=1s", LONG],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for("its work", lambda: json.load(urllib.request.urlopen(
            f"{url}/monitor/scaling"))["work"]["running"] or asked.poll() is not None)
        self.end()
        out, err = asked.communicate(timeout=30)
        self.assertEqual((asked.returncode, err), (0, ""))
        self.assertIn("last", out)


if __name__ == "__main__":
    unittest.main()
