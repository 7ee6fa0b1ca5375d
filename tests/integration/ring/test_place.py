"""test_place.py - work goes to the storage nodes that hold its segments, with more nodes than copies; to others when these are gone."""
import re
import unittest

from harness import wait_for
from keepers import api
from test_blobs import NOW, BlobsTest

SHARDS = 8
RANGES = 2


class Place(BlobsTest):
    def fabric_of_five(self, copies):
        """Blobs are with some keepers only; small queries have a work item for each shard as well."""
        self.fabric(keepers=5, copies=copies, shards=SHARDS, api_args=("--small-scan", "0s"))
        for i in range(RANGES):
            self.write_and_seal(100 * (i + 1), NOW + 1000 * i)
        self.complete(copies)

    def complete(self, copies):
        """Every blob is with all of its owners: a put goes on behind its majority."""
        def held():
            held = [set(k.blobs()) for k in self.keepers]
            return all(sum(name in h for h in held) == copies for name in set().union(*held))
        wait_for("all copies to be there", held, 60)
        self.holders = {name: [k for k in self.keepers if name in k.blobs()]
                        for name in set().union(*(set(k.blobs()) for k in self.keepers)) if name.endswith(".parquet")}
        self.shards = len({re.search(r"_s\d+of\d+_", name).group() for name in self.holders})  # that have series
        self.assertGreater(self.shards, 4)

    def ask(self):
        """Two questions, each with a work item for each shard."""
        self.assertEqual(self.query(ts=NOW), [20 * 100 + 190])
        self.assertEqual(self.query("sum(count_over_time(m[1h]))", ts=NOW + 1000 * RANGES), [20 * RANGES])

    def placed(self, where, process=None):
        return (process or self.api).metric(f'promfabric_api_work_placed_total{{where="{where}"}}')

    def read(self, shards, process=None):
        return (process or self.api).metric(f'promfabric_api_work_remote_bytes_total{{shards="{shards}"}}')

    def downloads(self):
        return [k.metric("promfabric_worker_download_bytes_total") for k in self.keepers if k.process]

    def test_items_of_one_shard_read_nothing_from_others(self):
        self.fabric_of_five(copies=3)
        self.ask()
        self.assertEqual(self.placed("owner"), 2 * self.shards)
        self.assertEqual(self.placed("other"), 0)
        self.assertEqual(self.read("one"), 0)
        self.assertEqual(self.downloads(), [0] * 5)

        # One owner of a blob is killed, then another one: the last one has its work.
        first, second, last = next(h for h in self.holders.values() if len(h) == 3)
        for dead in (first, second):
            dead.kill()
            before = self.placed("owner")
            self.ask()
            self.assertGreaterEqual(self.placed("owner"), before + 2 * self.shards)
            self.assertEqual(self.placed("other"), 0)
            self.assertEqual(self.read("one"), 0)
        self.assertEqual(self.downloads(), [0] * 3)
        self.assertIn(last, [k for k in self.keepers if k.process])

    def test_without_an_owner_any_worker_reads_from_who_has_it(self):
        self.fabric_of_five(copies=2)
        # This API knows one worker: what that does not hold it reads from the others.
        some = self.started(api(self.folder, self.store, self.a, self.keepers[:1], "--small-scan", "0s", name="some"))
        known, self.api = self.api, some
        self.ask()
        strangers = sum(self.keepers[0] not in h for h in self.holders.values())
        self.assertGreater(strangers, 0)
        self.assertGreater(self.placed("other"), 0)
        self.assertEqual(self.placed("owner") + self.placed("other"), 2 * self.shards)
        self.assertGreater(self.read("one"), 0)
        self.assertGreater(self.downloads()[0], 0)

        # One item for all shards is counted apart, whoever has it.
        self.api = self.started(api(self.folder, self.store, self.a, self.keepers, "--small-scan", "1h", name="small"))
        self.ask()
        self.assertEqual(self.placed("all_shards"), 2)
        self.assertEqual(self.placed("owner") + self.placed("other"), 0)
        self.assertEqual(self.read("one"), 0)
        self.api = known
        self.ask()
        self.assertEqual(self.placed("other"), 0)


if __name__ == "__main__":
    unittest.main()
