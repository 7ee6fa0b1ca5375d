"""measure.py - how long the page takes: first paint, first event, and drawing many series.

usage: /usr/bin/python3 tests/bench/page/measure.py BUILD-FOLDER
Needs chromium, chromium-driver and python3-selenium, as tests/integration/page does."""
import os
import pathlib
import socket
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(sys.argv[1]).resolve()
os.environ.update(PROMFABRIC_BINARY=str(BUILD / "promfabric"),
                  PROMFABRIC_LOADER=str(BUILD / "tests/integration/api/load_series"),
                  PROMFABRIC_PAGE=str(BUILD / "web/files"), PROMFABRIC_SCREENS=str(BUILD / "web"))
sys.path.insert(0, str(TOP / "tests/integration/page"))
from browser import Fabric, Page, browser, load  # noqa: E402

HOVER = """
const box = document.querySelector('.u-over'), r = box.getBoundingClientRect(), done = arguments[0];
let work = [], frames = [], i = 0;
function step() {
  const begun = performance.now();
  box.dispatchEvent(new MouseEvent('mousemove', { clientX: r.left + 40 + i * 9, clientY: r.top + 90 + i * 3,
                                                  bubbles: true }));
  requestAnimationFrame(() => {
    work.push(performance.now() - begun);
    setTimeout(() => { frames.push(performance.now() - begun); ++i < 60 ? step() : done([work, frames]); });
  });
}
box.dispatchEvent(new MouseEvent('mouseenter', { bubbles: true }));
step();"""
FIRST_EVENT = """
const done = arguments[0], begun = performance.now();
fetch('/api/v1/metrics/query', { method: 'POST', headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ q: 'vector(1)', explain: true }) })
  .then(a => a.body.getReader().read()).then(() => done(performance.now() - begun))"""


def say(what, times):
    """The least of many is what it takes when nothing else runs; the median is what this machine gave."""
    times = sorted(times)
    print("%s: least %.1f ms, median %.1f ms of %d" % (what, times[0], times[len(times) // 2], len(times)))


def first_byte(port):
    """Without a browser: from the request to the first event."""
    body = b'{"q":"vector(1)","explain":true}'
    with socket.create_connection(("127.0.0.1", port)) as connection:
        begun = time.perf_counter()
        connection.sendall(b"POST /api/v1/metrics/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json"
                           b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        seen = b""
        while b"data: " not in seen:
            seen += connection.recv(65536)
        return (time.perf_counter() - begun) * 1000


def drawn(page, count):
    """Drawn anew, as a zoom or a new answer would."""
    times = []
    for _ in range(5):
        page.run_script("document.querySelector(\"[data-testid='view-table']\").click()")
        time.sleep(0.3)
        page.run_script("document.querySelector(\"[data-testid='view-graph']\").click()")
        page.await_lines(count)
        times.append(float(page.run_script("return document.querySelector('.plot').dataset.drawMs")))
        time.sleep(0.5)
    return times


def main():
    page = Page()
    page.fabric = Fabric(2, ("--small-scan=50ms",))
    load(page.fabric.store, [f'wide{{n="{i}"}} {i}+1x480' for i in range(5000)], shards=4)
    page.fabric.wait_workers(2)
    page.browser = browser()
    page.browser.set_script_timeout(60)
    try:
        paints = []
        for _ in range(12):
            page.open()
            page.editor()
            paints.append(page.run_script(
                "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime"))
        say("first paint", [paint for paint in paints[1:] if paint])
        say("first event, in the browser", [page.browser.execute_async_script(FIRST_EVENT)
                                            for _ in range(40)])
        say("first event, on a socket", [first_byte(page.fabric.api_port) for _ in range(200)])
        for count in (1000, 5000):
            page.open(f'wide{{n=~"{"[0-9]{1,3}" if count == 1000 else ".*"}"}}',
                      **{"g0.step_input": "12"})
            page.await_text("status", f"{count} series", 90)
            page.await_lines(count)
            say(f"{count} series x 301 points, to draw", drawn(page, count))
            work, frames = page.browser.execute_async_script(HOVER)
            say(f"moving over {count} series, work", work)
            say(f"moving over {count} series, to the next frame", frames)
    finally:
        page.browser.quit()
        page.fabric.close()


if __name__ == "__main__":
    main()
