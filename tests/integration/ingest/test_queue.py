"""test_queue.py - queues of one node through HTTP: what is acknowledged stays, and in its order."""
import concurrent.futures
import itertools
import os
import random
import threading
import time
import unittest

from harness import NodeTest, data_of, wait_for


class Records(NodeTest):
    def test_offers_through_the_queue_and_through_a_plain_file_give_the_same_sequence(self):
        node = self.node().start("--bootstrap")
        node.request("PUT", "/v1/queues/orders")
        prng, plain = random.Random(1), []
        for i in range(300):
            if prng.random() < 0.3:
                batch = [b"%d-%d" % (i, j) for j in range(prng.randrange(1, 20))]
                status, answer = node.offer_lines("orders", batch)
                self.assertEqual((status, answer["count"]), (200, len(batch)))
                plain += batch
            else:
                record = prng.randbytes(prng.randrange(0, 5000))
                self.assertEqual(node.offer("orders", record)[0], 200)
                plain.append(record)
            if i in (100, 200):
                node.kill() if i == 100 else node.stop()
                node.start()
        self.assertEqual([data for _, data in node.read_all("orders")], plain)

    def test_a_killed_process_loses_nothing_that_was_acknowledged(self):
        node = self.node().start("--bootstrap")
        node.request("PUT", "/v1/queues/orders")
        acknowledged, lock = {}, threading.Lock()

        def offer_until_it_dies(client):
            for i in range(100000):
                record = b"%d/%d" % (client, i)
                try:
                    status, answer = node.offer("orders", record)
                except OSError:
                    return
                if status == 200:
                    with lock:
                        acknowledged[answer["first"]] = record

        for _ in range(3):
            threads = [threading.Thread(target=offer_until_it_dies, args=(c,)) for c in range(8)]
            for thread in threads:
                thread.start()
            before = len(acknowledged)
            wait_for("offers", lambda: len(acknowledged) > before + 50)
            node.kill()
            for thread in threads:
                thread.join()
            node.start()
            there = dict(node.read_all("orders"))
            for offset, record in acknowledged.items():
                self.assertEqual(there.get(offset), record)

    def test_what_many_clients_offer_at_once_shares_syncs(self):
        node = self.node().start("--bootstrap")
        node.request("PUT", "/v1/queues/orders")
        before = node.metric("promfabric_ingest_queue_syncs_total")
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            statuses = list(pool.map(lambda i: node.offer("orders", b"x" * 4096)[0], range(640)))
        self.assertEqual(set(statuses), {200})
        self.assertEqual(node.metric("promfabric_ingest_queue_records_total"), 640)
        self.assertLess(node.metric("promfabric_ingest_queue_syncs_total") - before, 640)

    def test_levels(self):
        node = self.node().start("--bootstrap")
        node.request("PUT", "/v1/queues/orders", {"level": "one"})
        for level in ("one", "quorum", "all"):
            self.assertEqual(node.offer("orders", b"x", level=level)[0], 200)
        status, answer = node.offer("orders", b"x", level="most")
        self.assertEqual((status, answer["error"]), (400, "bad_data"))
        self.assertIn("one, quorum or all", answer["message"])

    def test_bytes_that_are_no_text_come_back_as_they_were(self):
        node = self.node().start("--bootstrap")
        node.request("PUT", "/v1/queues/orders")
        for record in (b"", b"\x00\xff\xfe", "ä€".encode(), b'"\\\n', bytes(range(256))):
            node.offer("orders", record)
            self.assertEqual(node.read_all("orders")[-1][1], record)

    def test_a_form_is_a_record_and_not_parameters(self):
        node = self.node().start("--bootstrap")
        node.request("PUT", "/v1/queues/orders")
        status, _ = node.request("POST", "/v1/queues/orders", None, "level=nonsense",
                                 {"Content-Type": "application/x-www-form-urlencoded"})
        self.assertEqual(status, 200)
        self.assertEqual(node.read_all("orders")[-1][1], b"level=nonsense")


