"""live - samples written while everything fails, and what every answer about them must be.

A stream is one writer's: batches of a few series, one after the other, each sent again until it is
acknowledged, then looked for at once. Values follow from the batch's number, so a stream remembers every
acknowledged sample by its time alone. What it had in the store before the run began is its past. A question
about times up to the last acknowledged batch has exactly one answer, whatever is under way.

A register is one series of growing values and its readers; its history must be linearizable. A tally has
samples that the ingest node gives a time: each, sent again under one Idempotency-Key, must count once."""
import bisect
import http.client
import json
import os
import random
import sys
import threading
import time

from clients import QUERY_TIMEOUT_S, ask
from store import DATA_END

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "integration", "ingest")]
from history import History  # noqa: E402
from messages import TYPE_1, TYPE_2, Series, now_ms, snappy, version_1, version_2  # noqa: E402

NAME = "chaos_live"
SERIES = 6
PAST = 120          # batches in the store before the run, one every PAST_STEP_MS
PAST_STEP_MS = 15000
LOOKBACK_MS = 300_000
WINDOW_BATCHES = 1000  # of one question at the end
LATE_MS = 3 * 86_400_000
SEND_S = 300        # nobody is without an acknowledgement for so long, even on a busy machine
MISSING = "not there"


class Stream:
    """What one writer was told, batch by batch."""

    def __init__(self, name, begin_ms, past=PAST, late_ms=0):
        self.name, self.late_ms = name, late_ms
        begin_ms -= late_ms
        self.times = [begin_ms - (past - n) * PAST_STEP_MS for n in range(past)]
        self.past = self.acked = past

    def begin(self, now):
        """A new batch; its number."""
        self.times.append(max(now, self.times[-1] + 1) if self.times else now)
        return len(self.times) - 1

    def acknowledge(self, batch):
        self.acked = batch + 1

    @staticmethod
    def value(batch, series):
        return float(batch * 10 + series)

    def batches(self, after_ms, until_ms):
        """Numbers of the acknowledged batches in (after, until]."""
        hi = self.acked
        return range(bisect.bisect_right(self.times, after_ms, 0, hi), bisect.bisect_right(self.times, until_ms, 0, hi))

    def labels(self, series):
        return {"__name__": NAME, "w": self.name, "i": str(series)}

    def selector(self):
        return f'{NAME}{{w="{self.name}"}}'

    def body(self, batch):
        """Content type, coding and bytes: the three ways to send it by turns."""
        ts = self.times[batch]
        if batch % 3 == 0:
            lines = (f'{NAME}{{w="{self.name}",i="{i}"}} {self.value(batch, i)} {ts}\n' for i in range(SERIES))
            return "text/plain", None, "".join(lines).encode()
        series = [Series(self.labels(i), [(ts, self.value(batch, i))]) for i in range(SERIES)]
        if batch % 3 == 1:
            return TYPE_1, "snappy", snappy(version_1(series))
        return TYPE_2, "snappy", snappy(version_2(series))

    def as_openmetrics(self):
        """Its past, for promfabric import."""
        return "".join(f'{NAME}{{w="{self.name}",i="{i}"}} {self.value(n, i)} {self.times[n] / 1000:.3f}\n'
                       for i in range(SERIES) for n in range(self.past))


def key_of(labels):
    return tuple(sorted(labels.items()))


def seconds(ms):
    return f"{ms / 1000:.3f}"


class Question:
    """A query, and the one right answer: {labels: {ms: value}}."""

    def __init__(self, kind, key, expected):
        self.kind, self.key, self.expected = kind, key, expected

    def problem(self, body):
        """What is wrong with an answer; "" if nothing is."""
        try:
            return self.compare(json.loads(body)["data"]["result"])
        except (ValueError, LookupError, TypeError) as e:
            return f"not an answer: {type(e).__name__}: {e}: {body[:200]!r}"

    def compare(self, result):
        got = {}
        for series in result:
            samples = series.get("values") or [series["value"]]
            got[key_of(series["metric"])] = {round(at * 1000): float(value) for at, value in samples}
            if len(samples) != len(got[key_of(series["metric"])]):
                return f"{series['metric']} has two samples at one time"
        return "" if got == self.expected else self.difference(got)

    def difference(self, got):
        for labels in sorted(set(self.expected) | set(got)):
            want, have = self.expected.get(labels, {}), got.get(labels, {})
            for ms in sorted(set(want) | set(have)):
                if want.get(ms, MISSING) != have.get(ms, MISSING):
                    return (f"{dict(labels)} at {seconds(ms)}: {have.get(ms, MISSING)}, right is {want.get(ms, MISSING)} "
                            f"({len(have)} samples of {len(want)}, {len(got)} series of {len(self.expected)})")
        return "series without samples"


