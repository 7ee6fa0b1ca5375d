"""clients - questions with known answers, asked without pause, and the judgement of every answer."""
import http.client
import json
import random
import re
import socket
import threading
import time
import urllib.parse

from store import DATA_END

QUERY_TIMEOUT_S = 20
# Beyond the deadline an answer has this long to arrive: the API may be stalled for some seconds, packets
# are sent again after seconds, and the machine may be busy (its own hiccups are added, see Hiccups).
GRACE_S = 15
QUERIES = [
    "sum(rate(http_requests_total[5m]))",
    "sum by (job) (rate(http_requests_total[5m]))",
    "http_requests_total",
    "rate(node_cpu_seconds_total[2m])",
    "histogram_quantile(0.9, sum by (le) (rate(http_request_duration_seconds_bucket[5m])))",
    "topk(3, rate(http_requests_total[5m]))",
    "avg(node_memory_available_bytes) / max(node_memory_available_bytes)",
    "sum by (job) (rate(http_requests_total[5m])) / on () group_left () sum(rate(http_requests_total[5m]))",
    "max_over_time(sum(rate(http_requests_total[1m]))[10m:1m])",
    "count({__name__=~\".+_total\"})",
]
SPANS = ((30, 30), (180, 60), (330, 120))  # minutes back from the end, step in seconds


def all_keys():
    return [(kind, query, DATA_END - minutes * 60, DATA_END, step)
            for query in QUERIES for minutes, step in SPANS for kind in ("json", "events")]


class Answer:
    """What came back: a body (canonical), or a word for why not."""

    def __init__(self):
        self.body, self.error, self.detail, self.query_id = None, None, "", ""
        self.begin = self.end = 0.0

    @property
    def seconds(self):
        return self.end - self.begin


def request_of(key, timeout_s):
    if key[0] == "instant":
        return "/api/v1/query", urllib.parse.urlencode({"query": key[1], "time": key[2]}), \
            "application/x-www-form-urlencoded"
    kind, query, start, end, step = key
    if kind == "json":
        params = {"query": query, "start": start, "end": end, "step": step}
        if timeout_s != QUERY_TIMEOUT_S:
            params["timeout"] = f"{timeout_s}s"
        return "/api/v1/query_range", urllib.parse.urlencode(params), "application/x-www-form-urlencoded"
    return "/api/v1/metrics/query", json.dumps({"q": query, "s": start, "e": end, "step": f"{step}s"}), \
        "application/json"


def read_events(body, answer):
    """Results of a stream: in order of time, at one time in any order; then exactly one end."""
    events = [json.loads(block[6:]) for block in body.decode().split("\n\n") if block.startswith("data: ")]
    if not events or events[-1]["type"] != "done":
        answer.error, answer.detail = "cut", f"the stream ends without done after {len(events)} events"
        return
    errors = [e["data"] for e in events if e["type"] == "error"]
    if errors:
        answer.error, answer.detail = errors[0]["code"], errors[0]["message"]
        return
    results = [e["data"] for e in events if e["type"] == "result"]
    times = [r["timestamp"] for r in results]
    if times != sorted(times) or sum(e["type"] == "done" for e in events) != 1 or \
            events[-1]["data"]["status"] != "ok":
        answer.body = b"a stream out of order: " + body
        return
    answer.body = "\n".join(sorted(json.dumps(r, sort_keys=True) for r in results)).encode()


def read_response(key, response, answer):
    answer.query_id = response.getheader("X-Query-Id") or ""  # first: what follows may be cut
    body = response.read()
    if response.status == 200 and key[0] == "events":
        read_events(body, answer)
    elif response.status == 200:
        answer.body = body
    else:
        try:
            parsed = json.loads(body)
            answer.error = parsed.get("code") or parsed.get("errorType")
            answer.detail = parsed.get("message") or parsed.get("error") or ""
        except ValueError:
            answer.error, answer.detail = f"http {response.status}", repr(body[:200])


def ask(api, key, timeout_s=QUERY_TIMEOUT_S):
    answer = Answer()
    path, body, content = request_of(key, timeout_s)
    connection = http.client.HTTPConnection(api.host.ip, api.http_port, timeout=timeout_s + 2 * GRACE_S)
    answer.begin = time.monotonic()
    try:
        connection.request("POST", path, body, {"Content-Type": content, "Connection": "close"})
        read_response(key, connection.getresponse(), answer)
    except (socket.timeout, TimeoutError):
        answer.error, answer.detail = "hang", "nothing came"
    except (OSError, http.client.HTTPException) as e:
        answer.error = "refused" if isinstance(e, ConnectionRefusedError) else "cut"
        answer.detail = f"{type(e).__name__}: {e}"
    except (ValueError, LookupError, TypeError, AttributeError) as e:  # whole, but no answer of ours
        answer.error, answer.body = None, f"not an answer: {type(e).__name__}: {e}".encode()
    finally:
        answer.end = time.monotonic()
        connection.close()
    return answer


class Hiccups(threading.Thread):
    """How late this machine wakes a sleeper: what no deadline can be blamed for."""

    def __init__(self):
        super().__init__(daemon=True)
        self.recent = []
        self.worst = 0.0

    def run(self):
        while True:
            before = time.monotonic()
            time.sleep(0.2)
            late = time.monotonic() - before - 0.2
            if late > 0.2:
                self.recent = [h for h in self.recent if before - h[0] < 90] + [(before, late)]
                self.worst = max(self.worst, late)

    def since(self, begin):
        return sum(late for at, late in list(self.recent) if at >= begin - 1)


