"""kills.py - a process is killed at a moment that can be seen."""
import time

TIMEOUT = 120


def kill_when(process, happened):
    """Kill it as soon as happened() is true, unless it ended before; what it said on stderr."""
    end = time.monotonic() + TIMEOUT
    while process.poll() is None and not happened():
        if time.monotonic() > end:
            raise AssertionError("timed out waiting for the moment to kill it")
    process.kill()
    return process.communicate()[1]
