"""test_conformance.py - conformance scripts through import, workers, artifacts and HTTP.

Our own scripts, and Prometheus's where they are at hand: in the folder that PROMFABRIC_CORPUS names,
or beside the repository. What passes in process has to pass here."""
import os
import pathlib
import re
import subprocess
import unittest

from harness import Fabric

RUNNER = os.environ["PROMFABRIC_PROMQLTEST"]
OWN = pathlib.Path(__file__).resolve().parents[2] / "conformance"
CORPUS = pathlib.Path(os.environ.get("PROMFABRIC_CORPUS") or
                      OWN.parents[2] / "shared" / "promql" / "promqltest")
FEATURES = ["promql-experimental-functions", "promql-extended-range-selectors",
            "promql-binop-fill-modifiers", "promql-delayed-name-removal", "use-start-timestamps"]


class Conformance(unittest.TestCase):
    def setUp(self):
        self.fabric = Fabric(2, ("--log-level=warn", "--query-samples=10000",
                                 *[f"--enable-feature={f}" for f in FEATURES]),
                             ("--log-level=warn",))
        self.addCleanup(self.fabric.close)
        self.fabric.wait_workers(2)

    def run_scripts(self, scripts, *flags):
        run = subprocess.run([RUNNER, *flags, *map(str, scripts)], capture_output=True, text=True,
                             timeout=500)
        failed = set(re.findall(r"^FAILED (\S+:\d+):", run.stdout, re.M))
        total = re.findall(r"^(\d+) passed, (\d+) failed, (\d+) skipped", run.stdout, re.M)
        self.assertTrue(total, run.stdout[-500:] + run.stderr[-500:])
        return failed, tuple(map(int, total[-1])), run.stdout

    def check(self, folder):
        scripts = sorted(pathlib.Path(folder).glob("*.test"))
        self.assertTrue(scripts, folder)
        inside, inside_total, _ = self.run_scripts(scripts, "--shards=4")
        through, through_total, out = self.run_scripts(
            scripts, "--shards=4", f"--http=http://127.0.0.1:{self.fabric.api_port}",
            f"--store={self.fabric.store}")
        print(f"\n{folder}: in process {inside_total}, through HTTP {through_total} "
              "(passed, failed, skipped)")
        self.assertEqual(sorted(through - inside), [], out)
        self.assertGreater(through_total[0], 0)

    def test_our_scripts(self):
        self.check(OWN)

    def test_the_corpus_of_prometheus(self):
        if not CORPUS.is_dir():
            self.skipTest(f"there are no scripts in {CORPUS}")
        self.check(CORPUS)


if __name__ == "__main__":
    unittest.main()
