"""test_capped.py - segments and artifacts that lie about what they cost, read by processes whose memory is
capped.

Each file is small and sealed as it should be. What it says of itself (pages, runs, rows, footers) costs
gigabytes if it is believed, and the process that reads it may have HEADROOM more than it has when it is
idle: who takes memory on a file's word dies, or says that it has none. Nobody may."""
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "api"))
import harness  # noqa: E402
from harness import START, Fabric, load, standard_lines, wait_for  # noqa: E402

MIB = 1 << 20
BOMBS = ("pages", "runs", "samples", "digits", "footer", "footers")  # as in bombs.h
EDITED = 300
# A footer may cost 256 MiB, whatever a work may use; the rest is for two budgets of 32 MiB and threads.
HEADROOM = 400 * MIB
MEMORY = "--work-memory-max=32MiB"
END = START + 3600
RANGE = {"query": '{__name__=~".+"}', "start": START, "end": END, "step": 60}
REFUSALS = {403, 422, 500}  # tenant, limit or unsupported, corrupt: all of them final


def address_space(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmSize:\s+(\d+) kB", status).group(1)) * 1024


def cap(process):
    """From now on the process may have no more than HEADROOM beyond what it has."""
    limit = address_space(process) + HEADROOM
    resource.prlimit(process.pid, resource.RLIMIT_AS, (limit, limit))


def tell(what, statuses):
    print(f"\n  {what}: " + ", ".join(f"{status}: {count}"
                                      for status, count in sorted(statuses.items())))


class Capped(unittest.TestCase):
    def fabric(self, worker_flags=(MEMORY,)):
        os.environ["MALLOC_ARENA_MAX"] = "2"  # addresses that are reserved count as well
        fabric = Fabric(1, ("--query-memory=64MiB", "--query-timeout=60s"),
                        ("--slots=1", *worker_flags), start_workers=False)
        self.addCleanup(fabric.close)
        load(fabric.store, standard_lines(), shards=1)
        return fabric

    def start(self, fabric, env=None, binary=None):
        before = harness.BINARY
        harness.BINARY = binary or before
        fabric.start_worker(0, env=env)
        harness.BINARY = before
        fabric.wait_workers(1)

    def right(self, fabric):
        self.assertEqual(fabric.query("count(up)", END)["result"][0]["value"][1], "2")

    def ask(self, fabric, tenant):
        status, answer = fabric.json("/api/v1/query_range", RANGE, headers={"X-Scope-OrgID": tenant})
        return status, answer.get("error", "")

    def alive(self, fabric):
        """Neither died, and none was blamed for it."""
        self.assertIsNone(fabric.api.process.poll(), fabric.api.log_text()[-2000:])
        self.assertIsNone(fabric.workers[0].process.poll(), fabric.workers[0].log_text()[-2000:])
        self.assertEqual(fabric.metric("promfabric_api_work_blamed_total"), 0)
        self.assertEqual(fabric.metric("promfabric_api_control_disconnects_total"), 0)


class Segments(Capped):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="pf-hostile-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        subprocess.run([os.environ["PROMFABRIC_HOSTILE_SEGMENTS"], cls.folder, str(START * 1000),
                        str(EDITED), "1"], check=True)

    def start_among_them(self, *worker_flags):
        fabric = self.fabric(worker_flags)
        shutil.copytree(self.folder, fabric.store, dirs_exist_ok=True)
        self.start(fabric)
        wait_for("the segments", lambda: fabric.metric("promfabric_api_catalog_segments") > EDITED)
        self.right(fabric)
        cap(fabric.workers[0])
        return fabric

    def test_a_worker_reads_none_of_them_beyond_its_budget(self):
        fabric = self.start_among_them(MEMORY)
        cap(fabric.api)
        for number, bomb in enumerate(BOMBS):
            with self.subTest(bomb):
                status, error = self.ask(fabric, f"b{number}")
                # A text that is there once and meant a thousand times can be read within a budget.
                self.assertIn(status, {200, *REFUSALS} if bomb == "runs" else REFUSALS, error)
                self.assertNotRegex(error, "out of memory|no_memory")
                self.alive(fabric)
                self.right(fabric)
        statuses = {}
        for number in range(EDITED):
            status, error = self.ask(fabric, f"e{number}")
            self.assertIn(status, {200, *REFUSALS}, (number, error))
            statuses[status] = statuses.get(status, 0) + 1
        self.alive(fabric)
        self.right(fabric)
        self.assertGreater(statuses.get(500, 0), EDITED / 10)  # the changes do change something
        tell(f"{EDITED} changed segments", statuses)

    def test_the_cap_is_one(self):
        """With a budget beyond its cap a worker does not answer: so the cap would be noticed."""
        fabric = self.start_among_them("--work-memory-max=8GiB")
        status, error = self.ask(fabric, f"b{BOMBS.index('pages')}")
        died = fabric.workers[0].process.poll() is not None
        self.assertTrue(died or "memory" in error, (status, error))
        if died:
            fabric.workers[0] = None


class Artifacts(Capped):
    def start_liar(self, fabric, lie=None):
        self.start(fabric, {"PROMFABRIC_LIE": lie} if lie else {},
                   os.environ["PROMFABRIC_LYING_WORKER"])

    def start_warm(self):
        """The API as large as it is when it works, and capped; the worker tells the truth still."""
        fabric = self.fabric()
        self.start_liar(fabric)
        self.right(fabric)
        fabric.workers[0].kill()
        cap(fabric.api)
        return fabric

    def asked(self, fabric, step, statuses):
        status, answer = fabric.json("/api/v1/query_range", {
            "query": "temperature", "start": START, "end": END, "step": step})
        self.assertIn(status, statuses, answer.get("error"))
        self.assertNotRegex(answer.get("error", ""), "out of memory|no_memory")
        self.assertIsNone(fabric.api.process.poll(), fabric.api.log_text()[-2000:])
        return status

    def test_the_api_reads_none_of_them_beyond_its_budget(self):
        fabric = self.start_warm()
        for number, bomb in enumerate(BOMBS):
            with self.subTest(bomb):
                self.start_liar(fabric, str(number))
                try:
                    self.asked(fabric, 60, REFUSALS)
                finally:
                    fabric.workers[0].kill()
                wait_for("its end", lambda: fabric.scaling()["workers"]["alive"] == 0)
        self.start(fabric)
        self.right(fabric)

    def test_the_api_outlives_changed_ones(self):
        fabric = self.start_warm()
        self.start_liar(fabric, "edits")
        got = {}
        for number in range(150):
            status = self.asked(fabric, 60 + number, {200, *REFUSALS})
            got[status] = got.get(status, 0) + 1
        self.assertLess(got.get(200, 0), 135, got)
        fabric.workers[0].kill()
        self.start(fabric)
        self.right(fabric)
        tell("150 queries with changed artifacts", got)


if __name__ == "__main__":
    unittest.main()
