"""test_ageing.py - promfabric segments rm, expire, verify and sweep: what goes, what stays, and what is
said of it."""
import glob
import os
import pty
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

BINARY = os.environ["PROMFABRIC_BINARY"]
HOUR = 3600
DAY = 24 * HOUR
START = 1_767_225_600  # 2026-01-01T00:00:00Z


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="pf-ageing-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.store = os.path.join(self.dir, "store")
        self.temp = os.path.join(self.dir, "temp")
        os.mkdir(self.temp)

    def fill(self, hours, start=START, tenant="default", shift=0, window="1h", step=300):
        """A file for each hour, with samples every five minutes."""
        text = os.path.join(self.dir, "text")
        with open(text, "w") as out:
            for t in range(start + shift, start + hours * HOUR + shift, step):
                for i in range(3):
                    out.write(f'm{{i="{i}"}} {t - start} {t * 1000}\n')
        subprocess.run([BINARY, "import", "--quiet", f"--store={self.store}", f"--tenant={tenant}", "--shards=1",
                        f"--window={window}", f"--temp-dir={self.temp}", text], check=True,
                       stdout=subprocess.DEVNULL)

    def files(self, tenant="default"):
        return sorted(glob.glob(f"{self.store}/tenant={tenant}/date=*/*.parquet"))

    def run_it(self, code, *args):
        run = subprocess.run([BINARY, "segments", args[0], f"--store={self.store}", f"--temp-dir={self.temp}",
                              *args[1:]], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=120)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run.stdout + run.stderr

    def verified(self, count):
        self.assertIn(f"{count} segments verified, 0 bad", self.run_it(0, "verify"))


RANGE = ["--tenant=default", "--from=2026-01-01T02:00:00Z", "--to=2026-01-01T05:30:00Z"]


