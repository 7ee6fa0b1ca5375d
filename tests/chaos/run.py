#!/usr/bin/env python3
"""run - the fault campaign: random queries with known answers while everything around them fails.

Started by scripts/chaos. Every answer must be the one that an undisturbed instance gives for the same
data, byte for byte, or an error that the specification allows for the faults around it (clients.py); no
query may outlive its deadline; once the faults stop everything succeeds; and nothing is left behind. The
run is seeded: the same seed injects the same faults in the same order (their timing against the queries
is the machine's). SIGUSR1 ends the faults early; everything is checked all the same."""
import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import report  # noqa: E402
from ageing import Ageing  # noqa: E402
from clients import Client, Judge, QUERY_TIMEOUT_S, ask  # noqa: E402
from cluster import Api, FAKETIME, Ingest, Spawner, WRITE_PORT, Worker  # noqa: E402
from compact import RUN_S, Background, Compactor  # noqa: E402
import clients  # noqa: E402
import compact  # noqa: E402
import faults_ingest  # noqa: E402
import faults_ring  # noqa: E402
from faults import Faults, Lane  # noqa: E402
from hosts import Hosts  # noqa: E402
from live import Live  # noqa: E402
from plain import Plain, learn  # noqa: E402
from ring import Ring, RingStore, SPARES  # noqa: E402
from store import LocalStore, SwiftStore, install_swift  # noqa: E402

PREFIX = "promfabric-chaos-"
KINDS = ["kill", "stall", "drain", "restart_api", "clock_api", "slow_link", "cut_link", "partition", "one_way",
         "loss", "client_loss", "full_disk", "full_disk_api", "corrupt_artifacts", "corrupt_segments",
         "corrupt_restart", "slow_store", "store_errors", "store_cut", "store_flip", "store_partition"]
NEEDS_NAMESPACES = {"one_way", "loss", "client_loss", "store_partition"} | faults_ingest.NEEDS_NAMESPACES | \
    faults_ring.NEEDS_NAMESPACES
NEEDS_DISKS = {"full_disk", "full_disk_api", "full_disk_ingest"} | faults_ring.NEEDS_DISKS
NEEDS_S3 = {"corrupt_segments", "corrupt_restart", "slow_store", "store_errors", "store_cut", "store_flip",
            "store_partition", "store_away_ingest"}
NEEDS_FAKETIME = {"clock_api", "clock_ingest"}
FAILURES_MAX = 5  # then the run ends early
AGEING_MIN = 2  # on the ring: shorter runs do not wait until what is old has gone


def say(text):
    print(f"chaos: {text}", file=sys.stderr, flush=True)


class Interrupted(Exception):
    pass