def raw(stream, first, last):
    """The samples of batches first to last as they are."""
    begin = stream.times[first - 1] if first else stream.times[0] - 1
    end = stream.times[last]
    expected = {key_of(stream.labels(i)): {stream.times[n]: stream.value(n, i) for n in range(first, last + 1)}
                for i in range(SERIES)}
    return Question("samples as they are", ("instant", f"{stream.selector()}[{end - begin}ms]", seconds(end)), expected)


def instant(kind, expr, at, value):
    return Question(kind, ("instant", expr, seconds(at)), {} if value is None else {(): {at: float(value)}})


def any_time(stream, rng):
    """A moment up to the last acknowledged batch; recent ones more often."""
    end = stream.times[stream.acked - 1]
    return end - int(min(rng.expovariate(1 / 20_000), end - stream.times[0]))


def any_window(rng):
    return rng.randrange(1000, rng.choices((5_000, 60_000, 600_000, 1_800_000), (5, 5, 2, 1))[0])


def ask_count(stream, rng):
    at, window = any_time(stream, rng), any_window(rng)
    count = len(stream.batches(at - window, at)) * SERIES
    return instant("count over time", f"sum(count_over_time({stream.selector()}[{window}ms]))", at, count or None)


def ask_sum(stream, rng):
    at, window = any_time(stream, rng), any_window(rng)
    total = sum(stream.value(n, i) for n in stream.batches(at - window, at) for i in range(SERIES))
    expr = f"sum(sum_over_time({stream.selector()}[{window}ms]))"
    return instant("sum over time", expr, at, total if stream.batches(at - window, at) else None)


def ask_latest(stream, rng):
    at = any_time(stream, rng)
    batches = stream.batches(at - LOOKBACK_MS, at)
    expected = {key_of(stream.labels(i)): {at: stream.value(batches[-1], i)} for i in range(SERIES)} if batches else {}
    return Question("latest", ("instant", stream.selector(), seconds(at)), expected)


def ask_beside_history(stream, rng):
    """Samples of now and of the data in the store, in one query."""
    at, window = any_time(stream, rng), any_window(rng)
    count = len(stream.batches(at - window, at)) * SERIES
    expr = (f"sum(count_over_time({stream.selector()}[{window}ms])) + "
            f"0 * sum(count_over_time(http_requests_total[5m] @ {DATA_END}))")
    return instant("beside history", expr, at, count or None)


def ask_range(stream, rng):
    """Step by step from the past in the store to now."""
    step, window = rng.choice((15, 30, 60)), rng.randrange(5000, 120_000)
    end = stream.times[stream.acked - 1]
    begin = end - step * 1000 * rng.randrange(5, 60)
    expected = {}
    for at in range(begin, end + 1, step * 1000):
        if count := len(stream.batches(at - window, at)):
            expected[at] = float(count * SERIES)
    expr = f"sum(count_over_time({stream.selector()}[{window}ms]))"
    return Question("range", ("json", expr, seconds(begin), seconds(end), step), {(): expected} if expected else {})


ASKS = (ask_count, ask_sum, ask_latest, ask_beside_history, ask_range)


