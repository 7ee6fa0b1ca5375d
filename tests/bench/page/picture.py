"""picture.py - a picture of the page: demo data, a query, its plan as it was run.

usage: picture.py PROMFABRIC FILE.png      (scripts/picture calls it)"""
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

BINARY, FILE = sys.argv[1], sys.argv[2]
END = 1767225600  # 2026-01-01 00:00 UTC
QUERY = ("histogram_quantile(0.9, sum by (job, le) (rate(http_request_duration_seconds_bucket[5m])))\n"
         "  > on (job) group_left avg by (job) (process_load) / 100")
WIDTH, HEIGHT = 1280, 900


def wait_for(what, look, seconds=60):
    until = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > until:
            raise SystemExit(f"picture: timed out waiting for {what}")
        time.sleep(0.1)
    return found


def address(log):
    return wait_for("the API", lambda: re.search(r"is up: (http://127\.0\.0\.1:\d+)", log.read_text()))[1]


def take(url):
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars",
                 f"--window-size={WIDTH},{HEIGHT}"):
        options.add_argument(flag)
    browser = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    try:
        browser.set_window_size(WIDTH, HEIGHT + 139)  # headless windows have a bar that is not shown
        search = {"g0.expr": QUERY, "g0.range_input": "5h", "g0.tab": "explain", "g0.end_input":
                  time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(END))}
        for _ in range(2):  # the second time caches are warm
            browser.get(url + "/graph?" + urllib.parse.urlencode(search))
            wait_for("the receipt", lambda: browser.execute_script(
                "return document.querySelector(`[data-testid='receipt']`)?.innerText.includes('checksum')"))
        time.sleep(1)
        browser.save_screenshot(FILE)
    finally:
        browser.quit()


def main():
    with tempfile.TemporaryDirectory(prefix="pf-picture-") as folder:
        store, log = folder + "/store", pathlib.Path(folder) / "log"
        subprocess.run([BINARY, "demo-data", "--quiet", f"--store={store}", f"--end={END}"], check=True,
                       stdout=subprocess.DEVNULL)
        with log.open("wb") as out:
            fabric = subprocess.Popen([BINARY, "up", f"--store={store}", "--http-listen=127.0.0.1:0",
                                       "--workers=3", "--ingest-nodes=0", f"--state={folder}/state"], stdout=out, stderr=out)
        try:
            take(address(log))
        finally:
            fabric.terminate()
            fabric.wait(30)
    print(f"picture: {FILE}, {pathlib.Path(FILE).stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
