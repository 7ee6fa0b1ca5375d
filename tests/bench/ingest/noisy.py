"""noisy.py - writes of one tenant, alone and beside another that sends ten times what it may.

usage: noisy.py --promfabric P [--slow-sync LIBRARY] [--seconds N] [--rounds N] [--limit N]

One node with its data on a tmpfs, each of whose fdatasyncs takes 4 ms with --slow-sync. The quiet tenant sends 20
requests a second with 500 samples each. The noisy one sends 2,000 samples at a time, ten times --limit samples a
second together, whatever it is told. Rounds of --seconds: the quiet tenant alone, beside the noisy one with its
limit, beside it without. Prints the quiet tenant's median and p99 of each, and what became of the noisy one's
requests."""
import argparse
import http.client
import multiprocessing
import os
import pathlib
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "lib")]
from ports import free_port  # noqa: E402
from three_nodes import AT_ONCE, TYPE, field, snappy, template, varint  # noqa: E402

QUIET_EVERY, QUIET_SAMPLES, SENDERS = 0.05, 500, 4


def body_of(symbols, refs, ts, value):
    sample = field(2, b"\x09" + struct.pack("<d", value) + b"\x10" + varint(ts))
    return snappy(symbols + b"".join(field(5, r + sample) for r in refs))


def send(number, tenant, port, every, samples, seconds, results):
    """A request every @every seconds, late ones as soon as they can; (seconds, status) of each."""
    symbols, refs = template(number)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Content-Type": TYPE, "Content-Encoding": "snappy", "X-Scope-OrgID": tenant}
    took, began = [], time.monotonic()
    ts = int(time.time() * 1000) - 3600_000
    due, end = began + every * (number % 7) / 7, began + seconds
    while due < end:
        body = body_of(symbols, refs[:samples], ts + len(took) * 100 + int(began * 1000) % 3000_000, 1.5)
        time.sleep(max(0.0, due - time.monotonic()))
        at = time.perf_counter()
        connection.request("POST", "/api/v1/write", body=body, headers=headers)
        answer = connection.getresponse()
        answer.read()
        took.append((time.perf_counter() - at, answer.status))
        due = max(due + every, time.monotonic() - 5 * every)
    results.put((tenant, took))


def measure(port, seconds, noisy, limit):
    """The answers to each tenant; @noisy: the name of the one that sends beside, or None."""
    results, jobs = multiprocessing.Queue(), [(1, "quiet", port, QUIET_EVERY, QUIET_SAMPLES)]
    if noisy:
        every = AT_ONCE * SENDERS / (10 * limit)
        jobs += [(10 + i, noisy, port, every, AT_ONCE) for i in range(SENDERS)]
    processes = [multiprocessing.Process(target=send, args=(*job, seconds, results)) for job in jobs]
    for process in processes:
        process.start()
    answers = [results.get() for _ in processes]
    for process in processes:
        process.join()
    return ([a for tenant, took in answers if tenant == "quiet" for a in took],
            [a for tenant, took in answers if tenant != "quiet" for a in took])


def start(arguments, folder, port):
    limits = folder + "/limits"
    pathlib.Path(limits).write_text(f"noisy samples-rate={arguments.limit}\n", encoding="utf-8")
    env = dict(os.environ)
    if arguments.slow_sync:
        env.update(LD_PRELOAD=arguments.slow_sync, SLOW_SYNC_US="4000")
    node = subprocess.Popen(
        [arguments.promfabric, "ingest", "--bootstrap", f"--data={folder}/data", "--log-level=warn",
         f"--http-listen=127.0.0.1:{port}", f"--peer-listen=127.0.0.1:{free_port()}", f"--tenant-limits={limits}"],
        stdout=subprocess.DEVNULL, env=env)
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                return node
        except OSError:
            pass
        time.sleep(0.1)


def percentile(took, part):
    return sorted(took)[min(len(took) - 1, int(len(took) * part))] * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--promfabric", required=True)
    parser.add_argument("--slow-sync")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=int, default=20000)
    arguments = parser.parse_args()
    folder, port = tempfile.mkdtemp(prefix="bench-noisy-", dir="/dev/shm"), free_port()
    node = start(arguments, folder, port)
    p99 = {}
    try:
        measure(port, 3, "unlimited", arguments.limit)  # all series are known
        for _ in range(arguments.rounds):
            for mode, noisy in (("alone", None), ("limited", "noisy"), ("unlimited", "unlimited")):
                quiet, others = measure(port, arguments.seconds, noisy, arguments.limit)
                assert {status for _, status in quiet} == {204}, {status for _, status in quiet}
                took = [seconds for seconds, _ in quiet]
                p99.setdefault(mode, []).append(percentile(took, 0.99))
                taken = sum(1 for _, status in others if status == 204)
                print(f"{mode:9} quiet: {len(took)} requests, p50 {percentile(took, 0.5):.1f} ms, "
                      f"p99 {p99[mode][-1]:.1f} ms; noisy: {len(others)} requests, {taken} written, "
                      f"{taken * AT_ONCE / arguments.seconds:.0f} samples/s", flush=True)
    finally:
        node.terminate()
        node.wait()
        shutil.rmtree(folder, True)
    middle = {mode: statistics.median(values) for mode, values in p99.items()}
    print("p99, median of rounds: " + ", ".join(f"{mode} {value:.1f} ms" for mode, value in middle.items())
          + f"; limited / alone {middle['limited'] / middle['alone']:.2f}")


if __name__ == "__main__":
    main()