class Live:
    """All that is written and read live, and its figures."""

    def __init__(self, cluster, judge, seed, streams=3, registers=2, readers=2):
        self.cluster, self.judge, self.lock = cluster, judge, threading.Lock()
        begin = now_ms()
        # The last one is late by days: its windows are over, and compaction may merge them in the end.
        self.streams = [Stream(str(i), begin, late_ms=LATE_MS if i == streams - 1 else 0) for i in range(streams)]
        self.registers = [History() for _ in range(registers)]
        self.tally = History()
        self.threads = [StreamWriter(self, seed * 100 + i, s) for i, s in enumerate(self.streams)]
        self.threads += [RegisterWriter(self, seed * 100 + 50 + i, i) for i in range(registers)]
        self.threads += [TallyWriter(self, seed * 100 + 60)]
        self.threads += [Reader(self, seed * 100 + 70 + i) for i in range(readers)]
        self.acks, self.retries, self.looks, self.reads, self.register_reads, self.after = 0, 0, 0, 0, 0, 0
        self.last_ack, self.gap = time.monotonic(), 0.0  # gap: the longest without any, since it was set to 0
        self.refusals = {}

    def past(self):
        return "".join(s.as_openmetrics() for s in self.streams) + "# EOF\n"

    def start(self):
        for thread in self.threads:
            thread.start()

    def stop(self):
        for thread in self.threads:
            thread.over.set()

    def join(self):
        for thread in self.threads:
            thread.join(SEND_S + 60)
            if thread.is_alive():
                self.judge.fail(f"{thread.what} hangs")
            elif not thread.ended:
                self.judge.fail(f"{thread.what} died: its traceback is above")

    def count(self, what, by=1):
        with self.lock:
            setattr(self, what, getattr(self, what) + by)

    def acknowledged(self):
        with self.lock:
            now = time.monotonic()
            self.acks, self.gap, self.last_ack = self.acks + 1, max(self.gap, now - self.last_ack), now

    def samples(self):
        return sum((s.acked - s.past) * SERIES for s in self.streams) + \
            sum(h.acknowledged for h in [*self.registers, self.tally])

    # --- at the end ---

    def check_everything(self, apis, when):
        """Every sample that was ever acknowledged, and no other, from each API."""
        for api in apis:
            for stream in self.streams:
                for first in range(0, stream.acked, WINDOW_BATCHES):
                    self.must(api, raw(stream, first, min(stream.acked, first + WINDOW_BATCHES) - 1), when)
                window = stream.times[stream.acked - 1] - stream.times[0] + 1
                self.must(api, instant("all of them", f"sum(count_over_time({stream.selector()}[{window}ms]))",
                                       stream.times[stream.acked - 1], stream.acked * SERIES), when)
            self.must_tally(api, when)

    def must(self, api, question, when):
        """Faults are over: the right answer, within a busy machine's patience."""
        end = time.monotonic() + 120
        while (answer := ask(api, question.key)).error and time.monotonic() < end:
            time.sleep(0.5)
        problem = answer.error and f"{answer.error}: {answer.detail}" or question.problem(answer.body)
        self.count("after")
        if problem:
            self.judge.fail(f"{when}: {api.name}: {question.key}: {problem}")

    def must_tally(self, api, when):
        for name, history in [("tally", self.tally)] + [(f"register {i}", h) for i, h in enumerate(self.registers)]:
            expr = tally_expr() if history is self.tally else f'sum(count_over_time(chaos_register{{i="{name[9:]}"}}[1000d]))'
            self.must(api, instant(name, expr, tally_time(), history.acknowledged), when)


def tally_expr():
    return "count_over_time(chaos_tally[1000d])"


def tally_time():
    """Behind every time that an ingest node with a wrong clock may give."""
    return now_ms() + 10 * 86_400_000


