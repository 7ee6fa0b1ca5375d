#!/usr/bin/env python3
"""test_parts - the campaign's own tools do what they say: the judge finds what is wrong, rules between
hosts hold and are lifted, disks fill up, and a run without any trace of its faults fails."""
import errno
import http.server
import json
import os
import random
import socket
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import compact  # noqa: E402
import report  # noqa: E402
from clients import Answer, GRACE_S, Judge, ask, read_events  # noqa: E402
from cluster import Spawner  # noqa: E402
from faults import Faults  # noqa: E402
from hosts import Hosts, partition, reunite  # noqa: E402
from live import SERIES, Stream, ask_count, ask_latest, ask_range, ask_sum, raw  # noqa: E402

KEY = ("json", "up", 0, 1, 1)
passed, failed, skipped = 0, 0, 0


def check(what, holds):
    global passed, failed
    passed, failed = passed + bool(holds), failed + (not holds)
    if not holds:
        print(f"FAILED {what}")


class FakeApi:
    name = "api-0"

    def __init__(self, log):
        self.log, self.downs = log, []


def answer(body=None, error=None, seconds=0.1):
    a = Answer()
    a.body, a.error, a.query_id = body, error, "q-1"
    a.end = time.monotonic()
    a.begin = a.end - seconds
    return a


def failures(folder, a, fault=None, away=False, log="", timeout_s=20):
    """How many failures the judge finds in one answer."""
    path = os.path.join(folder, "api.log")
    with open(path, "w", encoding="utf-8") as f:
        f.write(log)
    faults, api = Faults(os.path.join(folder, "faults.log")), FakeApi(path)
    judge = Judge({KEY: b"right"}, faults)
    if fault:
        with faults.record(fault, "worker-1"):
            pass
        a.end = time.monotonic()
    if away:
        api.downs.append([a.begin, a.end])
    judge.judge(KEY, api, a, timeout_s)
    return len(judge.wrong)


def test_judge(folder):
    check("a right answer passes", failures(folder, answer(b"right")) == 0)
    check("a wrong answer fails", failures(folder, answer(b"wrong"), "kill") == 1)
    check("an empty answer fails", failures(folder, answer(b""), "kill") == 1)
    check("an error without a fault fails", failures(folder, answer(error="unavailable")) == 1)
    check("an error near a fault passes", failures(folder, answer(error="unavailable"), "kill") == 0)
    check("an error of another kind fails", failures(folder, answer(error="no_space"), "kill") == 1)
    check("a full disk explains it", failures(folder, answer(error="no_space"), "full_disk") == 0)
    check("an unknown error fails", failures(folder, answer(error="execution"), "kill") == 1)
    check("a refusal by a living API fails", failures(folder, answer(error="refused"), "kill") == 1)
    check("a refusal by a dead one passes", failures(folder, answer(error="refused"), "restart_api", True) == 0)
    check("an internal error is looked up", failures(
        folder, answer(error="internal"), "full_disk", log='msg="query failed" query_id=q-1 outcome=no_space\n') == 0)
    check("an internal error fails", failures(
        folder, answer(error="internal"), "kill", log='msg="query failed" query_id=q-1 outcome=internal\n') == 1)
    check("a late answer fails", failures(folder, answer(b"right", seconds=20 + GRACE_S + 1)) == 1)
    check("a hang fails", failures(folder, answer(error="hang", seconds=3), "kill") == 1)


def test_events():
    event = b'data: {"type":"result","data":{"timestamp":%d,"value":1}}\n\n'
    done = b'data: {"type":"done","data":{"status":"ok"}}\n\n'
    for what, body, holds in (
            ("a whole stream is read", event % 1 + event % 2 + done, lambda a: a.body.count(b"\n") == 1),
            ("a stream without its end is cut", event % 1, lambda a: a.error == "cut"),
            ("a stream out of order is wrong", event % 2 + event % 1 + done, lambda a: b"out of order" in a.body),
            ("an error is an error", b'data: {"type":"error","data":{"code":"io","message":"m"}}\n\n'
             b'data: {"type":"done","data":{"status":"error"}}\n\n', lambda a: a.error == "io")):
        a = Answer()
        read_events(body, a)
        check(what, holds(a))


def test_ask():
    """Answers that are cut or make no sense come back as such; they do not end the client."""
    class Handler(http.server.BaseHTTPRequestHandler):
        body, length = b"", 0

        def do_POST(self):
            self.send_response(200)
            self.send_header("X-Query-Id", "q-7")
            self.send_header("Content-Length", str(self.length))
            self.end_headers()
            self.wfile.write(self.body)

        def log_message(self, *_):
            pass

    class Api:
        class host:
            ip = "127.0.0.1"
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    Api.http_port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Handler.body, Handler.length = b"half", 8
    a = ask(Api, KEY)
    check("a cut answer keeps its id", a.error == "cut" and a.query_id == "q-7")
    Handler.body = b"data: {]\n\n"
    Handler.length = len(Handler.body)
    a = ask(Api, ("events",) + KEY[1:])
    check("a stream that is no JSON is a wrong answer", a.error is None and b"not an answer" in a.body)
    server.shutdown()
    server.server_close()


