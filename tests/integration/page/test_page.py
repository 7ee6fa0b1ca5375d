"""test_page.py - the page in a real browser: what it shows, what it refuses, how large it is."""
import json
import os
import pathlib
import sys
import time
import unittest
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
from harness import START, Fabric, load, standard_lines, wait_for  # noqa: E402

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
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
LONG = "sum(quantile_over_time(0.9, rate(http_requests_total[5m])[2h:1s]))"


def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                 "--window-size=1280,1000"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service(DRIVER), options=options)


class Page(unittest.TestCase):
    """One fabric and one browser; each test loads the page anew and ends without a complaint."""
    api_flags = ()
    expected = ()  # complaints of the browser that are no fault

    @classmethod
    def setUpClass(cls):
        SCREENS.mkdir(parents=True, exist_ok=True)
        cls.fabric = Fabric(2, cls.api_flags, ("--work-samples-max=1000000000000",))
        cls.addClassCleanup(cls.fabric.close)
        label = json.dumps(MARKUP)
        load(cls.fabric.store, standard_lines() + [f"odd{{v={label}}} NaN Inf 1x240",
                                                   'rtl{v="\u05d0\u05d1\u05d2"} 1x240'], shards=4)
        cls.fabric.wait_workers(2)
        cls.browser = browser()
        cls.addClassCleanup(cls.browser.quit)

    def tearDown(self):
        complaints = [entry["message"] for entry in self.browser.get_log("browser")
                      if entry["level"] in ("SEVERE", "WARNING")
                      and not any(text in entry["message"] for text in self.expected)]
        self.assertEqual(complaints, [])
        self.assertEqual(self.browser.execute_script("return window.violations ?? []"), [])

    # --- what the tests do with the page ---

    def open(self, expr=None, view="graph", path="/graph", **params):
        search = {"g0.range_input": "1h", "g0.end_input": time.strftime(
            "%Y-%m-%d %H:%M:%S", time.gmtime(END)), "g0.step_input": "60", "g0.tab": view, **params}
        if expr is not None:
            search["g0.expr"] = expr
        self.browser.get(f"http://127.0.0.1:{self.fabric.api_port}{path}?"
                         + urllib.parse.urlencode(search, quote_via=urllib.parse.quote))
        self.browser.execute_script(
            "window.violations = []; addEventListener('securitypolicyviolation', "
            "e => window.violations.push(e.violatedDirective + ' ' + e.blockedURI))")

    def find(self, name):
        found = self.browser.find_elements(By.CSS_SELECTOR, f"[data-testid='{name}']")
        return found[0] if found else None

    def await_text(self, name, text):
        """Read in one step: the page may replace an element between two."""
        def look():
            shown = self.browser.execute_script(
                "return document.querySelector(`[data-testid='${arguments[0]}']`)?.innerText", name)
            return shown if shown and text in shown else None
        return wait_for(f"{text!r} in {name}", look, 40)

    def editor(self):
        """What takes keys in the editor, once it is there."""
        host = wait_for("the editor", lambda: self.find("editor-0"))
        return wait_for("its field", lambda: self.browser.execute_script(
            "return arguments[0].shadowRoot?.querySelector('.cm-content')", host))

    def in_editor(self, selector):
        return self.browser.execute_script(
            "return [...document.querySelector(\"[data-testid='editor-0']\").shadowRoot"
            ".querySelectorAll(arguments[0])].map(e => e.textContent)", selector)

    def rows(self):
        """{series: last value} of the table."""
        return dict(self.browser.execute_script(
            "return [...document.querySelectorAll(\"[data-testid='table'] tbody tr\")]"
            ".map(r => [r.children[0].textContent, r.children[1].textContent])"))

    def screen(self, name):
        self.browser.save_screenshot(str(SCREENS / (name + ".png")))

    def last_values(self, expr):
        return sorted(series["values"][-1][1] for series in self.fabric.query_range(
            expr, START, END, 60)["result"])


