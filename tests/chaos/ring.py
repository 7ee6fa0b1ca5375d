"""ring - segments on the cluster's own workers: five of them are storage nodes, one more is spare. What the ring says of
itself, and what lies on its disks, which is looked at without asking anybody."""
import bisect
import hashlib
import http.client
import json
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request

from store import Store, clean_env, write_data

SPARES = 1
COPIES = 3
GRACE = "5s"  # from the end of a change to the cleanup of what it left behind
SLOTS, VIRTUAL, PLACEMENTS = 1024, 128, 64  # as in ring/core/place.h
QUIET_S = 300  # until a ring that nobody disturbs is whole; more is a hang
CALM_S = 120   # and one of which single nodes are disturbed
NODES, MIGRATIONS = "/v1/admin/storage-nodes", "/v1/admin/migrations"


class RingStore(Store):
    """It can be filled once there are storage nodes, and somebody who keeps the list."""
    kind, host = "ring", None

    def __init__(self, ports):
        """@ports: by host of an ingest node, where it listens."""
        self.ports = {host.name: port for host, port in ports.items()}
        self.url = "ring://" + ",".join(f"{host.ip}:{port}" for host, port in ports.items())
        self.env = clean_env()

    def fill(self, program):
        write_data(program, self.url, self.env)

    def stop(self):
        pass


def position(text):
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