class Cluster:
    """Hosts, store and processes."""

    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.workers, self.apis, self.ingests, self.store, self.spawner = [], [], [], None, None
        workers = args.workers + SPARES * args.ring
        names = ["driver", "client", "store"] + [f"worker-{i}" for i in range(workers)] + \
            [f"api-{i}" for i in range(args.apis)] + [f"ingest-{i}" for i in range(args.ingests)]
        self.hosts = Hosts(names, args.network == "relay")
        if self.hosts.why_plain:
            say(f"no network namespaces ({self.hosts.why_plain}): the relays alone fail links")
        self.hosts["driver"].settle()
        self.spawner = Spawner()  # after the hosts: it is to see their disks
        self.store = self.open_store()
        self.store_busy = threading.Lock()
        self.compacts = args.compact == "on"
        program = args.promfabric
        # Relays in front of the first two workers, for delay; in front of all if there is nothing else.
        for i in range(workers):
            relayed = bool(self.hosts.why_plain) or i < 2
            self.workers.append(Worker(self.spawner, program, self.hosts[f"worker-{i}"], folder, self.store, i, relayed))
        seal_s = 10 if args.minutes < 5 else 25  # many small files, but not more than a busy store can take
        self.ingests = [Ingest(self.spawner, program, self.hosts[f"ingest-{i}"], folder, self.store, i, QUERY_TIMEOUT_S,
                               seal_s) for i in range(args.ingests)]
        for node in self.ingests:
            node.meet([other for other in self.ingests if other is not node])
        for i in range(args.apis):
            self.apis.append(Api(self.spawner, program, self.hosts[f"api-{i}"], folder, self.store, self.workers,
                                 self.ingests, i, QUERY_TIMEOUT_S, compact.api_flags(args.minutes) * self.compacts))
        self.ring = Ring(self, program) if args.ring else None
        self.relayed = [worker for worker in self.workers if worker.relays]
        # The first of each lives as long as the run, so that what it leaks can be seen.
        self.mortal_workers = self.workers[1:] or self.workers
        self.mortal_apis = self.apis[1:] or self.apis
        self.impossible = self.find_impossible()
        self.kinds = self.possible(KINDS)

    def open_store(self):
        if self.args.ring:
            hosts = [self.hosts[f"ingest-{i}"] for i in range(self.args.ingests)]
            return RingStore({host: host.port(WRITE_PORT) for host in hosts})
        self.why_local = "asked for" if self.args.store == "local" else ""
        if not self.why_local:
            try:
                begin = time.monotonic()
                store = SwiftStore(self.args.promfabric, os.path.join(self.folder, "swift"), self.hosts["store"],
                                   self.spawner)
                say(f"Swift is up and has the data after {time.monotonic() - begin:.1f} s")
                return store
            except (OSError, RuntimeError, subprocess.SubprocessError) as e:
                if self.args.store == "s3":
                    raise
                self.why_local = str(e)
                say(f"no S3 server ({e}): the store is a folder")
        return LocalStore(self.args.promfabric, os.path.join(self.folder, "store"))

    def find_impossible(self):
        why = {}
        if self.store.kind != "s3":
            what = "no S3 server: the ring" if self.ring else f"local store, {self.why_local}"
            why.update({kind: what for kind in NEEDS_S3})
        if self.hosts.why_plain:
            why.update({kind: f"no namespaces, {self.hosts.why_plain}" for kind in NEEDS_NAMESPACES})
        if not all(p.own_disk for p in self.processes()):
            why.update({kind: "no tmpfs may be mounted" for kind in NEEDS_DISKS})
        if not os.path.exists(FAKETIME):
            why.update({kind: "libfaketime is not installed" for kind in NEEDS_FAKETIME})
        return why

    def possible(self, kinds):
        only = self.args.only.split(",") if self.args.only else kinds
        return [kind for kind in kinds if kind not in self.impossible and kind in only]

    def start(self, past):
        """@past: samples that are in the store before anybody asks."""
        first, *others = self.ingests
        for process in self.workers + others:
            process.start()
        first.found()
        first.wait_ready(180)
        for node in others:
            first.change("add", node)
            first.change("promote", node)
        self.wait_settled()
        if self.ring:
            self.ring.form()
            self.store.fill(self.args.promfabric)
        self.store.import_text(self.args.promfabric, past, os.path.join(self.folder, "past.txt"))
        for api in self.apis:
            api.start()
        self.wait_all_ready()

    def wait_all_ready(self):
        for process in self.ingests + self.apis:
            self.wait_ready(process)

    def wait_settled(self, seconds=240):
        """Every queue has all ingest nodes as voters, as every node knows: only then may one be lost."""
        end = time.monotonic() + seconds
        while not self.settled():
            if time.monotonic() > end:
                raise RuntimeError(f"not all ingest nodes vote in all queues after {seconds} s")
            time.sleep(0.2)

    def settled(self):
        known = [node.voters() for node in self.ingests]
        return known[0] is not None and all(k == known[0] for k in known) and \
            all(len(voters) == len(self.ingests) for voters in known[0].values())

    def wait_ready(self, process):
        """Its store may be failing just now, on purpose."""
        process.wait_ready(180)

    def processes(self):
        return self.workers + self.apis + self.ingests

    def kill_everything(self):
        """All at once, as a power cut does; then all come back."""
        for process in self.processes():
            process.kill()
        for process in self.processes():
            process.start()
        self.wait_all_ready()

    def wait_sealed(self, seconds=180):
        """Nothing is in heads any more; False if that took too long."""
        end = time.monotonic() + seconds
        while self.ingests[0].unsealed() != 0:
            if time.monotonic() > end:
                return False
            time.sleep(0.5)
        return True

    def heal(self):
        for host in self.hosts.by_name.values():
            host.heal()
        for worker in self.workers:
            for relay in worker.relays:
                relay.heal()

    def remove_disks(self):
        for process in self.processes():
            if process.own_disk:
                self.hosts.undisk(process.disk)

    def stop(self):
        """Exit codes that are not 0, by name."""
        bad, started = {}, [p for p in self.apis + self.workers + self.ingests if p.process]
        for process in started:
            process.tell_to_stop()
        for process in started:
            code = process.stop()
            if code != 0:
                bad[process.name] = code
        if self.store:
            self.store.stop()
        return bad