class Consumers(NodeTest):
    def setUp(self):
        super().setUp()
        self.a = self.node().start("--bootstrap")
        self.a.request("PUT", "/v1/queues/orders")

    def test_each_has_an_offset_of_its_own_that_survives_and_never_goes_back(self):
        self.a.offer_lines("orders", [b"%d" % i for i in range(10)])
        first = self.a.request("GET", "/v1/queues/orders", {"consumer": "x", "max": 3})[1]
        self.assertEqual([r["data"] for r in first["records"]], ["0", "1", "2"])
        again = self.a.request("GET", "/v1/queues/orders", {"consumer": "x", "max": 3})[1]
        self.assertEqual(again["records"], first["records"])  # a GET moves nothing
        status, answer = self.a.request("PUT", "/v1/queues/orders/offsets",
                                        {"consumer": "x", "offset": first["next"]})
        self.assertEqual((status, answer), (200, {"offset": first["next"]}))
        taken = self.a.request("POST", "/v1/queues/orders/poll", {"consumer": "y", "max": 4})[1]
        self.assertEqual([r["data"] for r in taken["records"]], ["0", "1", "2", "3"])
        self.a.kill()
        self.a.start()
        for consumer, want in (("x", "3"), ("y", "4"), ("z", "0")):
            answer = self.a.request("GET", "/v1/queues/orders", {"consumer": consumer, "max": 1})[1]
            self.assertEqual(answer["records"][0]["data"], want)
        status, answer = self.a.request("PUT", "/v1/queues/orders/offsets",
                                        {"consumer": "x", "offset": 1})
        self.assertEqual((status, answer["error"]), (409, "exists"))
        self.assertIn("never go back", answer["message"])
        offsets = self.a.request("GET", "/v1/queues/orders/offsets")[1]["consumers"]
        self.assertEqual({c["consumer"] for c in offsets}, {"x", "y"})

    def test_peek_shows_the_oldest_and_takes_nothing(self):
        self.assertEqual(self.a.request("GET", "/v1/queues/orders/peek")[1]["records"], [])
        self.a.offer_lines("orders", [b"1", b"2"])
        for _ in range(2):
            records = self.a.request("GET", "/v1/queues/orders/peek")[1]["records"]
            self.assertEqual([r["data"] for r in records], ["1"])

    def test_records_of_a_delete_on_consume_queue_are_handed_out_once(self):
        self.a.request("PUT", "/v1/queues/jobs", {"delete_on_consume": "true"})
        offered = [b"%d" % i for i in range(500)]
        self.a.offer_lines("jobs", offered)
        taken, lock = [], threading.Lock()

        def take():
            while True:
                status, answer = self.a.request("POST", "/v1/queues/jobs/poll", {"max": 7})
                self.assertEqual(status, 200)
                if not answer["records"]:
                    return
                with lock:
                    taken.extend(data_of(r) for r in answer["records"])

        threads = [threading.Thread(target=take) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(taken), sorted(offered))
        self.a.kill()
        self.a.start()
        self.assertEqual(self.a.request("POST", "/v1/queues/jobs/poll")[1]["records"], [])

    def test_a_poll_that_finds_nothing_waits_for_records(self):
        self.a.request("PUT", "/v1/queues/later")
        began = time.monotonic()
        status, answer = self.a.request("GET", "/v1/queues/later", {"consumer": "c", "wait": "1s"})
        self.assertEqual((status, answer["records"]), (200, []))
        self.assertGreaterEqual(time.monotonic() - began, 1)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            waiting = [pool.submit(self.a.request, "GET", "/v1/queues/later", {"from": 1, "wait": "50s"})
                       for _ in range(3)]
            waiting.append(pool.submit(self.a.request, "POST", "/v1/queues/later/poll",
                                       {"consumer": "c", "wait": "50s"}))
            time.sleep(0.5)
            # What is no record wakes nobody.
            self.a.request("PUT", "/v1/queues/later/offsets", {"consumer": "other", "offset": 1})
            time.sleep(0.3)
            self.assertFalse(any(w.done() for w in waiting))
            self.assertEqual(self.a.offer("later", b"here")[0], 200)
            for one in waiting:
                status, answer = one.result(20)
                self.assertEqual((status, [data_of(r) for r in answer["records"]]), (200, [b"here"]))
        self.assertEqual(self.a.request("GET", "/v1/queues/later", {"wait": "soon"})[0], 400)

    def test_polls_that_wait_get_each_record_of_a_delete_on_consume_queue_once(self):
        self.a.request("PUT", "/v1/queues/tasks", {"delete_on_consume": "true"})
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            waiting = [pool.submit(self.a.request, "POST", "/v1/queues/tasks/poll", {"max": 1, "wait": "50s"})
                       for _ in range(4)]
            time.sleep(0.3)
            for i in range(4):
                self.assertEqual(self.a.offer("tasks", b"%d" % i)[0], 200)
            taken = [data_of(r) for w in waiting for r in w.result(20)[1]["records"]]
        self.assertEqual(sorted(taken), [b"0", b"1", b"2", b"3"])


