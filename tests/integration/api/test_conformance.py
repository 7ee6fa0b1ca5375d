"""test_conformance.py - conformance scripts through import, workers, artifacts and HTTP.

Our own scripts, and Prometheus's where they are at hand: in the folder that PROMFABRIC_CORPUS names,
or beside the repository. Every series is imported by `promfabric import` into a fresh tenant, and
every eval must have the verdict here that it has in process."""
import os
import pathlib
import re
import subprocess
import unittest

from harness import BINARY, Fabric

RUNNER = os.environ["PROMFABRIC_PROMQLTEST"]
OWN = pathlib.Path(__file__).resolve().parents[2] / "conformance"
CORPUS = pathlib.Path(os.environ.get("PROMFABRIC_CORPUS") or
                      OWN.parents[2] / "shared" / "promql" / "promqltest")
SHARDS = int(os.environ.get("PROMFABRIC_CONFORMANCE_SHARDS") or 4)
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
        """The verdict of every eval, the totals and what was printed."""
        run = subprocess.run([RUNNER, "--verdicts", *flags, *map(str, scripts)],
                             capture_output=True, text=True, timeout=1500)
        verdicts = dict(re.findall(r"^verdict (\S+:\d+) (\w+)$", run.stdout, re.M))
        total = re.findall(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", run.stdout, re.M)
        self.assertTrue(total, run.stdout[-500:] + run.stderr[-500:])
        total = tuple(map(int, total[-1]))
        self.assertEqual(sum(total), len(verdicts))
        return verdicts, total, run.stdout

    def check(self, folder):
        scripts = sorted(pathlib.Path(folder).glob("*.test"))
        self.assertTrue(scripts, folder)
        inside, inside_total, _ = self.run_scripts(scripts, f"--shards={SHARDS}")
        through, through_total, out = self.run_scripts(
            scripts, f"--shards={SHARDS}", "--through=http", f"--binary={BINARY}",
            f"--http=http://127.0.0.1:{self.fabric.api_port}", f"--store={self.fabric.store}")
        print(f"\n{folder}: {len(inside)} evals, in process {inside_total}, through HTTP "
              f"{through_total} (passed, failed, skipped)")
        self.assertEqual(sorted(inside), sorted(through))
        others = [f"{at}: {inside[at]} in process, {through[at]} through HTTP"
                  for at in inside if inside[at] != through[at]]
        self.assertEqual(others, [], out)
        self.assertGreater(through_total[0], 0)

    def test_our_scripts(self):
        self.check(OWN)

    def test_the_corpus_of_prometheus(self):
        if not CORPUS.is_dir():
            self.skipTest(f"there are no scripts in {CORPUS}")
        self.check(CORPUS)


if __name__ == "__main__":
    unittest.main()
