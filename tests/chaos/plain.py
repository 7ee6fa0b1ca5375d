"""plain - what an undisturbed instance says: the truth about the data that is there from the beginning, and what a store alone
has in the end."""
import os
import time

from clients import all_keys, ask
from hosts import free_port
from store import LocalStore


class Plain:
    """One API and one worker over a store, undisturbed, and no ingest node."""
    name = "an API of the store alone"

    def __init__(self, program, folder, spawner, host, store, what):
        self.host, self.http_port = host, free_port() if host.fd is None else 8088
        self.log = os.path.join(folder, f"{what}.log")
        self.process = spawner.spawn(host, [program, "up", "--store", store.url, "--workers", "1", "--ingest-nodes", "0",
                                            "--state", os.path.join(folder, f"{what}-state"), "--http-listen",
                                            f"{host.ip}:{self.http_port}"], self.log, store.env)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)


def learn(program, folder, spawner, host):
    """The right answers to what is asked of the data that is there from the beginning."""
    store = LocalStore(program, os.path.join(folder, "truth-store"))
    truth, end = {}, time.monotonic() + 120
    with Plain(program, folder, spawner, host, store, "truth") as plain:
        for key in all_keys():
            answer = ask(plain, key)
            while answer.error and time.monotonic() < end:
                time.sleep(0.2)
                answer = ask(plain, key)
            if answer.error:
                raise RuntimeError(f"no truth for {key}: {answer.error}: {answer.detail}; see {plain.log}")
            if len(answer.body) < 40:
                raise RuntimeError(f"an empty truth proves nothing: {key}: {answer.body!r}")
            truth[key] = answer.body
    return truth
