"""test_handoff.py - storage nodes that were away get what they missed: kept by the ingest node, within bounds, sent in turns, over crashes."""
import os
import random
import subprocess
import time
import unittest

from harness import BINARY, wait_for
from heads import status, write
from test_migrations import NODES, NOW, MigrationTest

METRIC = "promfabric_ingest_handoff_"


class HandoffTest(MigrationTest):
    """One ingest node, keepers that do not mend themselves: what they get, they get from hand-off."""

    def fabric(self, *args, keepers=3):
        self.round = 0
        super().fabric(keepers=keepers, copies=keepers, args=["--log-level", "debug", *args])
        self.a = self.nodes[0]
        self.spool = self.a.data / "handoff"

    def metric(self, name, **labels):
        text = self.a.raw("GET", "/metrics")[1].decode()
        want = METRIC + name + ("{" + ",".join(f'{k}="{v}"' for k, v in labels.items()) + "}" if labels else "")
        return next(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(want + " "))

    def more(self, series=12, tenants=("t0", "t1")):
        """One range more of each tenant, sealed."""
        self.round += 1
        for tenant in tenants:
            self.assertEqual(self.write_once(series, tenant), 204)
        self.sealed(tenants)

    def write_once(self, series, tenant, timeout=30):
        values = random.Random(self.round)
        lines = "".join(f'm{{s="{s}"}} {values.random()} {NOW + self.round}\n' for s in range(series))
        return write(self.a, lines, tenant=tenant, timeout=timeout)

    def sealed(self, tenants=("t0", "t1"), timeout=120):
        def nothing_waits():
            for tenant in tenants:
                code, answer = status(self.a, tenant)
                if code != 200 or any(p["ranges"] for p in answer["partitions"]):
                    return False
            return True
        wait_for("everything to be sealed", nothing_waits, timeout)

    def files(self, folder):
        return [f for f in (self.spool / folder).rglob("*") if f.is_file()]

    def empty(self):
        wait_for("hand-off to be empty", lambda: self.metric("references") == 0, 120)
        self.assertEqual(self.metric("bytes"), 0)
        self.assertEqual(self.files("store") + self.files("refs") + self.files("tmp"), [])

    def same(self, *names):
        """Every keeper holds the same blobs, each once, with the same bytes."""
        held = [self.keepers[n].blobs() for n in self.keepers]
        for name, blobs in zip(self.keepers, held):
            self.assertEqual(set(blobs), set(held[-1]), name)
            self.assertEqual(len([f for f in (self.keepers[name].disk / "blobs").rglob("*") if f.is_file()]), len(blobs))
        for blob, path in held[-1].items():
            content = path.read_bytes()
            for blobs in held:
                self.assertEqual(blobs[blob].read_bytes(), content, blob)
        return len(held[0])