def answer_of(question, change=lambda samples: samples):
    """The right answer, with one series changed."""
    result = [{"metric": dict(labels), "values": [[ms / 1000, str(v)] for ms, v in sorted(samples.items())]}
              for labels, samples in question.expected.items()]
    result[0]["values"] = change(result[0]["values"])
    return json.dumps({"data": {"result": result}}).encode()


def test_live():
    stream = Stream("0", 1_700_000_000_000, past=3)
    for now in (1_700_000_000_500, 1_700_000_000_400, 1_700_000_001_000):
        stream.acknowledge(stream.begin(now))
    stream.begin(1_700_000_002_000)  # under way: nobody knows of it
    check("times ascend", stream.times == sorted(set(stream.times)))
    question = raw(stream, 1, 5)
    check("a range begins behind the batch before", question.key[1].endswith(f"[{stream.times[5] - stream.times[0]}ms]"))
    check("the right samples pass", question.problem(answer_of(question)) == "")
    for what, change in (("a lost sample", lambda s: s[1:]), ("an invented sample", lambda s: s + [[2e9, "1"]]),
                         ("another value", lambda s: [[s[0][0], "7.5"]] + s[1:]), ("a doubled sample", lambda s: s + s[-1:]),
                         ("a series without samples", lambda s: [])):
        check(f"{what} is found", question.problem(answer_of(question, change)) != "")
    check("a lost series is found", question.problem(b'{"data":{"result":[]}}') != "")
    check("what is no answer is found", question.problem(b"<html>") != "")
    rng = random.Random(1)
    for ask_one in (ask_count, ask_sum, ask_latest, ask_range):
        asked = [ask_one(stream, rng) for _ in range(50)]
        check(f"{ask_one.__name__} expects something", any(q.expected for q in asked))
        check(f"{ask_one.__name__} expects nothing that is under way", all(
            ms <= stream.times[5] for q in asked for samples in q.expected.values() for ms in samples))
    check("all are counted", sum(len(stream.batches(0, 1 << 60)) for _ in range(SERIES)) == 6 * SERIES)


def reaches(source, target, port):
    with source.inside():
        try:
            socket.create_connection((target.ip, port), 0.7).close()
            return True
        except OSError:
            return False


def test_hosts(hosts):
    a, b, c = hosts["a"], hosts["b"], hosts["c"]
    servers = []
    for host in (a, b, c):
        with host.inside():
            server = socket.create_server((host.ip, 7000))
            server.listen(64)
            servers.append(server)
    check("hosts reach each other", reaches(a, b, 7000) and reaches(b, a, 7000) and reaches(a, c, 7000))
    partition(a, b)
    check("a partition splits two", not reaches(a, b, 7000) and not reaches(b, a, 7000))
    check("and no others", reaches(a, c, 7000) and reaches(c, b, 7000))
    a.refuse_from(c)
    reunite(a, b)
    check("one is mended, the other stays", reaches(a, b, 7000) and not reaches(c, a, 7000))
    a.heal()
    check("all is mended", reaches(c, a, 7000) and reaches(b, a, 7000))
    c.refuse_from(a, 50)
    with a.inside():
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with c.inside():
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiver.bind((c.ip, 7001))
        receiver.settimeout(0.3)
    for _ in range(200):
        sender.sendto(b"x", (c.ip, 7001))
    arrived = 0
    try:
        while receiver.recv(16):
            arrived += 1
    except TimeoutError:
        pass
    check(f"half of the packets are lost: {arrived} of 200 arrived", 60 <= arrived <= 140)


def test_disk(hosts, folder):
    disk = os.path.join(folder, "disk")
    check("a disk is mounted", hosts.disk(disk, 1))
    spawner, log = Spawner(), os.path.join(folder, "spawn.log")
    process = spawner.spawn(hosts["a"], ["dd", "if=/dev/zero", f"of={disk}/x", "bs=64k", "count=64"], log)
    check("it fills up for a child, too", process.wait(20) != 0)
    check("with the right error", os.strerror(errno.ENOSPC) in open(log, encoding="utf-8").read())
    seen = []
    thread = threading.Thread(target=lambda: seen.extend(open("/proc/1/mounts", encoding="utf-8").read().split()))
    thread.start()
    thread.join()
    check("nobody else sees it", disk not in seen)
    hosts.undisk(disk)