# Errors that the specification allows, and what must have gone on near the query for each: a set of
# faults, or True for any fault. Whatever is not listed here is a failure of the run.
STORE = {"slow_store", "store_errors", "store_cut", "store_flip", "store_partition"}
ALLOWED = {
    "unavailable": True,                              # no worker, or attempts used up
    "timeout": True,                                  # the deadline
    "no_space": {"full_disk", "full_disk_api"},
    "io": STORE | {"full_disk", "full_disk_api"},
    "store": STORE,                                   # it must be listed and cannot be
    "corrupt": {"store_flip", "store_cut"},           # what the store sends is wrong, time and again
}


class Judge:
    """Counts answers and compares them with the truth."""

    def __init__(self, truth, faults):
        self.truth, self.faults, self.lock = truth, faults, threading.Lock()
        self.hiccups = Hiccups()
        self.hiccups.start()
        self.queries = 0
        self.asked = []       # (key, query id, begin, seconds) of right answers
        self.errors = {}
        self.wrong = []
        self.hung = 0
        self.samples = {}     # one detail of each kind of error

    def fail(self, text):
        with self.lock:
            self.wrong.append((time.monotonic(), text))
        if self.faults:
            self.faults.write(f"FAILED {text}")  # among what happened then, and at once

    def compare(self, key, body):
        return "" if body == self.truth[key] else "\n" + difference(self.truth[key], body)

    def judge(self, key, api, answer, timeout_s, check=None, group=None):
        """@check: what is wrong with a body, "" if nothing is; by default another one than the truth is.
        @group: whose latencies are alike, by default those of the same question."""
        limit = timeout_s + GRACE_S + self.hiccups.since(answer.begin)
        with self.lock:
            self.queries += 1
        if answer.error == "hang" or answer.seconds > limit:
            self.hung += 1
            self.fail(f"{api.name}: {key}: {answer.error or 'answered'} after {answer.seconds:.1f} s, "
                      f"its deadline was {timeout_s} s (id {answer.query_id})")
        elif answer.error:
            self.judge_error(key, api, answer)
        elif problem := check(answer.body) if check else self.compare(key, answer.body):
            self.fail(f"{api.name}: {key}: another answer (id {answer.query_id}): {problem}")
        else:
            with self.lock:
                self.asked.append((group or key, answer.query_id, answer.begin, answer.seconds))

    def judge_error(self, key, api, answer):
        word = answer.error
        if word in ("internal", "unavailable"):  # JSON has no finer word; the log has
            word = outcome_in_log(api.log, answer.query_id) or word
        if word in ("refused", "cut"):
            allowed = self.faults.api_was_away(api, answer) or \
                (word == "cut" and self.cut_by_error(api, answer)) or self.faults.near({"client_loss"}, answer)
        else:
            allowed = self.faults.near(ALLOWED.get(word, set()), answer)
        with self.lock:
            self.errors[word] = self.errors.get(word, 0) + 1
            self.samples.setdefault(word, answer.detail)
        if not allowed:
            self.fail(f"{api.name}: {key}: error {word}, which is not allowed here: {answer.detail} "
                      f"(id {answer.query_id}, after {answer.seconds:.1f} s; faults near: "
                      f"{', '.join(sorted(self.faults.kinds_near(answer))) or 'none'})")

    def cut_by_error(self, api, answer):
        """An error after the first bytes of a JSON answer cuts it: then the log names an allowed one."""
        word = outcome_in_log(api.log, answer.query_id) if answer.query_id else None
        return word in ALLOWED and self.faults.near(ALLOWED[word], answer)


def outcome_in_log(log, query_id):
    if not query_id:
        return None
    with open(log, "rb") as f:
        f.seek(max(0, f.seek(0, 2) - 4_000_000))
        text = f.read().decode(errors="replace")
    found = re.search(rf"query_id={re.escape(query_id)} outcome=(\w+)", text)
    return found.group(1) if found else None


def difference(expected, got):
    at = next((i for i, (a, b) in enumerate(zip(expected, got)) if a != b), min(len(expected), len(got)))
    begin = max(0, at - 150)
    return (f"  expected {len(expected)} bytes, from byte {begin}: {expected[begin:at + 150]!r}\n"
            f"  got      {len(got)} bytes, from byte {begin}: {got[begin:at + 150]!r}")


class Client(threading.Thread):
    """Asks without pause; one question in ten is in a hurry, one in fifty is dropped half way."""

    def __init__(self, host, apis, judge, seed):
        super().__init__(daemon=True)
        self.host, self.apis, self.judged, self.rng = host, apis, judge, random.Random(seed)
        self.over = threading.Event()
        self.dropped, self.ended = 0, False

    def run(self):
        self.host.settle()
        keys = list(self.judged.truth)
        while not self.over.is_set():
            key, api = self.rng.choice(keys), self.rng.choice(self.apis)
            if self.rng.random() < 0.02:
                self.drop(api, key)
                continue
            hurry = key[0] == "json" and self.rng.random() < 0.1
            timeout_s = 5 if hurry else QUERY_TIMEOUT_S
            answer = ask(api, key, timeout_s)
            self.judged.judge(key, api, answer, timeout_s)
            if answer.error:
                time.sleep(0.05)
        self.ended = True

    def drop(self, api, key):
        """Ask and hang up: the query and its works must end by themselves."""
        path, body, content = request_of(key, QUERY_TIMEOUT_S)
        connection = http.client.HTTPConnection(api.host.ip, api.http_port, timeout=5)
        try:
            connection.request("POST", path, body, {"Content-Type": content})
            time.sleep(self.rng.uniform(0, 0.05))
        except OSError:
            pass
        finally:
            connection.close()
        self.dropped += 1