class Plain(Page):
    def test_a_link_of_prometheus_lands_on_its_query(self):
        for path in ("/graph", "/query", "/"):
            self.open("sum by (job) (rate(http_requests_total[5m]))", path=path)
            self.await_text("status", " series, ")
            wait_for("lines", lambda: self.browser.execute_script(
                "return +document.querySelector(`[data-testid='plot']`)?.dataset.series > 0"))
        self.assertIn("sum by (job)", self.editor().text)
        self.screen("graph")

    def test_the_table_has_the_values_of_the_api(self):
        expr = "sum by (job) (rate(http_requests_total[5m]))"
        self.open(expr, "1")  # Prometheus's number of its table
        self.await_text("status", " series, ")
        rows = self.rows()
        self.assertEqual(sorted(float(value) for value in rows.values()),
                         sorted(float(value) for value in self.last_values(expr)))
        self.assertTrue(all("job=" in name for name in rows))
        self.screen("table")

    def test_values_of_the_graph_are_those_of_the_api(self):
        """What was drawn, read back as the page would save it."""
        self.open("temperature")
        self.await_text("status", " series, ")
        self.browser.execute_script(
            "window.saved = []; URL.createObjectURL = b => (b.text().then(t => saved.push(t)), '#')")
        next(b for b in self.browser.find_elements(By.TAG_NAME, "button") if b.text == "JSON").click()
        saved = json.loads(wait_for("the file", lambda: self.browser.execute_script(
            "return window.saved[0]")))
        want = {json.dumps(s["metric"], sort_keys=True): [float(v) for _, v in s["values"]]
                for s in self.fabric.query_range("temperature", START, END, 60)["result"]}
        got = {json.dumps(s["labels"], sort_keys=True): [v for v in s["values"] if v is not None]
               for s in saved[0]["series"]}
        self.assertEqual(got, want)
        self.assertTrue(want)

    def test_typing_completes_and_enter_runs(self):
        self.open()
        field = self.editor()
        field.click()
        field.send_keys("tempe")
        wait_for("completion", lambda: "temperature" in "".join(
            self.in_editor(".cm-tooltip-autocomplete li")))
        time.sleep(0.3)  # the editor ignores keys that come too soon after its list
        field.send_keys(Keys.ENTER)
        wait_for("the name", lambda: field.text.strip() == "temperature")
        field.send_keys(Keys.ENTER)
        self.await_text("status", " series, ")
        self.assertIn("g0.expr=temperature", self.browser.current_url)

    def test_an_error_is_said_and_marked(self):
        self.open("sum(rate(http_requests_total[5m])")
        self.await_text("error", "parse error: unclosed left parenthesis")
        wait_for("its mark", lambda: self.in_editor(".cm-lintRange-error"))
        self.screen("error")

    def test_markup_in_labels_is_text(self):
        self.open("odd or rtl", "table")
        self.await_text("status", "2 series")
        name = next(row for row in self.rows() if row.startswith("odd"))
        self.assertIn("<img src=x onerror=", name)
        self.assertEqual(self.browser.find_elements(By.CSS_SELECTOR, "main img, main b b"), [])
        self.find("view-graph").click()
        wait_for("the legend", lambda: "<img" in self.browser.find_element(
            By.CSS_SELECTOR, ".legend").text)
        self.assertEqual(self.browser.find_elements(By.CSS_SELECTOR, "main img"), [])
        self.assertEqual(self.browser.title, "Promfabric")

    def test_explain_shows_every_work_item_and_the_receipt(self):
        self.open("sum(rate(http_requests_total[5m])) / count(temperature)", "explain")
        self.await_text("receipt", "checksum")
        rows = self.browser.find_elements(By.CSS_SELECTOR, "[data-testid='plan'] tr.work")
        planned = self.fabric.data("/api/v1/explain", {
            "query": "sum(rate(http_requests_total[5m])) / count(temperature)",
            "start": START, "end": END, "step": 60})
        self.assertEqual(len(rows), len(planned["works"]))
        for row in rows:
            self.assertIn("fetched", row.text)
            self.assertRegex(row.text, "worker-[01]")
        self.screen("explain")

    def test_escape_cancels_and_reaches_the_workers(self):
        self.open(LONG, "explain", **{"g0.range_input": "3h", "g0.step_input": "1"})
        wait_for("work", lambda: self.fabric.scaling()["work"]["running"] > 0)
        self.await_text("explain", "accepted")
        self.screen("running")
        self.editor().send_keys(Keys.ESCAPE)
        self.await_text("error", "canceled")
        wait_for("idle workers", lambda: self.fabric.scaling()["work"]["inflight"] == 0)

    def test_every_tab_in_light_and_dark(self):
        self.open()
        for tab, text in (("fabric", "worker-1"), ("metrics", "temperature"), ("queries", "Running")):
            self.find("tab-" + tab).click()
            wait_for(tab, lambda: self.find(tab))
            self.await_text(tab, text)
            self.screen(tab)
        light = self.browser.execute_script("return getComputedStyle(document.body).color")
        self.find("theme").send_keys("dark")
        wait_for("the dark", lambda: self.browser.execute_script(
            "return getComputedStyle(document.body).color") != light)
        self.find("tab-query").click()
        self.open("temperature")
        self.await_text("status", " series, ")
        self.screen("dark")
        self.browser.execute_script("localStorage.clear()")

    def test_a_narrow_window_has_no_sideways_scroll(self):
        self.browser.set_window_size(420, 800)
        self.addCleanup(self.browser.set_window_size, 1280, 1000)
        self.open("temperature")
        self.await_text("status", " series, ")
        wide = self.browser.execute_script(
            "return [document.documentElement.scrollWidth, innerWidth]")
        self.screen("narrow")
        self.assertLessEqual(wide[0], wide[1])