class Replay(HandoffTest):
    def test_a_node_that_was_away_gets_what_it_missed(self):
        self.fabric("--handoff-pause", "10ms")
        self.more()
        self.assertEqual(self.metric("references"), 0)  # nobody was away: nothing was kept
        self.assertEqual(self.metric("delivered_total"), 0)
        self.keepers["k0"].kill()
        before = set(self.keepers["k0"].blobs())
        self.more()
        self.more()
        missing = set(self.keepers["k1"].blobs()) - before
        self.assertGreater(len(missing), 2)
        self.assertEqual(self.metric("references"), len(missing))
        self.assertEqual(len(self.files("store")), len(missing))
        self.assertEqual(len(self.files("refs")), len(missing))
        self.assertEqual(self.metric("nodes"), 1)
        wait_for("it to be seen", lambda: self.metric("nodes_away") == 1)
        self.assertGreater(self.metric("oldest_seconds"), 0)
        self.assertEqual(self.metric("bytes"), sum(f.stat().st_size for f in self.files("store")))
        self.keepers["k0"].start()
        self.empty()
        self.assertEqual(self.metric("delivered_total"), len(missing))
        self.assertEqual(self.metric("sent_bytes_total"),
                         sum(p.stat().st_size for n, p in self.keepers["k0"].blobs().items() if n in missing))
        self.same()
        self.more()  # and from now on it takes part again
        self.assertEqual(self.metric("references"), 0)
        self.same()

    def test_payloads_are_kept_once_and_survive_a_restart(self):
        self.fabric("--handoff-pause", "10ms", keepers=5)
        for name in ("k0", "k1"):
            self.keepers[name].kill()
        self.more(tenants=("t0",))
        count = len(self.keepers["k2"].blobs())
        self.assertEqual((len(self.files("store")), len(self.files("refs"))), (count, 2 * count))
        self.a.kill()
        # What a crash may leave: a file half written, a payload nobody refers to.
        (self.spool / "tmp" / "7").write_bytes(b"half")
        (self.spool / "store" / ("0" * 32)).write_bytes(b"nobody's")
        self.a.start()
        wait_for("it to be read", lambda: self.metric("references") == 2 * count)
        self.assertEqual(len(self.files("store")), count)
        self.keepers["k0"].start()
        wait_for("one to have everything", lambda: self.metric("references") == count, 60)
        self.assertEqual(len(self.files("store")), count)
        self.keepers["k1"].start()
        self.empty()
        self.same()

    def test_a_damaged_payload_is_never_sent_and_the_node_fetches_the_blob(self):
        self.fabric("--handoff-pause", "10ms")
        self.keepers["k0"].kill()
        self.more(tenants=("t0",))
        kept = self.files("store")
        kept[0].write_bytes(b"x" * kept[0].stat().st_size)
        self.keepers["k0"].start()
        self.empty()
        self.assertEqual(self.metric("dropped_total", why="damage"), 1)
        self.assertEqual(self.metric("delivered_total"), len(kept) - 1)
        wait_for("it to be repaired", lambda: self.metric("repaired_total") == 1 and self.metric("repair_marks") == 0, 60)
        self.same()

    def test_three_nodes_that_come_back_are_replayed_fairly(self):
        quantum = 2
        self.fabric("--handoff-quantum", str(quantum), "--handoff-pause", "300ms", keepers=7)
        back = ["k0", "k1", "k2"]
        for name in back:
            self.keepers[name].kill()
        for _ in range(3):
            self.more(tenants=("t0",))
        total = len(self.keepers["k6"].blobs())
        self.assertGreater(total, 5 * quantum)
        # All of them are back when the ingest node looks for the first time.
        self.a.kill()
        for name in back:
            self.keepers[name].start()
        self.a.start()

        def counts():
            return [len(self.keepers[name].blobs()) for name in back]
        worst, deadline = 0, time.monotonic() + 120
        while min(counts()) < total and time.monotonic() < deadline:
            now = counts()
            worst = max(worst, max(now) - min(now))
            time.sleep(0.05)
        self.assertEqual(counts(), [total] * 3)
        self.assertLessEqual(worst, 3 * quantum, "one node got its turns before the others")
        self.empty()
        self.same()

    def test_a_nodes_share_of_bytes_is_kept(self):
        self.fabric("--handoff-pause", "10ms", "--handoff-rate", "20KiB")
        self.keepers["k0"].kill()
        self.more(3000, ("t0",))
        missing = self.metric("bytes")
        self.assertGreater(missing, 60 << 10)
        self.keepers["k0"].start()
        wait_for("the first to come", lambda: self.metric("sent_bytes_total") > 0, 60)
        began, first = time.monotonic(), self.metric("sent_bytes_total")
        self.empty()
        self.assertGreater(time.monotonic() - began, 0.8 * (missing - first) / (20 << 10))
        self.same()

    def test_kills_at_any_step_lose_and_double_nothing(self):
        seed = int(os.environ.get("SEED", time.time()))
        print("seed", seed)
        chance = random.Random(seed)
        self.fabric("--handoff-quantum", "1", "--handoff-pause", "30ms")
        for i in range(6):
            self.keepers["k0"].kill()
            self.more(tenants=("t0",))
            self.keepers["k0"].start()
            for _ in range(3):
                time.sleep(chance.random() * 0.7)
                self.a.kill()
                if chance.random() < 0.3:
                    self.keepers["k0"].kill()
                    self.keepers["k0"].start()
                self.a.start()
        self.sealed(("t0",))
        self.empty()
        self.assertGreater(self.same(), 12)

    def test_kills_while_it_is_kept_lose_nothing(self):
        chance = random.Random(int(os.environ.get("SEED", time.time())))
        self.fabric("--handoff-pause", "10ms")
        self.keepers["k0"].kill()
        for _ in range(6):
            self.round += 1
            self.assertEqual(self.write_once(12, "t0"), 204)
            time.sleep(0.8 + chance.random())
            self.a.kill()
            self.a.start()
        self.sealed(("t0",))
        self.keepers["k0"].start()
        self.empty()
        self.same()

    def test_a_node_that_is_removed_needs_nothing_any_more(self):
        self.fabric("--handoff-pause", "10ms", keepers=4)
        code, answer = self.a.request("PUT", "/v1/admin/ring", {"copies": 3})
        self.assertEqual(code, 200, answer)
        self.ended(answer["migration"])
        self.keepers["k0"].kill()
        self.more(tenants=[f"t{i}" for i in range(4)])
        self.assertGreater(self.metric("references"), 0)
        self.ended(self.ask("DELETE", f"{NODES}/k0")["migration"])
        self.empty()
        self.assertEqual(self.metric("delivered_total") + self.metric("repair_marks"), 0)