class Retention(NodeTest):
    def test_by_size_what_is_old_goes_and_asking_for_it_is_410(self):
        node = self.node(args=["--log-file-bytes", "1MiB"]).start("--bootstrap")
        node.request("PUT", "/v1/queues/orders", {"retention_bytes": 2 << 20})
        for _ in range(40):
            node.offer_lines("orders", [b"x" * 1000] * 200)
        first = wait_for("records to go", lambda: self.first(node))
        status, answer = node.request("GET", "/v1/queues/orders", {"from": 1})
        self.assertEqual((status, answer["error"], answer["first"] >= first), (410, "gone", True))
        wait_for("files to go", lambda: node.request(
            "GET", "/v1/queues/orders/status")[1]["bytes"] < 5 << 20)
        node.kill()
        node.start()
        self.assertGreaterEqual(node.request("GET", "/v1/queues/orders/status")[1]["first"], first)
        self.assertGreater(len(node.read_all("orders")), 100)

    def first(self, node):
        first = node.request("GET", "/v1/queues/orders/status")[1]["first"]
        return first if first > 5000 else None

    def test_by_time_but_consumers_that_move_hold_what_they_have_not_read(self):
        node = self.node().start("--bootstrap")
        node.request("PUT", "/v1/queues/free", {"retention": "2s"})
        node.request("PUT", "/v1/queues/held", {"retention": "2s", "consumer_expiry": "1h"})
        for queue in ("free", "held"):
            node.offer_lines(queue, [b"%d" % i for i in range(2000)])
        node.request("PUT", "/v1/queues/held/offsets", {"consumer": "slow", "offset": 50})
        wait_for("records to go", lambda: node.request(
            "GET", "/v1/queues/free/status")[1]["first"] > 1500)
        self.assertEqual(node.request("GET", "/v1/queues/held", {"consumer": "slow"})[0], 200)
        wait_for("what was read to go", lambda: node.request(
            "GET", "/v1/queues/held/status")[1]["first"] == 50)


