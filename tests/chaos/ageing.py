"""ageing - samples of a tenant of its own grow old and go, while everything fails."""
import os
import threading
import time

TENANT = "aged"
RETENTION_S = 60
GONE_S = 420  # rounds of several APIs, one at a time, one of which may have been killed with the lease
LIMITS = f"{TENANT} retention={RETENTION_S}s\n"


class Ageing(threading.Thread):
    """Imports a sample now and then; the store may be away, then it is left out."""

    def __init__(self, cluster, program, folder):
        super().__init__(daemon=True)
        self.cluster, self.program, self.over = cluster, program, threading.Event()
        self.path = os.path.join(folder, "aged.txt")
        self.imports, self.failed = 0, 0

    def run(self):
        while not self.over.wait(5):
            now = int(time.time() * 1000)
            with open(self.path, "w", encoding="ascii") as f:
                f.write(f"aged_sample {now} {now}\n")
            try:
                self.cluster.store.run(self.program, "import", "--quiet", "--store", self.cluster.store.url, "--tenant", TENANT,
                                       "--shards", "1", self.path)
                self.imports += 1
            except (RuntimeError, OSError, ValueError):
                self.failed += 1

    def left(self):
        listed = self.cluster.store.run(self.program, "segments", "ls", "--store", self.cluster.store.url)
        return sum(f"tenant={TENANT}/" in line for line in listed.splitlines())

    def problems(self):
        """Faults are over and nothing comes any more: in the end nothing is left of it."""
        end = time.monotonic() + GONE_S
        while (left := self.left()) and time.monotonic() < end:
            time.sleep(2)
        if left:
            yield f"{left} segments behind the retention are still there after {GONE_S} s"
        if not self.imports:
            yield "nothing was imported that could grow old"

    def figures(self):
        return {"imports that grew old and went": self.imports, "and that the store refused": self.failed}