class Served(unittest.TestCase):
    """The files themselves, without a browser."""
    @classmethod
    def setUpClass(cls):
        cls.fabric = Fabric(1)
        cls.addClassCleanup(cls.fabric.close)

    def test_sizes(self):
        sizes = {path.name: path.stat().st_size for path in FILES.glob("*.gz")}
        html = (FILES / "index.html").read_text()
        shell = sum(size for name, size in sizes.items()
                    if name[:-3] in html or name.startswith(("chunk", "index")))
        self.assertLess(shell, 40 << 10, sizes)
        self.assertLess(sum(size for name, size in sizes.items() if "licences" not in name),
                        200 << 10, sizes)

    def test_names_with_hashes_are_immutable_and_the_index_is_not(self):
        status, headers, body = self.fabric.get("/")
        self.assertEqual(status, 200)
        self.assertEqual(headers["Cache-Control"], "no-cache")
        self.assertIn("script-src 'self'", headers["Content-Security-Policy"])
        self.assertIn("trusted-types 'none'", headers["Content-Security-Policy"])
        self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
        self.assertEqual(headers["Referrer-Policy"], "no-referrer")
        again = self.fabric.get("/graph", headers={"If-None-Match": headers["ETag"]})
        self.assertEqual((again[0], again[2]), (304, b""))
        for path in FILES.glob("*-*.js"):
            status, headers, body = self.fabric.get("/assets/" + path.name)
            self.assertEqual((status, body), (200, path.read_bytes()))
            self.assertIn("immutable", headers["Cache-Control"])
            self.assertTrue(headers["Content-Type"].startswith("text/javascript"))
            packed = self.fabric.get("/assets/" + path.name, headers={"Accept-Encoding": "gzip"})
            self.assertEqual(packed[1]["Content-Encoding"], "gzip")
            self.assertEqual(packed[2], path.with_name(path.name + ".gz").read_bytes())
        self.assertIn(b"MIT", self.fabric.get("/assets/licences.txt")[2])
        for path in ("/assets/index.html", "/assets/nothing.js", "/assets/../api"):
            self.assertEqual(self.fabric.get(path)[0], 404, path)

    def test_other_sites_may_link_but_not_ask(self):
        foreign = {"Sec-Fetch-Site": "cross-site"}
        self.assertEqual(self.fabric.get("/graph?g0.expr=up", headers=foreign)[0], 200)
        self.assertEqual(self.fabric.get("/api/v1/query?query=1", headers=foreign)[0], 403)
        for site in ("same-origin", "none"):
            self.assertEqual(self.fabric.get("/api/v1/query?query=1",
                                             headers={"Sec-Fetch-Site": site})[0], 200)


class Keyed(Page):
    expected = ("401",)

    @classmethod
    def setUpClass(cls):
        cls.keys = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"pf-page-keys-{os.getpid()}"
        cls.keys.write_text("secret *\n")
        cls.keys.chmod(0o600)
        cls.addClassCleanup(cls.keys.unlink)
        cls.api_flags = (f"--api-keys={cls.keys}",)
        super().setUpClass()

    def test_the_page_asks_for_the_key_it_needs(self):
        self.open("temperature")
        form = wait_for("the form", lambda: self.find("key-form"))
        form.find_element(By.TAG_NAME, "input").send_keys("secret" + Keys.ENTER)
        self.await_text("status", " series, ")
        self.assertNotIn("secret", self.browser.current_url)
        self.assertEqual(self.browser.execute_script("return Object.values(localStorage).join()")
                         .count("secret"), 0)


if __name__ == "__main__":
    unittest.main()
