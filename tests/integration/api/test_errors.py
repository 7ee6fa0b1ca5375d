"""test_errors.py - what clients hear of errors inside the fabric: no addresses, no paths."""
import glob
import os
import unittest

from harness import START, Fabric, load, standard_lines


class Errors(unittest.TestCase):
    """Each error has a query id; under it the log has what the client is not told."""

    def fabric(self, *worker_flags):
        fabric = Fabric(1, (), worker_flags)
        self.addCleanup(fabric.close)
        load(fabric.store, standard_lines(2, 50), shards=1)
        fabric.wait_workers(1)
        return fabric

    def check(self, fabric, detail):
        """An error that tells nothing of the inside; @detail is in the log with the same query id."""
        status, headers, body = fabric.get("/api/v1/query", {"query": "up", "time": START + 300})
        text = body.decode()
        self.assertGreaterEqual(status, 500, text)
        for secret in (fabric.folder, "/tmp", "127.0.0.1", "localhost", "worker-0"):
            self.assertNotIn(secret, text)
        query = headers["X-Query-Id"]
        lines = [line for line in fabric.api.log_text().splitlines() if query in line]
        self.assertTrue([line for line in lines if detail in line], "\n".join(lines))
        return text

    def test_a_segment_that_cannot_be_read(self):
        fabric = self.fabric()
        for path in glob.glob(f"{fabric.store}/**/*.parquet", recursive=True):
            with open(path, "r+b") as file:
                file.seek(-8, os.SEEK_END)
                file.write(b"\xff\xff\xff")
        text = self.check(fabric, ".parquet")
        self.assertIn('"error":"tenant=default/date=2023-11-14/', text)  # as the store calls it

    def test_an_artifact_that_cannot_be_fetched(self):
        fabric = self.fabric("--advertise-url=http://127.0.0.1:1")
        text = self.check(fabric, "127.0.0.1")
        self.assertIn("the result of a worker was not fetched (query ", text)

    def test_a_store_that_cannot_be_listed(self):
        fabric = self.fabric()
        (tenant,) = glob.glob(f"{fabric.store}/tenant=*")
        os.makedirs(tenant + "/date=2023-11-14" + "/deep" * 40)
        text = self.check(fabric, "deep")
        self.assertIn("the store cannot be listed (query ", text)
        self.assertNotIn("deep", text)


if __name__ == "__main__":
    unittest.main()