class Campaign:
    def __init__(self, args, folder):
        self.args, self.folder, self.cluster = args, folder, None
        self.faults = Faults(os.path.join(folder, "faults.log"))
        self.judge, self.clients, self.lanes, self.elders = None, [], [], {}
        self.live, self.ingest_lane, self.segments, self.compacted = None, None, 0, 0
        self.ring_figures = {}
        self.compactor = self.background = self.ageing = None
        self.after, self.left, self.enough, self.minutes = 0, {}, False, 0.0

    def run(self):
        args = self.args
        self.cluster = Cluster(args, self.folder)
        hosts = self.cluster.hosts
        truth = learn(args.promfabric, self.folder, self.cluster.spawner, hosts["driver"])
        self.judge = Judge(truth, self.faults)
        self.live = Live(self.cluster, self.judge, args.seed)
        self.cluster.start(self.live.past())
        self.check_alive()
        self.check_all("before the faults")
        if self.judge.wrong:
            return
        self.clients = [Client(hosts["client"], self.cluster.apis, self.judge, args.seed * 1000 + i)
                        for i in range(args.clients)]
        for client in self.clients:
            client.start()
        self.live.start()
        if self.cluster.compacts:
            self.background = Background(self.cluster)
            self.compactor = Compactor(self.cluster, args.promfabric, self.folder, args.seed, args.minutes)
            self.compactor.start()
        if not args.ring or args.minutes >= AGEING_MIN:
            self.ageing = Ageing(self.cluster, args.promfabric, self.folder)
            self.ageing.start()
        time.sleep(3)
        self.sample()
        say(f"faults begin, for {args.minutes:g} min: {', '.join(self.cluster.kinds)}")
        self.inject(args.minutes * 60)
        self.settle()

    def inject(self, seconds):
        self.lanes = [Lane(self.cluster, self.faults, self.judge, self.args.seed, i, self.args.lanes)
                      for i in range(self.args.lanes)]
        self.ingest_lane = faults_ingest.IngestLane(self.cluster, self.faults, self.judge, self.args.seed, self.live)
        self.lanes.append(self.ingest_lane)
        if self.cluster.ring:
            self.lanes.append(faults_ring.RingLane(self.cluster, self.faults, self.judge, self.args.seed, self.cluster.ring))
        for lane in self.lanes:
            lane.start()
        begin = last = time.monotonic()
        quarters = [begin + seconds * share for share in (0.25, 0.5, 0.75)]
        while (now := time.monotonic()) < begin + seconds and len(self.judge.wrong) < FAILURES_MAX and not self.enough:
            time.sleep(0.25)
            self.check_alive()
            if quarters and now > quarters[0]:
                quarters.pop(0)
                self.sample()
            if now - last >= 30:
                last = now
                say(f"{(now - begin) / 60:.1f} min: {self.judge.queries} queries, {self.live.acks} writes, "
                    f"{len(self.faults.records)} faults, {sum(self.judge.errors.values())} allowed errors, "
                    f"{len(self.judge.wrong)} failures")
        self.minutes = round((time.monotonic() - begin) / 60, 1)

    def check_alive(self):
        """Nobody ends unless a fault ended it."""
        for process in self.cluster.processes():
            if process.busy.acquire(blocking=False):
                try:
                    if not process.alive():
                        self.judge.fail(f"{process.name} ended by itself with exit code {process.process.returncode}; "
                                        f"see {process.log}")
                        process.start()
                finally:
                    process.busy.release()

    def sample(self):
        for process in (self.cluster.workers[0], self.cluster.apis[0]):
            self.elders.setdefault(process.name, []).append(process.sizes())

    def settle(self):
        """Faults are over: after the longest backoff every query of every API succeeds."""
        for lane in self.lanes:
            lane.over.set()
        for lane in self.lanes:
            lane.join(240)
            if lane.is_alive():
                self.judge.fail("a fault did not end")
        self.cluster.heal()
        time.sleep(12)
        self.check_alive()
        for client in self.clients:
            client.over.set()
        for client in self.clients:
            client.join(3 * QUERY_TIMEOUT_S + 30)
            if client.is_alive():
                self.judge.fail("a client hangs")
            elif not client.ended:
                self.judge.fail("a client died: its traceback is above")
        self.live.stop()
        self.live.join()
        self.end_upkeep()
        self.check_ring()
        self.check_all("after the faults")
        self.check_leaks()
        self.check_what_stays()

    def check_ring(self):
        """Where everything lies, before anything else is asked of it."""
        if not self.cluster.ring:
            return
        for problem in self.cluster.ring.problems():
            self.judge.fail(problem)
        self.ring_figures = self.cluster.ring.figures()

    def end_upkeep(self):
        for thread, what in ((self.compactor, "a compaction"), (self.ageing, "an import")):
            if not thread:
                continue
            thread.over.set()
            thread.join(RUN_S + 60)
            if thread.is_alive():
                self.judge.fail(f"{what} did not end")
        for part in (self.compactor, self.background, self.ageing):
            for problem in part.problems() if part else []:
                self.judge.fail(problem)

    def check_what_stays(self):
        """Every acknowledged sample: now, after all were killed, out of the store, from the store alone, and after
        its files were merged."""
        cluster, live = self.cluster, self.live
        live.check_everything(cluster.apis, "after the faults")
        cluster.kill_everything()
        live.check_everything(cluster.apis, "after all were killed")
        if not cluster.wait_sealed():
            self.judge.fail("not all is sealed though nothing is written any more")
        self.segments = cluster.store.count(self.args.promfabric)
        live.check_everything(cluster.apis, "after all was sealed")
        if not cluster.ring:
            self.check_alone("from the store alone", "alone")
        if cluster.compacts:
            self.compact()
            self.check_alone("after compaction", "compacted")
        if cluster.ring:
            self.check_with_two_away()  # from the store alone as well

    def check_with_two_away(self):
        """Of three owners one is left: each has to have everything."""
        away = self.cluster.ring.mortal()[:2]
        for keeper in away:
            keeper.kill()
        self.check_alone(f"without {' and '.join(keeper.name for keeper in away)}", "two-away")
        for keeper in away:
            keeper.start()

    def check_alone(self, when, what):
        with Plain(self.args.promfabric, self.folder, self.cluster.spawner, self.cluster.hosts["driver"],
                   self.cluster.store, what) as plain:
            self.live.check_everything([plain], when)

    def compact(self):
        """What is long over, which the late stream writes to, as nobody can add to it any more."""
        who = []
        if not self.cluster.ring:  # its list is with them
            who = ["--ingest-stopped"]
            for node in self.cluster.ingests:
                if (code := node.stop()) != 0:
                    self.judge.fail(f"{node.name}: exit code {code} when told to end")
        store = self.cluster.store
        for _ in range(2):  # the second one deletes what the first one replaced
            store.run(self.args.promfabric, "compact", "--quiet", *who, "--settle", "0s", "--grace", "0s", "--store", store.url)
        self.compacted = store.count(self.args.promfabric)
        if self.compacted > self.segments or (self.compacted == self.segments and not self.compactor.done()[0]
                                               and not self.background.jobs()):
            self.judge.fail(f"{self.segments} segments, {self.compacted} after compaction")

    def check_all(self, when):
        failed = 0
        for key, truth in self.judge.truth.items():
            for api in self.cluster.apis:
                answer = ask(api, key)
                self.after += when == "after the faults"
                if answer.error or answer.body != truth:
                    self.judge.fail(f"{when}: {api.name}: {key}: {answer.error or 'another answer'} {answer.detail}")
                    failed += 1
                    if failed == FAILURES_MAX:
                        return

    def find_left(self):
        """What a cluster at rest should not have."""
        workers, apis = self.cluster.workers, self.cluster.apis
        return {"works": sum(w.metric("promfabric_worker_works") or 0 for w in workers),
                "artifacts": sum(w.metric("promfabric_worker_artifacts") or 0 for w in workers),
                "artifact files": sum(len(w.files("artifact")) - os.path.exists(w.spool + "/lock") for w in workers),
                "half downloads": sum(path.endswith(".part") for w in workers for path in w.files("segment")),
                "queries": sum(a.metric("promfabric_api_queries") or 0 for a in apis),
                "API spool files": sum(len(names) for a in apis for _, _, names in os.walk(a.disk)),
                "missing streams": sum(len(workers) - (a.metric("promfabric_api_control_streams") or 0) for a in apis)}

    def check_leaks(self):
        end = time.monotonic() + 90
        while any((left := self.find_left()).values()) and time.monotonic() < end:
            time.sleep(1)  # compaction goes on and has files for a moment
        self.left = {k: int(v) for k, v in left.items()}
        for name, count in self.left.items():
            if count:
                self.judge.fail(f"left at the end: {count} {name}")
        self.sample()
        for name, figures in self.elders.items():
            first, last = figures[0], figures[-1]
            for what, room in (("rss_mib", max(96, first["rss_mib"])), ("fds", 100), ("threads", 12)):
                if last[what] > first[what] + room:
                    self.judge.fail(f"{name} leaks: {what} {first[what]:.0f} at first, {last[what]:.0f} at the end")

    def stop(self):
        for lane in self.lanes:
            lane.over.set()
        for client in self.clients:
            client.over.set()
        if self.live:
            self.live.stop()
        for thread in (self.compactor, self.ageing):
            if thread:
                thread.over.set()
                thread.join(320)
        for lane in self.lanes:
            lane.join(60)
        if not self.cluster:
            return
        self.cluster.heal()
        for name, code in self.cluster.stop().items():
            if self.judge:
                self.judge.fail(f"{name}: exit code {code} when told to end")
        self.left["processes"] = sum(p.process is not None and p.alive() for p in self.cluster.processes())

    def result(self):
        judge, args = self.judge, self.args
        again, seen = report.reassigned_ids(self.cluster.apis), report.noticed(self.cluster.apis)
        merging = [worker.log for worker in self.cluster.workers] + [os.path.join(self.folder, "compact.log")]
        lines = report.unexplained(self.cluster.apis, self.faults.targets("full_disk"), filter(os.path.exists, merging),
                                   os.path.join(self.folder, "swift", "object.log"), judge.queries)
        for text in report.without_trace(self.faults.counts(), seen) + report.given_up(judge) + lines[:5]:
            judge.fail(text)
        latency, by_kind = report.latencies(judge.asked, again, self.faults)
        store = {"s3": "S3 (Swift, behind a proxy that fails)", "ring": "the workers' disks"}.get(
            self.cluster.store.kind) or f"local folder ({self.cluster.why_local})"
        why = self.cluster.hosts.why_plain
        return {"seed": args.seed, "minutes": self.minutes, "apis": args.apis, "workers": args.workers,
                "clients": args.clients, "store": store,
                "network": f"loopback with relays ({why})" if why else "a namespace for each host, nft rules between them",
                "queries": judge.queries, "right": len(judge.asked), "hung": judge.hung, "errors": judge.errors,
                "samples": judge.samples, "noticed": seen, "faults": self.faults.counts(), "impossible": self.cluster.impossible,
                "dropped": sum(client.dropped for client in self.clients),
                "reassigned": (latency["lost a worker"] or {"count": 0})["count"], "after": self.after,
                "latency": latency, "added_by_kind": by_kind, "elders": self.elders, "left": self.left,
                "hiccup_s": judge.hiccups.worst, "live": self.live_figures(),
                "failures": [f"at {at - self.faults.zero:.1f} s: {text}" for at, text in judge.wrong]}

    def live_figures(self):
        live = self.live
        return {"ingest nodes": self.args.ingests, "writes acknowledged": live.acks, "samples acknowledged": live.samples(),
                "writes sent again": live.retries, "looked for right after": live.looks,
                "known answers over stored and live samples": live.reads, "reads of registers": live.register_reads,
                "questions at the end about every sample": live.after,
                **{name: count for part in (self.background, self.compactor, self.ageing) if part
                   for name, count in part.figures().items()},
                **self.ring_figures, "segments in the store at the end": self.segments,
                **({"and after compaction": self.compacted} if self.cluster.compacts else {}),
                "refusals": live.refusals,
                "gaps_s": {kind: (sorted(gaps)[len(gaps) // 2], max(gaps))
                           for kind, gaps in sorted(self.ingest_lane.gaps.items())} if self.ingest_lane else {}}


def sweep():
    """Folders of drivers that were killed: everything else of theirs went with them."""
    for name in os.listdir(tempfile.gettempdir()):
        owner = name[len(PREFIX):].split("-")[0]
        if name.startswith(PREFIX) and owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
            say(f"removing what an earlier run left: {name}")
            shutil.rmtree(os.path.join(tempfile.gettempdir(), name), ignore_errors=True)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--promfabric", required=True)
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=5)
    parser.add_argument("--apis", type=int, default=2)
    parser.add_argument("--ingests", type=int, default=3, help="ingest nodes: 1, 3 or 5")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--lanes", type=int, default=2, help="faults at the same time")
    parser.add_argument("--only", default="", metavar="KIND,...", help="only these kinds of faults")
    parser.add_argument("--ring", action="store_true", help="segments lie with the workers, and one more is spare")
    parser.add_argument("--compact", choices=("on", "off"), default="on", help="merge segments all the time")
    parser.add_argument("--store", choices=("auto", "s3", "local"), default="auto")
    parser.add_argument("--network", choices=("auto", "relay"), default="auto")
    parser.add_argument("--report", metavar="FILE", help="write the result there, as .md, .json or both")
    parser.add_argument("--keep", action="store_true", help="keep the folder with logs")
    return parser.parse_args()


def interrupt(number, _frame):
    raise Interrupted(f"signal {number}")


def finish(campaign, args, folder, interrupted):
    """Print, write, keep or remove; the exit code."""
    if campaign.judge:
        result = campaign.result()
        print("\n".join(report.as_lines(result)))
        if args.report:
            report.write(result, args.report)
        for line in result["failures"][:20]:
            print("FAILED " + line)
    failed = interrupted or not campaign.judge or campaign.judge.wrong or not campaign.judge.queries
    if failed or args.keep:
        kept = folder.replace(f"{PREFIX}{os.getpid()}", f"{PREFIX}kept")
        os.rename(folder, kept)
        print(f"seed {args.seed}; logs kept in {kept} (faults.log tells what happened when)")
    else:
        campaign.cluster.remove_disks()
        shutil.rmtree(folder)
    failures = len(campaign.judge.wrong) if campaign.judge else 1
    print(f"{len(campaign.judge.asked) if campaign.judge else 0} passed, {failures} failed")
    return 130 if interrupted else 1 if failed else 0


def main():
    args = parse_args()
    sweep()
    folder = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")
    if args.ring:
        for word in ("io", "store", "not_found"):  # whoever asks meets owners, and those who keep the list
            clients.ALLOWED[word] = clients.ALLOWED.get(word, set()) | faults_ring.UNREACHED | set(faults_ingest.KINDS)
    elif args.store != "local":
        install_swift()  # here, where the network is
    campaign, interrupted = Campaign(args, folder), None
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    signal.signal(signal.SIGUSR1, lambda *_: setattr(campaign, "enough", True))
    try:
        campaign.run()
    except (Interrupted, KeyboardInterrupt) as e:
        interrupted = e
        say(f"interrupted: {e}")
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        campaign.stop()
    return finish(campaign, args, folder, interrupted)


if __name__ == "__main__":
    sys.exit(main())