class Actor(threading.Thread):
    what = "a client"

    def __init__(self, live, seed):
        super().__init__(daemon=True)
        self.live, self.rng = live, random.Random(seed)
        self.over, self.ended = threading.Event(), False

    def run(self):
        self.live.cluster.hosts["client"].settle()
        while not self.over.is_set():
            self.act()
        self.ended = True

    def send(self, what, kind, coding, body, headers=None):
        """The same again, at any node, until it is acknowledged."""
        end = time.monotonic() + SEND_S
        while time.monotonic() < end:
            if self.send_once(self.rng.choice(self.live.cluster.ingests), kind, coding, body, headers):
                self.live.acknowledged()
                return
            self.live.count("retries")
            time.sleep(self.rng.uniform(0.02, 0.1))
        self.live.judge.fail(f"{what} was not acknowledged within {SEND_S} s")

    def send_once(self, node, kind, coding, body, headers):
        path = "/api/v1/import/prometheus" if kind == "text/plain" else "/api/v1/write"
        headers = {"Content-Type": kind, **({"Content-Encoding": coding} if coding else {}), **(headers or {})}
        connection = http.client.HTTPConnection(node.host.ip, node.http_port, timeout=15)
        try:
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            status, text = answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
        if status == 204:
            return True
        if status not in (503, 429):
            self.live.judge.fail(f"{node.name}: a write was answered {status}: {text[:300]!r}")
        with self.live.lock:
            self.live.refusals.setdefault(status, text[:110].decode(errors="replace").strip())
        return False

    def read(self, question, check, until_answered=False):
        """Ask an API; if it must be answered, again after an allowed error."""
        end = time.monotonic() + SEND_S
        while True:
            api = self.rng.choice(self.live.cluster.apis)
            answer = ask(api, question.key)
            self.live.judge.judge(question.key, api, answer, QUERY_TIMEOUT_S, check, ("live", question.kind))
            if not answer.error or not until_answered:
                return not answer.error
            if time.monotonic() > end:
                self.live.judge.fail(f"{question.key} was not answered within {SEND_S} s")
                return False
            time.sleep(0.1)


class StreamWriter(Actor):
    def __init__(self, live, seed, stream):
        super().__init__(live, seed)
        self.stream, self.what = stream, f"the writer of stream {stream.name}"

    def act(self):
        stream = self.stream
        batch = stream.begin(now_ms() - stream.late_ms)
        self.send(f"batch {batch} of stream {stream.name}", *stream.body(batch))
        stream.acknowledge(batch)
        question = raw(stream, batch - 2, batch)
        if self.read(question, question.problem, until_answered=True):
            self.live.count("looks")
        self.over.wait(self.rng.uniform(0, 0.2))


class RegisterWriter(Actor):
    def __init__(self, live, seed, i):
        super().__init__(live, seed)
        self.i, self.history, self.time, self.what = i, live.registers[i], 0, f"the writer of register {i}"

    def act(self):
        value = self.history.begin_write()
        self.time = max(self.time + 1, now_ms())
        self.send(f"{value} of register {self.i}", "text/plain", None,
                  f'chaos_register{{i="{self.i}"}} {value} {self.time}\n'.encode())
        self.history.end_write(value)
        self.over.wait(self.rng.uniform(0, 0.2))


class TallyWriter(Actor):
    what = "the writer of the tally"

    def act(self):
        tally = self.live.tally
        value = tally.begin_write()
        self.send(f"tally {value}", "text/plain", None, b"chaos_tally 1\n", {"Idempotency-Key": f"tally-{value}"})
        tally.end_write(value)
        question = instant("tally", tally_expr(), tally_time(), value)
        self.read(question, question.problem, until_answered=True)
        self.over.wait(self.rng.uniform(2, 5))


class Reader(Actor):
    what = "a reader"

    def act(self):
        if self.rng.random() < 0.3:
            self.read_registers()
        else:
            question = self.rng.choice(ASKS)(self.rng.choice(self.live.streams), self.rng)
            if self.read(question, question.problem):
                self.live.count("reads")
        self.over.wait(self.rng.uniform(0, 0.1))

    def read_registers(self):
        registers = self.live.registers
        least = [history.begin_read() for history in registers]
        question = Question("register", ("instant", "last_over_time(chaos_register[10m])", seconds(now_ms())), None)

        def check(body):
            got = {s["metric"]["i"]: int(float(s["value"][1])) for s in json.loads(body)["data"]["result"]}
            problems = [f"register {i}: {problem}" for i, history in enumerate(registers)
                        if (problem := history.end_read(least[i], got.get(str(i), 0)))]
            return "; ".join(problems)
        if self.read(question, check):
            self.live.count("register_reads")