def test_trace(folder):
    seen = dict.fromkeys(report.NOTICED, 0)
    check("faults without a trace are told", len(report.without_trace({"full_disk": 99}, seen)) == 1)
    seen["works failed for a full disk"] = 1
    judge = Judge({}, None)
    judge.queries, judge.errors = 10000, {"unavailable": 150, "timeout": 40, "cut": 900}
    check("some queries may be given up", report.given_up(judge) == [])
    judge.errors["timeout"] = 60
    check("many may not", len(report.given_up(judge)) == 1)
    check("with a trace they are fine", report.without_trace({"full_disk": 99}, seen) == [])
    path = os.path.join(folder, "api.log")
    with open(path, "w", encoding="utf-8") as f:
        f.write('msg="work failed" work_id=1 code=not_found reason=x\nmsg="work failed" work_id=1 code=io reason=x\n'
                'msg="work failed" worker_id=w1 code=not_found reason="the artifact expired or was evicted"\n')
    check("what nothing excuses is told", len(report.unexplained([FakeApi(path)], {"w1"}, [])) == 1)
    check("only a full disk excuses an eviction", len(report.unexplained([FakeApi(path)], {"w2"}, [])) == 2)
    merges = os.path.join(folder, "worker.log")
    with open(merges, "w", encoding="utf-8") as f:
        f.write('msg="background job failed" reason="what was merged was taken back, tenant=t/a.parquet last: gone"\n')
    with open(path, "w", encoding="utf-8") as f:
        f.write('msg="work failed" code=not_found reason="cannot read tenant=t/a.parquet"\n'
                'msg="work failed" code=not_found reason="cannot read tenant=t/b.parquet"\n')
    left = report.unexplained([FakeApi(path)], set(), [merges])
    check("what was taken back may be missed, and nothing else", len(left) == 1 and "b.parquet" in left[0])
    store = os.path.join(folder, "object.log")
    with open(store, "w", encoding="utf-8") as f:
        for verb, name, code in (("PUT", "a", 201), ("PUT", "a", 201), ("PUT", "b", 201), ("PUT", "b", 503), ("PUT", "c", 201),
                                 ("DELETE", "c", 204), ("PUT", "d", 201), ("DELETE", "d", 404)):
            f.write(f'"{verb} /d1/3/AUTH_test/segments/tenant%3Dt/{name}.parquet" {code} -\n')

    def missed(name, times):
        return f'msg="work failed" code=not_found reason="cannot read s3://b tenant=t/{name}.parquet: 404"\n' * times
    with open(path, "w", encoding="utf-8") as f:
        f.write("".join(missed(name, 2) for name in "abcd"))
    left = report.unexplained([FakeApi(path)], set(), [], store)
    check("what was put over or deleted may be missed, and nothing else",
          [line.count("b.parquet") + line.count("d.parquet") for line in left] == [1] * 4)
    check("without the store's log nothing was", len(report.unexplained([FakeApi(path)], set(), [])) == 8)
    with open(path, "w", encoding="utf-8") as f:
        f.write(missed("c", 51))
    check("but not often", len(report.unexplained([FakeApi(path)], set(), [], store, 50000)) == 1)
    check("of many queries it may be", report.unexplained([FakeApi(path)], set(), [], store, 51000) == [])


def test_background(folder):
    """A lane on which nothing was done fails the run."""
    class Cluster:
        apis, workers = [FakeApi(os.path.join(folder, "a.log"))], [FakeApi(os.path.join(folder, "w.log"))]
    for process in Cluster.apis + Cluster.workers:
        open(process.log, "w", encoding="utf-8").close()
    compact.JOBS_S = 0
    background = compact.Background(Cluster)
    check("no job is a failure", len(list(background.problems())) == 1)
    with open(Cluster.apis[0].log, "w", encoding="utf-8") as f:
        f.write('msg="background job assigned again" job_id=1 attempt=2\n'
                'msg="compaction job done" job_id=1 tenant=t shard=0 segments=7 outputs=2 samples=9 attempts=2\n'
                'msg=compaction tenant=t segments_before=7 segments_after=2 jobs=1 samples=9 deleted=5 doomed=2 damaged=0\n')
    with open(Cluster.workers[0].log, "w", encoding="utf-8") as f:
        f.write('msg="background job stopped" job_id=1 attempt=1\n')
    check("a job is none", list(background.problems()) == [])
    check("what was done is counted", list(background.figures().values())[:6] == [1, 7, 2, 5, 1, 1])


def main():
    global skipped
    with tempfile.TemporaryDirectory(prefix="promfabric-chaos-test-") as folder:
        test_judge(folder)
        test_events()
        test_ask()
        test_live()
        test_trace(folder)
        test_background(folder)
        hosts = Hosts(["a", "b", "c"])
        if hosts.why_plain:
            skipped += 1
            print(f"skipped: namespaces and rules: {hosts.why_plain}")
        else:
            test_hosts(hosts)
        if hosts.mounts:
            test_disk(hosts, folder)
        else:
            skipped += 1
            print("skipped: disks: no mount namespace may be made")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