class Placement:
    """Who owns a slot, as docs/ring.md says it: written again, so that a mistake of the product is not one of the judge."""

    def __init__(self, names):
        walk = sorted((position(f"{name}#{v}"), name) for name in names for v in range(VIRTUAL))
        self.names, self.at = [name for _, name in walk], [at for at, _ in walk]
        self.known = {}

    def owners(self, slot, copies=COPIES):
        if slot not in self.known:
            first = bisect.bisect_left(self.at, slot * (2**64 // SLOTS))
            self.known[slot] = list(dict.fromkeys(self.names[first:] + self.names[:first]))
        return self.known[slot][:copies]


def slot_of(name):
    tenant, shard = re.search(r"tenant=([^/]*)/", name).group(1), re.search(r"_s(\d+)of\d+[^/]*$", name)
    return position(f"{tenant}/{int(shard.group(1)) % PLACEMENTS if shard else 0}") // (2**64 // SLOTS)


def blobs(worker):
    """Path by name of all that lies on a worker's disk."""
    root, found = os.path.join(worker.keep, "blobs"), {}
    for where, _, files in os.walk(root):
        for file in files:
            path = os.path.join(where, file)
            found[os.path.relpath(path, root).split("/", 1)[1].rsplit("~", 1)[0]] = path
    return found


def content(path):
    try:
        with open(path, "rb") as f:
            return hashlib.sha256(f.read()).digest()
    except OSError:
        return None


class Ring:
    def __init__(self, cluster, program):
        self.cluster, self.program = cluster, program
        self.by_name = {worker.name: worker for worker in cluster.workers}
        self.slowest_s = 0.0  # until it was whole again

    # --- what it says ---

    def ask(self, method, path, seconds=120, **params):
        """Status and document of an ingest node that knows; again while there is no leader. The last answer if time is over."""
        end, query = time.monotonic() + seconds, "?" + urllib.parse.urlencode(params) if params else ""
        status, answer = 0, {}
        while True:
            for node in self.cluster.ingests:
                status, answer = ask_node(node, method, path + query)
                if status in (200, 400, 404, 409):
                    return status, answer
            if time.monotonic() > end:
                return status, answer
            time.sleep(0.1)

    def must(self, method, path, **params):
        status, answer = self.ask(method, path, **params)
        if status != 200:
            raise RuntimeError(f"{method} {path} {params}: {status} {answer}")
        return answer

    def form(self):
        """Of all workers but the spare ones."""
        for worker in self.cluster.workers[:-SPARES]:
            self.must("POST", NODES, name=worker.name, url=worker.url)
        self.must("POST", "/v1/admin/ring", copies=COPIES, grace=GRACE)
        end = time.monotonic() + 120
        while not all(int(node["incarnation"], 16) for node in self.nodes()):
            if time.monotonic() > end:
                raise RuntimeError("storage nodes were not told the epochs of their slots within 120 s")
            time.sleep(0.1)

    def nodes(self):
        return [node for node in self.must("GET", NODES)["nodes"] if node["state"] != "REMOVED"]

    def members(self):
        return [self.by_name[node["name"]] for node in self.nodes()]

    def mortal(self):
        """Storage nodes that may lose everything; the first worker lives as long as the run."""
        return [worker for worker in self.members() if worker is not self.cluster.workers[0]]

    def spare(self):
        known = {worker.name for worker in self.members()}
        return [worker for worker in self.cluster.workers if worker.name not in known]

    def migration(self, number):
        """None: it is over, and was forgotten."""
        status, answer = self.ask("GET", f"{MIGRATIONS}/{number}")
        return answer if status == 200 else None

    def running(self):
        return [m for m in self.must("GET", MIGRATIONS)["migrations"] if m["status"] in ("running", "rolling_back")]

    # --- what it has ---

    def named(self):
        """Segments that are listed."""
        end = time.monotonic() + 120
        while True:
            try:
                listed = self.cluster.store.run(self.program, "segments", "ls", "--store", self.cluster.store.url)
                return set(re.findall(r"tenant=\S+\.parquet", listed))
            except RuntimeError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)

    def lacking(self, need=COPIES):
        """What is wrong with the copies of what is listed: fewer than @need of its owners have it, or not the same bytes."""
        if running := self.running():
            return [f"{m['type']} of {m.get('node')} is {m['status']}, {m['progress']['percent']} %" for m in running]
        names, members = self.named(), self.members()  # first the names: what has one lies somewhere
        place = Placement([worker.name for worker in members])
        held = {worker.name: blobs(worker) for worker in members}
        problems = []
        for name in sorted(names):
            owners = place.owners(slot_of(name))
            have = [owner for owner in owners if name in held[owner]]
            if len(have) < min(need, len(owners)):
                problems.append(f"{name}: {', '.join(have) or 'none'} of {', '.join(owners)} have it")
            elif need == COPIES and len({content(held[owner][name]) for owner in have}) > 1:
                problems.append(f"{name}: {', '.join(have)} have different bytes")
        if problems:
            still = self.named()  # what was removed meanwhile is nobody's any more
            problems = [problem for problem in problems if problem.split(":")[0] in still]
        return problems

    def unrest(self):
        """What nodes say that they still have to do; empty: nothing."""
        said = [f"{node['name']} is {node['state']}" for node in self.nodes() if node["down"] or node["state"] != "NORMAL"]
        for node in self.cluster.ingests:
            for name in ("references", "repair_marks"):
                if count := node.metric(f"promfabric_ingest_handoff_{name}"):
                    said.append(f"{node.name} has {count:.0f} {name}")
        for worker in self.members():
            if marks := worker.metric("promfabric_keeper_marks"):
                said.append(f"{worker.name} lacks {marks:.0f}")
        return said

    def wait_whole(self, seconds):
        """What is left to complain of after so long; empty: every owner has everything."""
        begin = time.monotonic()
        while problems := self.lacking():
            if time.monotonic() > begin + seconds:
                return problems
            time.sleep(0.3)
        self.slowest_s = max(self.slowest_s, time.monotonic() - begin)
        return []

    # --- at the end ---

    def problems(self):
        """Nobody disturbs it any more: what is listed has a majority at once, and all of its owners after quiet."""
        end = time.monotonic() + QUIET_S
        while (running := self.running()) and time.monotonic() < end:
            time.sleep(0.3)
        if running:
            yield f"migrations did not end within {QUIET_S} s: {running}"
            return
        for problem in self.lacking(COPIES // 2 + 1)[:5]:
            yield f"no majority: {problem}"
        for problem in self.wait_whole(QUIET_S)[:5]:
            yield f"not whole after {QUIET_S} s: {problem}"
        while (said := self.unrest()) and time.monotonic() < end:
            time.sleep(0.3)
        if said:
            yield f"no rest within {QUIET_S} s: {'; '.join(said)}"

    def figures(self):
        names, members = self.named(), self.members()
        held = [blobs(worker) for worker in members]

        def counted(processes, name):
            return int(sum(process.metric(name) or 0 for process in processes))
        return {"storage nodes at the end": len(members),
                "segments that are listed": len(names),
                "copies of them on disks of the ring": sum(name in disk for name in names for disk in held),
                "longest until everything was whole again, s": round(self.slowest_s, 1),
                "blobs handed off since the last start": counted(self.cluster.ingests, "promfabric_ingest_handoff_delivered_total"),
                "blobs mended since the last start": counted(members, "promfabric_keeper_mended_total")}


def ask_node(node, method, path):
    request = urllib.request.Request(node.base() + path, data=b"" if method in ("POST", "PUT") else None, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.loads(answer.read() or b"{}")
    except urllib.error.HTTPError as e:
        try:
            return e.code, json.loads(e.read() or b"{}")
        except (OSError, ValueError):
            return e.code, {}
    except (OSError, ValueError, http.client.HTTPException):
        return 0, {}
