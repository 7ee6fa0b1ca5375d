#!/usr/bin/env python3
"""tenants.py - light queries of one tenant, alone and beside another one that does its worst.

usage: tenants.py [--queries N]

Prints the median and the p99 of tenant b's light queries: alone; beside slow readers and heavy queries
of tenant a that has limits; and beside the same without limits. Needs PROMFABRIC_BINARY and
PROMFABRIC_LOADER, as the tests in tests/integration/api."""
import argparse
import pathlib
import socket
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "integration" / "api"))
from harness import START, Fabric, load, standard_lines  # noqa: E402

END = START + 7000
LARGE = {"query": "temperature", "start": START, "end": END, "step": 1, "timeout": "20s"}
LIMITS = "a queries=1 queued=8 streams=8 work=1 memory=128MiB\n"


def fabric_with(limits):
    fabric = Fabric(1, start_workers=False)
    fabric.api.stop()
    path = pathlib.Path(fabric.folder, "limits")
    path.write_text(limits)
    fabric.api_flags = [f"--tenant-limits={path}", "--log-level=warn", "--queries-active=16"]
    for tenant in ("a", "b"):
        load(fabric.store, standard_lines(48), tenant=tenant)
    fabric.start_worker(0, ("--log-level=warn",))
    fabric.start_api()
    fabric.wait_workers(1)
    return fabric


def measure(fabric, count):
    """Seconds of @count light queries of tenant b, one after the other."""
    took = []
    for _ in range(count):
        began = time.monotonic()
        status, answer = fabric.json("/api/v1/query", {"query": "sum(up)", "time": START + 3600},
                                     headers={"X-Scope-OrgID": "b"})
        assert status == 200 and answer["data"]["result"], answer
        took.append(time.monotonic() - began)
        time.sleep(0.01)
    return sorted(took)


def slow_reader(fabric):
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    reader.connect(("127.0.0.1", fabric.api_port))
    reader.sendall((f"GET /api/v1/query_range?query=temperature&start={START}&end={END}&step=1 "
                    "HTTP/1.1\r\nHost: localhost\r\nX-Scope-OrgID: a\r\n\r\n").encode())
    return reader


def beside(fabric, count):
    stop = threading.Event()

    def heavy():
        while not stop.is_set():
            try:
                status = fabric.get("/api/v1/query_range", LARGE,
                                    headers={"X-Scope-OrgID": "a"}, timeout=60)[0]
            except OSError:
                continue
            if status != 200:
                stop.wait(0.05)

    readers = [slow_reader(fabric) for _ in range(32)]
    threads = [threading.Thread(target=heavy) for _ in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(3)
    took = measure(fabric, count)
    stop.set()
    for reader in readers:
        reader.close()
    for thread in threads:
        thread.join()
    return took


def show(what, took):
    print(f"{what:32s} median {took[len(took) // 2] * 1e3:7.1f} ms   p99 "
          f"{took[int(len(took) * 0.99)] * 1e3:7.1f} ms   longest {took[-1] * 1e3:7.1f} ms",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=500)
    options = parser.parse_args()
    fabric = fabric_with(LIMITS)
    measure(fabric, 20)
    show("alone", measure(fabric, options.queries))
    show("beside a tenant with limits", beside(fabric, options.queries))
    show("alone again", measure(fabric, options.queries))
    fabric.close()
    fabric = fabric_with("")
    measure(fabric, 20)
    show("beside one without limits", beside(fabric, options.queries))
    fabric.close()


if __name__ == "__main__":
    main()
