"""test_bad_input.py - what a node cannot start with: one clear line each, and what to do."""
import ctypes
import os
import pathlib
import shutil
import subprocess
import unittest

from harness import BINARY, NodeTest, wait_for


class BadInput(NodeTest):
    def refusal(self, node, *args, code=1):
        """The one line a node that does not start prints, without what came before."""
        before = node.log_text() if node.log_path.exists() else ""
        node.start(*args, ready=False)
        self.assertEqual(node.process.wait(30), code, node.log_text()[len(before):])
        node.log.close()
        # That it has no store is said by every node here.
        lines = [line for line in node.log_text()[len(before):].splitlines() if line and "without --store" not in line]
        self.assertEqual(len(lines), 1, lines)
        return lines[0]

    def used(self, **options):
        """A node with a queue and a record in it, stopped."""
        node = self.node(**options).start("--bootstrap")
        node.request("PUT", "/v1/queues/orders")
        for i in range(20):
            node.offer("orders", b"record %d" % i)
        node.stop()
        return node

    def queue_folder(self, node):
        return next(node.data.glob("q-*"))

    def test_another_name_on_the_same_folder(self):
        node = self.used()
        other = self.node("b", data=node.data)
        line = self.refusal(other, code=2)
        self.assertIn("belongs to node a, not b: start it with --ingest-id a", line)

    def test_two_processes_on_one_folder(self):
        node = self.node().start("--bootstrap")
        other = self.node("a", data=node.data)
        other.log_path = pathlib.Path(self.folder) / "other.log"
        line = self.refusal(other)
        self.assertIn("is in use by another process", line)

    def test_a_damaged_log_below_a_sync_mark(self):
        node = self.used()
        log = next(self.queue_folder(node).glob("log-*"))
        data = bytearray(log.read_bytes())
        data[200] ^= 1
        log.write_bytes(data)
        line = self.refusal(node)
        self.assertIn(log.name, line)
        self.assertIn("add it as a new node", line)

    def test_both_copies_of_the_sequence_state_damaged(self):
        node = self.used()
        path = self.queue_folder(node) / "sequence-state.dat"
        path.write_bytes(bytes(b ^ 0xff for b in path.read_bytes()))
        line = self.refusal(node)
        self.assertIn("sequence-state.dat", line)

    def test_a_damaged_snapshot(self):
        node = self.used()
        path = node.data / "meta" / "snapshot.dat"
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)
        self.assertIn("snapshot.dat is damaged", self.refusal(node))

    def newer(self, path, size, salt, copies=1):
        """The file at @path says that it is of the next version, and its header's checksum is right."""
        xxh3 = ctypes.CDLL("libxxhash.so.0").XXH3_64bits_withSeed
        xxh3.argtypes, xxh3.restype = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64), ctypes.c_uint64
        data = bytearray(path.read_bytes())
        for at in range(0, size * copies, size):
            version = int.from_bytes(data[at + 8:at + 16], "little") + 1
            data[at + 8:at + 16] = version.to_bytes(8, "little")
            check = xxh3(bytes(data[at:at + size - 8]), size - 8, salt)
            data[at + size - 8:at + size] = check.to_bytes(8, "little")
        path.write_bytes(data)

    def test_files_of_a_newer_version(self):
        node = self.used()
        state = self.queue_folder(node) / "sequence-state.dat"
        log = next(self.queue_folder(node).glob("log-*"))
        before, salt = state.read_bytes(), int.from_bytes(state.read_bytes()[32:40], "little")
        self.newer(state, len(before) // 2, 0, copies=2)
        self.assertIn("sequence-state.dat was written by a newer version: start that version", self.refusal(node))
        state.write_bytes(before)
        self.newer(log, 64, salt)
        line = self.refusal(node)
        self.assertIn(str(self.queue_folder(node)), line)
        self.assertIn("was written by a newer version: start that one", line)

    def test_a_queues_folder_that_was_lost(self):
        node = self.used()
        shutil.rmtree(self.queue_folder(node))
        line = self.refusal(node)
        self.assertIn("the folder of queue orders", line)
        self.assertIn("is missing: put it back", line)

    def test_a_queues_folder_of_another_node(self):
        node, other = self.used(), self.used(name="b")
        mine, theirs = self.queue_folder(node), self.queue_folder(other)
        shutil.rmtree(mine)
        shutil.copytree(theirs, mine)
        self.assertIn("belongs to another node or cluster", self.refusal(node))

    def test_flags_that_do_not_go_together(self):
        for args in (["--peer", "x"], ["--record-bytes-max", "1GiB"], ["--http-tls-cert", "x"],
                     ["--peer-tls-ca", "x"], ["--election-timeout", "1ms"], ["--log-file-bytes", "1B"],
                     ["--ingest-id", "x" * 64]):
            run = subprocess.run([BINARY, "ingest", "--data", self.folder + "/x", *args],
                                 capture_output=True, text=True, timeout=30)
            self.assertEqual((run.returncode, len(run.stderr.splitlines())), (2, 1), run.stderr)

    def test_an_address_that_is_taken(self):
        node = self.node().start("--bootstrap")
        other = self.node("b")
        other.port = node.port
        self.assertIn(str(node.port), self.refusal(other, "--bootstrap"))

    def test_a_node_in_no_cluster_says_what_to_do(self):
        node = self.node().start(ready=False)
        wait_for("HTTP", lambda: self.answers(node))
        status, answer = node.offer("orders", b"x")
        self.assertEqual((status, answer["error"]), (503, "unavailable"))
        self.assertIn("--bootstrap", answer["message"])
        wait_for("the line", lambda: "in no cluster yet" in node.log_text())
        self.assertEqual(node.request("GET", "/readyz")[0], 503)
        self.assertEqual(node.stop(), 0)
        node.start("--bootstrap")

    def answers(self, node):
        try:
            return node.request("GET", "/livez")[0] == 200
        except OSError:
            return False

    def test_a_node_of_another_cluster_is_refused_with_one_line(self):
        a = self.node("a", ["--election-timeout", "500ms"])
        b = self.node("b", [f"--peer=a=127.0.0.1:{a.peer_port}"])
        a.args.append(f"--peer=b=127.0.0.1:{b.peer_port}")
        a.start("--bootstrap")
        b.start("--bootstrap")
        peers = wait_for("the refusal", lambda: [p for p in a.request("GET", "/v1/peers")[1]["peers"]
                                                 if p["state"] == "wrong cluster"])
        self.assertEqual(peers[0]["name"], "b")
        status, answer = a.request("POST", "/v1/members", {"change": "add", "name": "b"})
        self.assertEqual(status, 503, answer)
        for node in (a, b):
            self.one_line(node, "belongs to another cluster: check --peer, or empty the data folder")

    def one_line(self, node, text):
        """It is said once, however often it is tried."""
        wait_for(text, lambda: text in node.log_text())
        self.assertEqual(node.log_text().count(text), 1, node.log_text())

    def test_two_nodes_with_one_name(self):
        a = self.node("a")
        b = self.node("b", [f"--peer=a=127.0.0.1:{a.peer_port}"])
        a.args.append(f"--peer=b=127.0.0.1:{b.peer_port}")
        a.start("--bootstrap")
        b.start(ready=False)
        wait_for("b", lambda: [p for p in a.request("GET", "/v1/peers")[1]["peers"] if p["state"] == "connected"])
        other = self.node("b", [f"--peer=a=127.0.0.1:{a.peer_port}"], data=self.folder + "/other")
        other.log_path = pathlib.Path(self.folder) / "other.log"
        other.start(ready=False)
        self.one_line(other, "two nodes have one name: give one another --ingest-id")
        self.one_line(a, "two nodes have one name: give one another --ingest-id")

    def test_a_wiped_folder_under_an_old_name(self):
        node = self.used()
        shutil.rmtree(node.data)
        node.start(ready=False)
        self.one_line(node, "in no cluster yet: add it at a member (promfabric queue members --add NAME)")
        self.assertEqual(node.offer("orders", b"x")[0], 503)

    def test_peers_that_nobody_reaches_do_not_stop_a_node(self):
        node = self.node("a", ["--peer=b=127.0.0.1:1"]).start("--bootstrap")
        peers = wait_for("the state", lambda: [p for p in node.request("GET", "/v1/peers")[1]["peers"]
                                               if p["state"] == "unreachable"])
        self.assertEqual(peers[0]["name"], "b")
        self.one_line(node, "peer cannot be reached: check its address and TLS files")
        node.request("PUT", "/v1/queues/orders")
        self.assertEqual(node.offer("orders", b"x")[0], 200)


class FullDisk(NodeTest):
    """On a small file system of its own."""

    def setUp(self):
        super().setUp()
        self.mount = os.path.join(self.folder, "small")
        os.mkdir(self.mount, 0o700)
        run = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m,mode=700", "tmpfs", self.mount],
                             capture_output=True)
        if run.returncode:
            self.skipTest("cannot mount a small file system here")
        self.addCleanup(subprocess.run, ["umount", "-l", self.mount])

    def test_records_are_refused_and_everything_else_goes_on(self):
        node = self.node(data=self.mount + "/data",
                         args=["--disk-reserve", "4MiB", "--log-file-bytes", "1MiB"])
        node.start("--bootstrap")
        node.request("PUT", "/v1/queues/jobs", {"delete_on_consume": "true"})
        acknowledged, refused = [], None
        for i in range(400):
            record = b"%d-" % i + b"x" * 100000
            status, answer = node.offer("jobs", record)
            if status != 200:
                refused = status, answer["error"]
                break
            acknowledged.append(record)
        self.assertEqual(refused, (503, "no_space"))
        self.assertGreater(len(acknowledged), 50)
        node.kill()
        node.start()
        got = []
        while True:
            status, answer = node.request("POST", "/v1/queues/jobs/poll", {"max": 10})
            self.assertEqual(status, 200, answer)
            if not answer["records"]:
                break
            got += [r["data"].encode() for r in answer["records"]]
        self.assertEqual(got, acknowledged)
        wait_for("room again", lambda: node.offer("jobs", b"x" * 100000)[0] == 200, 40)


if __name__ == "__main__":
    unittest.main()
