"""test_faults.py - compaction is killed at each of its steps, finds no room, and meets other hands: answers stay, and the
next run does what was left."""
import glob
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
from harness import BINARY, START, Fabric, load, standard_lines  # noqa: E402
from kills import kill_when  # noqa: E402
from test_compact import HOURS, NOW, Asker, compact, segments  # noqa: E402


class Faults(unittest.TestCase):
    def setUp(self):
        self.fabric = Fabric(1)
        self.addCleanup(self.fabric.close)
        self.store = self.fabric.store
        self.temp = tempfile.mkdtemp(prefix="pf-compact-")
        self.addCleanup(shutil.rmtree, self.temp, True)
        load(self.store, standard_lines(instances=4, length=HOURS * 240), shards=1, window=300)
        load(self.store, ['temperature{job="web",instance="i0"} 99x200'], shards=1, window=600, start=START + 900)
        self.fabric.wait_workers(1)
        self.asker = Asker(self.fabric)
        self.assertEqual({status for status, _ in self.asker.right.values()}, {200})

    def files(self):
        return set(glob.glob(f"{self.store}/tenant=*/date=*/*.parquet"))

    def there(self, pattern):
        return bool(glob.glob(pattern))

    def start(self, *flags, **more):
        return subprocess.Popen([BINARY, "compact", "--quiet", "--store", self.store, "--temp-dir", self.temp, *NOW, *flags],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **more)

    def kill_when(self, step, happened, *flags):
        """Killed as soon as @happened is seen; one that was quicker has to have done it all."""
        process = self.start(*flags)
        said = kill_when(process, happened)
        self.assertIn(process.returncode, (0, -signal.SIGKILL), f"{step}: {said}")
        self.check(step)

    def check(self, step):
        for question, right in self.asker.right.items():
            self.assertEqual(self.asker.ask(question), right, f"{step}: {question}")

    def test_killed_at_each_step(self):
        before = self.files()
        self.kill_when("settle", lambda: self.there(f"{self.store}/_below/tenant=default/*"), "--grace=1h")
        self.kill_when("read", lambda: self.there(f"{self.temp}/*"), "--grace=1h")
        self.kill_when("write", lambda: self.there(f"{self.temp}/*/output-0"), "--grace=1h")
        self.kill_when("put", lambda: self.there(f"{self.store}/_leases/merge/tenant=default/*"), "--grace=1h")
        self.kill_when("put more", lambda: len(self.files() - before) > 1, "--grace=1h")
        whole = compact(self.store, *NOW, "--grace=1h")
        self.assertEqual(whole.returncode, 0, whole.stderr)
        self.assertTrue(before <= self.files())
        self.check("merged")
        self.kill_when("delete", lambda: not before <= self.files(), "--grace=0s")
        last = compact(self.store, *NOW, "--grace=0s")
        self.assertEqual(last.returncode, 0, last.stderr)
        self.check("deleted")
        self.assertLessEqual(segments(self.store), 2)  # one shard; the data may lie in two days
        self.assertFalse(before & self.files())
        verified = subprocess.run([BINARY, "segments", "verify", "--store", self.store], capture_output=True, text=True)
        self.assertEqual(verified.returncode, 0, verified.stderr)

    def test_no_room_for_temporary_files(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        before = self.files()
        process = self.start("--grace=1h", preexec_fn=limit)
        _, said = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1, said)
        self.assertIn("error:", said)
        self.assertTrue(before <= self.files())
        self.check("no room")
        self.assertEqual(os.listdir(self.temp), [])
        self.assertEqual(compact(self.store, *NOW).returncode, 0)
        self.check("with room")

    def test_segments_that_go_meanwhile(self):
        """Removed by somebody else: they stay away, whenever that was."""
        rm = [BINARY, "segments", "rm", "--yes", f"--store={self.store}", "--tenant=default",
              f"--from={START}", f"--to={START + 3600}"]
        process = self.start("--grace=1h")
        while process.poll() is None and not self.there(f"{self.temp}/*/output-0"):
            pass
        removed = subprocess.run(rm, capture_output=True, text=True, timeout=300)
        _, said = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, said)
        self.assertEqual(removed.returncode, 0, removed.stderr)
        again = subprocess.run([*rm, "--dry-run"], capture_output=True, text=True, timeout=300)
        self.assertIn("0 segments would go", again.stdout)


if __name__ == "__main__":
    unittest.main()
