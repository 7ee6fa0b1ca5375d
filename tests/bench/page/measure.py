"""measure.py - how long the page takes: first paint, first event, and drawing many series.

usage: /usr/bin/python3 tests/bench/page/measure.py BUILD-FOLDER
Needs chromium, chromium-driver and python3-selenium, as tests/integration/page does."""
import os
import pathlib
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(sys.argv[1]).resolve()
os.environ.update(PROMFABRIC_BINARY=str(BUILD / "promfabric"),
                  PROMFABRIC_LOADER=str(BUILD / "tests/integration/api/load_series"),
                  PROMFABRIC_PAGE=str(BUILD / "web/files"), PROMFABRIC_SCREENS=str(BUILD / "web"))
sys.path.insert(0, str(TOP / "tests/integration/page"))
from browser import Fabric, Page, browser, load, wait_for  # noqa: E402

HOVER = """
const box = document.querySelector('.u-over'), r = box.getBoundingClientRect(), done = arguments[0];
let times = [], i = 0;
function step() {
  const begun = performance.now();
  box.dispatchEvent(new MouseEvent('mousemove', { clientX: r.left + 40 + i * 9, clientY: r.top + 90 + i * 3,
                                                  bubbles: true }));
  requestAnimationFrame(() => setTimeout(() => {
    times.push(performance.now() - begun);
    ++i < 30 ? step() : done(times.sort((a, b) => a - b)[15]);
  }));
}
box.dispatchEvent(new MouseEvent('mouseenter', { bubbles: true }));
step();"""


def main():
    page = Page()
    page.fabric = Fabric(2, ("--small-scan=50ms",))
    load(page.fabric.store, [f'wide{{n="{i}"}} {i}+1x480' for i in range(5000)], shards=4)
    page.fabric.wait_workers(2)
    page.browser = browser()
    page.browser.set_script_timeout(60)
    run = page.browser.execute_script
    try:
        page.open()
        page.editor()
        page.open()
        time.sleep(1)
        print("first paint: %.0f ms" % run(
            "return performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        print("first event: %.1f ms" % page.browser.execute_async_script("""
            const done = arguments[0], begun = performance.now();
            fetch('/api/v1/metrics/query', { method: 'POST', headers: { 'Content-Type': 'application/json' },
                  body: JSON.stringify({ q: 'vector(1)', explain: true }) })
              .then(a => a.body.getReader().read()).then(() => done(performance.now() - begun))"""))
        for count in (1000, 5000):
            page.open(f'wide{{n=~"{"[0-9]{1,3}" if count == 1000 else ".*"}"}}',
                      **{"g0.step_input": "12"})
            page.await_text("status", f"{count} series")
            wait_for("the graph", lambda: run(
                "return +document.querySelector('.plot')?.dataset.series") == count)
            # Drawn anew, as a zoom or a new answer would.
            run("document.querySelector(\"[data-testid='view-table']\").click()")
            time.sleep(0.5)
            run("document.querySelector(\"[data-testid='view-graph']\").click()")
            time.sleep(3)
            print("%d series x 301 points: %s; drawn in %s ms; hover (median) %.1f ms" % (
                count, page.find("status").text, run("return document.querySelector('.plot').dataset.drawMs"),
                page.browser.execute_async_script(HOVER)))
    finally:
        page.browser.quit()
        page.fabric.close()


if __name__ == "__main__":
    main()