class Caps(HandoffTest):
    BIG = 15000  # series of a range: some hundred KiB

    def test_at_its_cap_it_becomes_repair_marks_while_writers_go_on(self):
        self.fabric("--handoff-max-size-mb", "1", "--handoff-pause", "10ms")
        self.keepers["k0"].kill()
        for _ in range(12):
            self.more(self.BIG, ("t0",))
            self.assertLessEqual(self.metric("bytes"), 1 << 20)
            if self.metric("dropped_total", why="cap") > 4:
                break
        dropped = self.metric("dropped_total", why="cap")
        self.assertGreater(dropped, 4)
        self.assertGreater(self.metric("bytes"), 1 << 19)
        self.assertEqual(self.metric("repair_marks"), dropped)
        self.assertLessEqual(sum(f.stat().st_size for f in self.files("store")), 1 << 20)
        self.keepers["k0"].start()
        self.empty()
        wait_for("marks to be gone", lambda: self.metric("repair_marks") == 0, 120)
        self.assertEqual(self.metric("repaired_total"), dropped)
        self.same()

    def test_the_cap_of_all_nodes_counts_payloads_once(self):
        self.fabric("--handoff-store-max-size-mb", "1", "--handoff-pause", "10ms", keepers=5)
        for name in ("k0", "k1"):
            self.keepers[name].kill()
        for _ in range(12):
            self.more(self.BIG, ("t0",))
            self.assertLessEqual(self.metric("bytes"), 1 << 20)
            if self.metric("dropped_total", why="cap") > 4:
                break
        self.assertGreater(self.metric("dropped_total", why="cap"), 4)
        self.assertGreater(self.metric("bytes"), 1 << 19)
        for name in ("k0", "k1"):
            self.keepers[name].start()
        self.empty()
        wait_for("marks to be gone", lambda: self.metric("repair_marks") == 0, 120)
        self.same()

    def test_with_backpressure_writers_get_503_and_go_on_when_the_node_is_back(self):
        self.fabric("--handoff-max-size-mb", "1", "--handoff-policy", "backpressure", "--handoff-pause", "10ms",
                    "--log-file-bytes", "1MiB", "--data-bytes", "4MiB")
        self.keepers["k0"].kill()
        codes, taken = [], 0
        for _ in range(40):
            self.round += 1
            codes.append(self.write_once(self.BIG, "t0"))
            if codes[-1] == 503:
                break
            taken += 1
            time.sleep(1)
        self.assertEqual(codes, [204] * taken + [503])
        self.assertGreater(self.metric("refused_total"), 0)
        self.assertEqual(self.metric("dropped_total", why="cap"), 0)
        self.assertLessEqual(self.metric("bytes"), 1 << 20)
        self.assertGreater(self.a.metric("promfabric_ingest_seal_failures_total"), 0)
        self.keepers["k0"].start()
        self.sealed(("t0",), 180)
        self.empty()
        self.same()
        self.round += 1
        wait_for("samples to be taken again", lambda: self.write_once(12, "t0") == 204, 60)
        self.sealed(("t0",))
        self.empty()
        self.same()

    def test_a_folder_that_cannot_be_written_stops_nobody(self):
        self.fabric("--handoff-pause", "10ms")
        self.keepers["k0"].kill()
        for folder in ("store", "refs", "tmp"):
            (self.spool / folder).rename(self.spool / f"no-{folder}")
        self.more(tenants=("t0",))
        self.assertGreater(self.metric("disk_failures_total"), 0)
        self.assertEqual(self.metric("references"), 0)
        self.assertGreater(self.metric("repair_marks"), 0)
        self.keepers["k0"].start()
        wait_for("marks to be gone", lambda: self.metric("repair_marks") == 0, 60)
        self.same()


class Flags(unittest.TestCase):
    def test_what_cannot_be_is_refused(self):
        for args, said in ((["--handoff-policy", "hope"], "drop-oldest or backpressure"),
                           (["--handoff-max-size-mb", "0"], "1 to"), (["--handoff-quantum", "0"], "1 to 65536"),
                           (["--handoff-pause", "0s"], "1ms to 1h")):
            done = subprocess.run([BINARY, "ingest", *args], capture_output=True, text=True, timeout=30)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main()