class Queues(NodeTest):
    def test_creating_is_idempotent_and_other_options_are_told(self):
        node = self.node().start("--bootstrap")
        for _ in range(2):
            self.assertEqual(node.request("PUT", "/v1/queues/orders", {"retention": "1h"})[0], 200)
        status, answer = node.request("PUT", "/v1/queues/orders", {"retention": "2h"})
        self.assertEqual((status, answer["error"]), (409, "exists"))

    def test_a_deleted_queue_is_gone_and_one_of_its_name_begins_anew(self):
        node = self.node().start("--bootstrap")
        node.request("PUT", "/v1/queues/orders")
        node.offer("orders", b"old")
        folders = len(list(node.data.iterdir()))
        self.assertEqual(node.request("DELETE", "/v1/queues/orders")[0], 200)
        self.assertEqual(node.request("DELETE", "/v1/queues/orders")[0], 404)
        self.assertEqual(node.offer("orders", b"x")[0], 404)
        self.assertEqual(len(list(node.data.iterdir())), folders - 1)
        node.request("PUT", "/v1/queues/orders")
        node.offer("orders", b"new")
        node.kill()
        node.start()
        self.assertEqual([data for _, data in node.read_all("orders")], [b"new"])

    def test_many_queues_survive_a_restart(self):
        node = self.node().start("--bootstrap")
        for i in range(30):
            self.assertEqual(node.request("PUT", f"/v1/queues/q{i}")[0], 200)
            node.offer(f"q{i}", b"%d" % i)
        node.kill()
        node.start()
        for i in range(30):
            self.assertEqual([data for _, data in node.read_all(f"q{i}")], [b"%d" % i])
        names = [q["name"] for q in node.request("GET", "/v1/queues")[1]["queues"]]
        self.assertEqual(names, ["meta", "metrics-0"] + [f"q{i}" for i in range(30)])

    def test_one_tenant_has_at_most_32(self):
        node = self.node().start("--bootstrap")
        for i in range(32):
            self.assertEqual(node.request("PUT", f"/v1/queues/q{i}")[0], 200)
        status, answer = node.request("PUT", "/v1/queues/q32")
        self.assertEqual((status, answer["error"]), (422, "limit"))

    def test_names_and_numbers_that_are_none(self):
        node = self.node().start("--bootstrap")
        for path in ("/v1/queues/UPPER", "/v1/queues/.x", "/v1/queues/" + "x" * 41, "/v1/queues/a%20b"):
            self.assertEqual(node.request("PUT", path)[0], 400, path)
        node.request("PUT", "/v1/queues/orders")
        for params in ({"max": "x"}, {"from": "-1"}, {"max": 10 ** 9}, {"consumer": "x" * 64},
                       {"consumer": "a\nb"}):
            self.assertEqual(node.request("GET", "/v1/queues/orders", params)[0], 400, params)
        self.assertEqual(node.request("PATCH", "/v1/queues/orders")[0], 405)

    def test_records_and_batches_have_bounds(self):
        node = self.node(args=["--record-bytes-max", "1000B", "--http-body-bytes", "100KiB"])
        node.start("--bootstrap")
        node.request("PUT", "/v1/queues/orders")
        self.assertEqual(node.offer("orders", b"x" * 1000)[0], 200)
        self.assertEqual(node.offer("orders", b"x" * 1001)[0], 422)
        self.assertEqual(node.offer_lines("orders", [b"x" * 1001])[0], 422)
        self.assertEqual(node.offer_lines("orders", [b"x"] * 4097)[0], 422)
        self.assertEqual(node.offer("orders", b"x" * 200000)[0], 413)
        self.assertEqual(len(node.read_all("orders")), 1)


class Keys(NodeTest):
    def test_the_systems_queues_need_the_operators_key_and_tenants_see_their_own(self):
        keys = os.path.join(self.folder, "keys")
        with open(keys, "w", opener=lambda p, f: os.open(p, f, 0o600)) as file:
            file.write("operator * ops\none t1\ntwo t2\n")
        node = self.node(args=["--api-keys", keys]).start("--bootstrap")

        def ask(key, method, path):
            return node.request(method, path, None, None, {"Authorization": f"Bearer {key}"})

        self.assertEqual(ask("wrong", "GET", "/v1/queues")[0], 401)
        self.assertEqual(ask("one", "PUT", "/v1/queues/mine")[0], 200)
        self.assertEqual(ask("one", "GET", "/v1/queues/mine")[0], 200)
        self.assertEqual(ask("two", "GET", "/v1/queues/mine")[0], 404)
        self.assertEqual(ask("two", "DELETE", "/v1/queues/mine")[0], 404)
        self.assertEqual(ask("operator", "GET", "/v1/queues/mine")[0], 200)
        for method, path in (("GET", "/v1/queues/meta"), ("POST", "/v1/queues/meta"),
                             ("PUT", "/v1/queues/metrics-0"), ("POST", "/v1/queues/mine/transfer"), ("GET", "/v1/watch"),
                             ("POST", "/v1/members?change=add&name=b")):
            self.assertEqual(ask("one", method, path)[0], 403, path)
        self.assertEqual(ask("operator", "GET", "/v1/queues/meta")[0], 200)
        names = {key: [q["name"] for q in ask(key, "GET", "/v1/queues")[1]["queues"]]
                 for key in ("one", "two", "operator")}
        self.assertEqual(names, {"one": ["mine"], "two": [], "operator": ["meta", "metrics-0", "mine"]})


