"""browser.py - the page in a real browser, for the tests of this folder: one fabric and one Chromium per class."""
import json
import os
import pathlib
import struct
import sys
import time
import unittest
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
from harness import BINARY, LONG, START, Fabric, load, standard_lines, wait_for  # noqa: E402

try:
    from selenium import webdriver
    from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
    from selenium.webdriver import ActionChains
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select
except ImportError:
    print("skipped: no python3-selenium (scripts/setup --tests installs it)")
    sys.exit(77)
CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
if not (os.path.exists(CHROMIUM) and os.path.exists(DRIVER)):
    print("skipped: no chromium and chromium-driver (scripts/setup --tests installs them)")
    sys.exit(77)
FILES = pathlib.Path(os.environ["PROMFABRIC_PAGE"])
if not FILES.exists():
    print("skipped: built without the page")
    sys.exit(77)
SCREENS = pathlib.Path(os.environ["PROMFABRIC_SCREENS"])

END = START + 3600
MARKUP = "<img src=x onerror=\"document.title='owned'\"><b>bold</b>"


def browser(width=1280, height=1000):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                 f"--window-size={width},{height}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(DRIVER), options=options)


class Page(unittest.TestCase):
    """Each test loads the page anew and ends without a complaint."""
    api_flags = ()
    worker_flags = ("--work-samples-max=1000000000000",)
    expected = ()  # complaints of the browser that are no fault

    @classmethod
    def lines(cls):
        return standard_lines() + [f"odd{{v={json.dumps(MARKUP)}}} NaN Inf 1x240",
                                   'rtl{v="\u05d0\u05d1\u05d2",w="1 \u05d3 2",x="\u202eabc",y="end"} 1x240']

    @classmethod
    def setUpClass(cls):
        SCREENS.mkdir(parents=True, exist_ok=True)
        cls.fabric = Fabric(2, cls.api_flags, cls.worker_flags)
        cls.addClassCleanup(cls.fabric.close)
        load(cls.fabric.store, cls.lines(), shards=4)
        cls.fabric.wait_workers(2)
        cls.browser = browser()
        cls.addClassCleanup(cls.browser.quit)

    def tearDown(self):
        complaints = [entry["message"] for entry in self.browser.get_log("browser")
                      if entry["level"] in ("SEVERE", "WARNING")
                      and not any(text in entry["message"] for text in self.expected)]
        self.assertEqual(complaints, [])
        self.assertEqual(self.run_script("return window.violations ?? []"), [])

    # --- what the tests do with the page ---

    def run_script(self, script, *args):
        return self.browser.execute_script(script, *args)

    def open(self, expr=None, view="graph", path="/graph", **params):
        search = {"g0.range_input": "1h", "g0.end_input": time.strftime(
            "%Y-%m-%d %H:%M:%S", time.gmtime(END)), "g0.step_input": "60", "g0.tab": view, **params}
        for i, one in enumerate([expr] if isinstance(expr, str) else expr or ()):
            search[f"g{i}.expr"] = one
        self.browser.get(f"http://127.0.0.1:{self.fabric.api_port}{path}?"
                         + urllib.parse.urlencode(search, quote_via=urllib.parse.quote))
        self.run_script(
            "window.violations = []; addEventListener('securitypolicyviolation', "
            "e => window.violations.push(e.violatedDirective + ' ' + e.blockedURI))")

    def find(self, name):
        found = self.browser.find_elements(By.CSS_SELECTOR, f"[data-testid='{name}']")
        return found[0] if found else None

    def click(self, name):
        wait_for(name, lambda: self.find(name)).click()

    def press(self, label):
        """The button that says @label."""
        next(b for b in self.browser.find_elements(By.TAG_NAME, "button") if b.text.split("\n")[0] == label).click()

    def shown(self, name):
        """Read in one step: the page may replace an element between two."""
        return self.run_script(
            "return document.querySelector(`[data-testid='${arguments[0]}']`)?.innerText", name) or ""

    def await_text(self, name, text, timeout=40):
        def look():
            shown = self.shown(name)
            return shown if text in shown else None
        return wait_for(f"{text!r} in {name}", look, timeout)

    def await_lines(self, count):
        wait_for(f"{count} lines", lambda: self.run_script(
            "return document.querySelector('.u-over') && +document.querySelector(`[data-testid='plot']`)?.dataset.series")
                 == count, 40)

    def editor(self, index=0):
        """What takes keys in the editor, once it is there."""
        host = wait_for("the editor", lambda: self.find(f"editor-{index}"))
        return wait_for("its field", lambda: self.run_script(
            "return arguments[0].shadowRoot?.querySelector('.cm-content')", host))

    def in_editor(self, selector):
        return self.run_script(
            "return [...document.querySelector(\"[data-testid='editor-0']\").shadowRoot"
            ".querySelectorAll(arguments[0])].map(e => e.textContent)", selector)

    def rows(self):
        """{series: last value} of the table."""
        return dict(self.run_script(
            "return [...document.querySelectorAll(\"[data-testid='table'] tbody tr\")]"
            ".map(r => [r.children[0].textContent, r.children[1].textContent])"))

    def saved(self, label):
        """The text of the file that the button @label saves."""
        self.run_script(
            "window.saved = []; URL.createObjectURL = b => (b.text().then(t => saved.push(t)), '#')")
        self.press(label)
        return wait_for("the file", lambda: self.run_script("return window.saved[0]"))

    def picture(self):
        """The bytes of the file that PNG saves, and its width and height."""
        self.run_script(
            "window.saved = []; URL.createObjectURL = b => (new Response(b).arrayBuffer().then("
            "a => saved.push([b.type, [...new Uint8Array(a)]])), '#')")
        self.press("PNG")
        kind, data = wait_for("the file", lambda: self.run_script("return window.saved[0]"))
        data = bytes(data)
        self.assertEqual((kind, data[:8], data[12:16]), ("image/png", b"\x89PNG\r\n\x1a\n", b"IHDR"))
        return data, *struct.unpack(">II", data[16:24])

    def screen(self, name):
        self.browser.save_screenshot(str(SCREENS / (name + ".png")))

    def last_values(self, expr):
        return sorted(series["values"][-1][1] for series in self.fabric.query_range(
            expr, START, END, 60)["result"])
