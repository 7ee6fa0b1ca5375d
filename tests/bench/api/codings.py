#!/usr/bin/env python3
"""codings.py - bytes and seconds of a document and of an event stream in each coding.

usage: codings.py [--rounds N]

Needs PROMFABRIC_BINARY and PROMFABRIC_LOADER, as the tests in tests/integration/api."""
import argparse
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "integration" / "api"))
from harness import START, Fabric, load, standard_lines  # noqa: E402

END = START + 7000
ASKS = (
    ("document", "/api/v1/query_range", {"query": "temperature", "start": START, "end": END,
                                         "step": 5}),
    ("events", "/api/v1/metrics/query", {"q": "temperature", "s": START, "e": END, "step": "5s"}),
)


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    fabric = Fabric(1, ("--log-level=warn",))
    load(fabric.store, standard_lines(48))
    fabric.wait_workers(1)
    for what, path, params in ASKS:
        for coding in ("identity", "gzip", "zstd"):
            took, size, before = [], 0, cpu_seconds(fabric.api.pid)
            for _ in range(options.rounds):
                began = time.monotonic()
                status, _, body = fabric.get(path, params, headers={"Accept-Encoding": coding})
                took.append(time.monotonic() - began)
                assert status == 200
                size = len(body)
            cpu = (cpu_seconds(fabric.api.pid) - before) / options.rounds
            print(f"{what:10s} {coding:10s} {size:10,d} bytes   median "
                  f"{sorted(took)[len(took) // 2] * 1e3:7.1f} ms   CPU of the API {cpu * 1e3:6.1f} ms",
                  flush=True)
    fabric.close()


if __name__ == "__main__":
    main()