class Operation(NodeTest):
    def test_a_signal_ends_it_cleanly_while_it_is_used(self):
        node = self.node().start("--bootstrap")
        node.request("PUT", "/v1/queues/orders")
        acknowledged, stop = [], threading.Event()

        def offer():
            while not stop.is_set():
                try:
                    status, answer = node.offer("orders", b"x")
                except OSError:
                    return
                if status == 200:
                    acknowledged.append(answer["first"])

        threads = [threading.Thread(target=offer) for _ in range(4)]
        for thread in threads:
            thread.start()
        wait_for("offers", lambda: len(acknowledged) > 50)
        self.assertEqual(node.stop(), 0)
        stop.set()
        for thread in threads:
            thread.join()
        node.start()
        self.assertLessEqual(set(acknowledged), {offset for offset, _ in node.read_all("orders")})

    def test_a_watch_of_meta_tells_the_state_then_changes_and_heartbeats(self):
        node = self.node().start("--bootstrap")
        node.request("PUT", "/v1/queues/first")
        events = node.watch()
        kind, index, state = next(events)
        self.assertEqual(kind, "state")
        self.assertEqual(state["index"], index)
        self.assertIn("first", [q["name"] for q in state["queues"]])
        node.request("PUT", "/v1/queues/second")
        seen = {}
        while "heartbeat" not in seen or "change" not in seen:
            kind, at, data = next(events)
            self.assertGreaterEqual(at, index)
            seen.setdefault(kind, (at, data))
        self.assertIn("second", str(seen["change"][1]))
        # Going on from there: the deletion comes, what was before does not.
        node.request("DELETE", "/v1/queues/first")
        again = [e for e in itertools.islice(node.watch(seen["change"][0] + 1), 2) if e[0] == "change"]
        self.assertEqual(len(again), 1)
        self.assertIn("first", str(again[0][2]))
        beats = []
        while len(beats) < 3:
            kind, _, _ = next(events)
            if kind == "heartbeat":
                beats.append(time.monotonic())
        self.assertLess(beats[2] - beats[0], 6)
        self.assertGreater(beats[2] - beats[0], 1)

    def test_who_watches_from_what_is_gone_gets_410(self):
        node = self.node().start("--bootstrap")
        for i in range(600):  # meta is compacted after a thousand records
            node.request("PUT", "/v1/queues/q")
            node.request("DELETE", "/v1/queues/q")
        wait_for("meta to be trimmed", lambda: node.request("GET", "/v1/queues/meta/status")[1]["first"] > 2)
        status, answer = node.request("GET", "/v1/watch", {"from": 2})
        self.assertEqual((status, answer["error"]), (410, "gone"))
        self.assertEqual(next(node.watch())[0], "state")

    def test_probes_and_metrics(self):
        node = self.node().start("--bootstrap")
        for path in ("/livez", "/healthz", "/readyz"):
            self.assertEqual(node.request("GET", path)[0], 200)
        self.assertEqual(node.metric("promfabric_ingest_member"), 1)
        wait_for("meta and metrics-0 to be led", lambda: node.metric("promfabric_ingest_queues_led") == 2)
        self.assertEqual(node.metric("promfabric_ingest_queues_leaderless"), 0)


if __name__ == "__main__":
    unittest.main()