class Remove(Case):
    def test_whole_files_of_a_range_go_after_a_question(self):
        self.fill(8)
        self.fill(8, tenant="other")
        before = self.files()
        said = self.run_it(0, "rm", *RANGE, "--dry-run")
        self.assertIn("3 segments", said)
        self.assertIn("2026-01-01T02:00:00Z 2026-01-01T04:55:00Z would go", said)
        self.assertIn("stays, as only a part of it is in the range: tenant=default/date=2026-01-01/17672436", said)
        self.assertIn("1 stay whole, as the range cuts them: segments are not rewritten", said)
        self.assertIn("nobody to ask: say --yes", self.run_it(2, "rm", *RANGE))
        self.assertEqual(self.files(), before)
        self.assertEqual(self.ask(b"n\n"), 2)
        self.assertEqual(self.files(), before)
        self.assertEqual(self.ask(b"y\n"), 0)
        self.assertEqual(self.files(), before[:2] + before[5:])
        self.assertIn("0 segments would go", self.run_it(0, "rm", *RANGE, "--yes"))
        self.assertEqual(len(self.files("other")), 8)
        self.verified(13)

    def ask(self, answer):
        """The exit code, with a terminal and somebody at it."""
        child, terminal = pty.fork()
        if child == 0:
            os.execv(BINARY, [BINARY, "segments", "rm", f"--store={self.store}", *RANGE])
        said = b""
        while b"[y/N]" not in said:
            said += os.read(terminal, 1000)
        os.write(terminal, answer)
        try:
            while os.read(terminal, 1000):
                pass
        except OSError:
            pass
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.close(terminal)
        return status

    def test_what_is_named_goes(self):
        self.fill(3)
        before = self.files()
        name = os.path.relpath(before[1], self.store)
        self.assertIn("not the name of a segment", self.run_it(2, "rm", "--yes", "tenant=default/x"))
        self.assertIn("cannot open", self.run_it(1, "rm", "--yes", name.replace("default", "nobody")))
        self.assertIn("would go: " + name, self.run_it(0, "rm", "--dry-run", name))
        self.assertEqual(self.files(), before)
        self.assertIn("1 deleted", self.run_it(0, "rm", "--yes", name))
        self.assertEqual(self.files(), [before[0], before[2]])

    def test_what_is_not_said_is_asked_for(self):
        self.fill(2)
        for args, words in ((["--yes"], "say which"), (["--yes", "--tenant=default"], "say which"),
                            (["--yes", "--from=0"], "say which"),
                            (["--yes", "--tenant=../x", "--from=0"], "no tenant can be called that"),
                            (["--yes", "--tenant=default", "--from=now", "--to=now-1h"], "not before --to"),
                            (["--yes", "--tenant=default", "--from=soon"], "soon")):
            self.assertIn(words, self.run_it(2, "rm", *args))
        self.assertIn("say ls, show, verify, rm, expire or sweep", self.run_it(2, "remove"))
        self.assertIn("say ls, show, verify, rm, expire or sweep", self.run_it(2, "expire", "name"))
        self.assertEqual(len(self.files()), 2)

    def test_killed_anywhere_and_run_again_it_ends_the_same(self):
        self.fill(10, window="5m")  # 120 files, more than a second's worth
        self.fill(2, start=START + 20 * HOUR)
        before = self.files()
        keep = before[-2:]
        args = [BINARY, "segments", "rm", f"--store={self.store}", "--yes", "--tenant=default",
                "--to=2026-01-01T15:00:00Z"]
        for some in (0, 1, 20, 30):
            count = len(self.files())
            run = subprocess.Popen(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while len(self.files()) > count - some and run.poll() is None:
                pass
            run.kill()
            run.wait()
            left = self.files()
            self.assertEqual(left, before[len(before) - len(left):])  # oldest first, none but whole ones
        self.assertGreater(len(left), 2, "no kill came while it was at it")
        two = [subprocess.Popen(args, stdout=subprocess.DEVNULL) for _ in range(2)]
        self.assertEqual([run.wait() for run in two], [0, 0])
        self.assertEqual(self.files(), keep)
        self.verified(2)


class Expire(Case):
    def test_files_behind_the_retention_go_by_tenant(self):
        now = int(time.time())
        hour = now // HOUR * HOUR
        self.fill(12, start=hour - 12 * HOUR)
        self.fill(12, start=hour - 12 * HOUR, tenant="long")
        before = self.files()
        limits = os.path.join(self.dir, "limits")
        with open(limits, "w") as out:
            out.write("long retention=forever\n")
        flags = ["--retention=4h", "--retention-slack=1h", f"--tenant-limits={limits}"]
        want = [f for f in before
                if int(re.search(r"/\d+_(\d+)_", f).group(1)) / 1000 >= now - 5 * HOUR]
        said = self.run_it(0, "expire", *flags, "--dry-run")
        self.assertIn(f"{len(before) - len(want)} segments", said)
        self.assertEqual(self.files(), before)
        self.assertIn("say --yes", self.run_it(2, "expire", *flags))
        self.assertIn("0 segments would go", self.run_it(0, "expire", *flags, "--yes", "--tenant=long"))
        self.run_it(0, "expire", *flags, "--yes")
        self.assertEqual(self.files(), want)
        self.assertEqual(len(self.files("long")), 12)
        self.assertIn("say --retention", self.run_it(2, "expire", "--yes"))


class Verify(Case):
    def test_a_damaged_file_is_named_with_what_it_costs(self):
        self.fill(4)
        self.fill(2, tenant="other")
        data, footer = self.files()[1], self.files("other")[0]
        with open(data, "r+b") as file:
            file.seek(200)
            file.write(b"\xff\xff")
        with open(footer, "r+b") as file:
            file.seek(-8, os.SEEK_END)
            file.write(b"\0" * 8)
        said = self.run_it(1, "verify")
        self.assertIn("6 segments verified, 2 bad", said)
        self.assertIn("costs tenant default, shard 0 of 1, 2026-01-01T01:00:00Z 2026-01-01T01:55:00Z: "
                      "3 series, 36 samples", said)
        self.assertIn("its footer does not tell any more", said)
        self.assertRegex(said, r"tenant default: 1 damaged, .*: 3 series, 36 samples")
        self.assertRegex(said, r"tenant other: 1 damaged, .*: at least 0 series")
        self.assertIn("4 segments verified, 1 bad", self.run_it(1, "verify", "--tenant=default"))
        self.assertIn("1 segments verified, 0 bad",
                      self.run_it(0, "verify", os.path.relpath(self.files()[0], self.store)))
        self.assertIn("2 segments verified, 0 bad", self.run_it(
            0, "verify", "--tenant=default", "--after", os.path.relpath(data, self.store)))
        self.run_it(1, "verify", os.path.relpath(data, self.store).replace("default", "nobody"))

    def test_what_cannot_be_read_is_not_called_damaged(self):
        self.fill(2)
        self.assertIn("2 segments verified, 0 bad, 2 could not be read",
                      self.run_it(3, "verify", "--temp-dir=/nonexistent"))

    def test_one_that_was_stopped_says_where_to_go_on(self):
        self.fill(20, window="5m")
        count = len(self.files())
        args = [BINARY, "segments", "verify", f"--store={self.store}", f"--temp-dir={self.temp}", "--jobs=2"]
        run = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not self.catches(run.pid, signal.SIGINT):
            time.sleep(0.01)
        time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 3, out + err)
        done = int(re.match(r"(\d+) segments verified, 0 bad", out).group(1))
        self.assertLess(done, count)
        after = re.search(r"--after '(.*)'", err).group(1)
        rest = subprocess.run([*args, f"--after={after}"], capture_output=True, text=True, timeout=120)
        self.assertEqual(rest.returncode, 0, rest.stderr)
        more = int(re.match(r"(\d+) segments verified, 0 bad", rest.stdout).group(1))
        self.assertGreaterEqual(done + more, count)
        self.assertEqual(os.listdir(self.temp), [])


    def catches(self, pid, number):
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            caught = next(line for line in status if line.startswith("SigCgt:"))
        return int(caught.split()[1], 16) >> (number - 1) & 1


class Sweep(Case):
    def test_leftovers_go_and_nothing_else(self):
        self.fill(2)
        old = time.time() - 2 * DAY
        folder = os.path.dirname(self.files()[0])
        empty = f"{self.store}/tenant=gone/date=2026-01-01"
        os.makedirs(empty)
        leases = f"{self.store}/_leases/retention"
        os.makedirs(leases)
        for name, age in ((f"{folder}/.tmp-1-old", old), (f"{folder}/.tmp-1-young", time.time()),
                          (f"{folder}/notes.txt", old)):
            with open(name, "w") as out:
                out.write("x")
            os.utime(name, (age, age))
        with open(f"{leases}/00000000000000000004", "w") as out:
            out.write("promfabric-lease 1\n0123456789abcdef\n60000\nsomebody\n")
        os.utime(f"{leases}/00000000000000000004", (old, old))
        os.utime(empty, (old, old))
        said = self.run_it(0, "sweep", "--dry-run")
        self.assertIn("would go: 2 temporary files, unfinished uploads and empty folders, 0 notes of changes, 1 leases",
                      said)
        self.assertTrue(os.path.exists(f"{folder}/.tmp-1-old"))
        self.assertIn("--age: at least 1h", self.run_it(2, "sweep", "--age=1m"))
        self.assertIn("removed: 2 temporary", self.run_it(0, "sweep"))
        self.assertFalse(os.path.exists(f"{folder}/.tmp-1-old"))
        self.assertFalse(os.path.exists(empty))
        self.assertEqual(os.listdir(leases), [])
        self.assertTrue(os.path.exists(f"{folder}/.tmp-1-young"))
        self.assertTrue(os.path.exists(f"{folder}/notes.txt"))
        self.verified(2)


if __name__ == "__main__":
    unittest.main()
