"""test_page.py - the page in a real browser: every tab and control, and what it shows."""
import json
import re
import time
import unittest

from browser import (END, FILES, LONG, SCREENS, START, ActionChains, By, Fabric, Keys,
                     NoSuchElementException, Page, Select, StaleElementReferenceException, load, wait_for)

ALL = Keys.CONTROL + "a" + Keys.NULL  # chooses all of a field


class Asking(Page):
    def test_a_link_of_prometheus_lands_on_its_query(self):
        for path in ("/graph", "/query", "/"):
            self.open("sum by (job) (rate(http_requests_total[5m]))", path=path)
            self.await_text("status", " series, ")
            self.await_lines(2)
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
        self.find("table-filter").send_keys("web")
        self.await_text("table", "web")
        wait_for("one row", lambda: len(self.rows()) == 1)
        self.screen("table")

    def test_values_of_the_graph_are_those_of_the_api(self):
        """What was drawn, read back as the page would save it."""
        self.open("temperature")
        self.await_text("status", " series, ")
        saved = json.loads(self.saved("JSON"))
        want = {json.dumps(s["metric"], sort_keys=True): [float(v) for _, v in s["values"]]
                for s in self.fabric.query_range("temperature", START, END, 60)["result"]}
        got = {json.dumps(s["labels"], sort_keys=True): [v for v in s["values"] if v is not None]
               for s in saved[0]["series"]}
        self.assertEqual(got, want)
        self.assertTrue(want)
        lines = self.saved("CSV").splitlines()
        self.assertEqual(len(lines), 1 + sum(len(values) for values in want.values()))
        self.assertEqual(lines[0], "series,time,value")

    def test_typing_completes_and_enter_runs(self):
        self.open()
        field = self.editor()
        field.click()
        field.send_keys("tempe")
        self.complete(field, "temperature")
        field.send_keys(Keys.ENTER)
        self.await_text("status", " series, ")
        self.assertIn("g0.expr=temperature", self.browser.current_url)

    def complete(self, field, name):
        """Take @name from the list. A key that comes too soon after the list, or after it changed, is not for the
        list; when that is hangs on the machine: then the last letter is written again."""
        for _ in range(10):
            wait_for("completion", lambda: name in "".join(self.in_editor(".cm-tooltip-autocomplete li")))
            time.sleep(0.3)
            field.send_keys(Keys.ENTER)
            try:
                return wait_for("the name", lambda: field.text.strip() == name, 5)
            except AssertionError:
                field.send_keys(Keys.BACKSPACE + name[len(field.text.strip()) - 1])
        return self.fail(f"{name} could not be taken from the list")

    def test_the_mouse_over_a_function_tells_what_it_does(self):
        self.open("rate(http_requests_total[5m])", "table")
        self.await_text("status", " series, ")
        field = self.editor()
        ActionChains(self.browser).move_to_element_with_offset(
            field, -field.size["width"] // 2 + 12, 0).perform()
        wait_for("its manual", lambda: "per-second" in "".join(self.in_editor(".cm-word")))

    def test_an_error_is_said_and_marked(self):
        self.open("sum(rate(http_requests_total[5m])")
        self.await_text("error", "parse error: unclosed left parenthesis")
        wait_for("its mark", lambda: self.in_editor(".cm-lintRange-error"))
        self.screen("error")

    def test_what_was_asked_comes_back(self):
        for expr in ("temperature", "up"):
            self.open(expr, "table")
            self.await_text("status", " series, ")
        field = self.editor()
        field.send_keys(Keys.CONTROL + Keys.ARROW_UP + Keys.NULL)
        field.send_keys(Keys.CONTROL + Keys.ARROW_UP + Keys.NULL)
        wait_for("the query before", lambda: field.text.strip() == "temperature")
        field.send_keys(Keys.ENTER)
        self.await_text("status", "12 series")
        self.browser.back()
        wait_for("the address before", lambda: "g0.expr=up" in self.browser.current_url)
        self.await_text("status", "2 series")
        self.assertEqual(self.editor().text.strip(), "up")

    def test_several_expressions_are_one_graph(self):
        self.open(["up", "sum(temperature)"])
        self.await_lines(3)
        self.click("add")
        field = self.editor(2)
        field.send_keys("count(up)" + Keys.ESCAPE + Keys.ENTER)
        self.await_lines(4)
        self.assertIn("g2.expr=count", self.browser.current_url)
        self.screen("several")
        self.press("✕")  # the first one
        wait_for("two editors", lambda: not self.find("editor-2"))

    def test_range_step_and_moment(self):
        self.open("up")
        self.await_lines(2)
        for name, text, found in (("range", "30m", "g0.range_input=30m"),
                                  ("step", "30", "g0.step_input=30"),
                                  ("until", "1700003000", "g0.end_input=2023-11-14+23%3A03%3A20")):
            field = self.find(name)
            field.send_keys(ALL + text + Keys.ENTER)
            wait_for(found, lambda: found in self.browser.current_url)
            self.await_text("status", " series, ")
        saved = json.loads(self.saved("JSON"))[0]
        self.assertEqual((saved["step_ms"], len(saved["series"][0]["values"])), (30000, 61))
        field = self.find("range")
        field.send_keys(ALL + "soon" + Keys.ENTER)
        wait_for("the old range", lambda: field.get_property("value") == "30m")

    def test_earlier_later_now_shorter_and_longer(self):
        """Each button, by what the page then asks for."""
        def asked(start, seconds):
            """The old answer stays until there is a new one."""
            def look():
                saved = json.loads(self.saved("JSON"))[0]
                length = (len(saved["series"][0]["values"]) - 1) * saved["step_ms"]
                return (saved["start_ms"] // 1000, length // 1000) == (start, seconds)
            wait_for(f"{seconds} s from {start}", look)

        def press(name, found):
            self.browser.find_element(By.CSS_SELECTOR, f"[aria-label='{name}']").click()
            wait_for(found, lambda: found in self.browser.current_url)
        self.open("temperature")
        self.await_lines(12)
        asked(START, 3600)
        press("Earlier", "g0.end_input=2023-11-14+22%3A50%3A00")
        asked(START - 1800, 3600)
        press("Later", "g0.end_input=2023-11-14+23%3A20%3A00")
        asked(START, 3600)
        press("Shorter range", "g0.range_input=15m")
        asked(END - 900, 900)
        press("Longer range", "g0.range_input=1h")
        press("Longer range", "g0.range_input=3h")
        asked(END - 10800, 10800)
        self.press("Now")
        wait_for("no end", lambda: "end_input" not in self.browser.current_url)
        self.assertEqual(self.find("until").get_property("value"), "now")
        self.await_text("status", "No series match")

    def test_controls_stay_where_they_are_while_a_query_runs(self):
        """A button that moves under the mouse between down and up is not pressed."""
        def place(running):
            self.await_text("run", "Cancel" if running else "Run")
            return self.browser.find_element(By.CSS_SELECTOR, "[aria-label='Longer range']").rect
        self.open("up")
        self.await_lines(2)
        idle = place(False)
        self.open(LONG)
        self.assertEqual(place(True), idle)
        ActionChains(self.browser).send_keys(Keys.ESCAPE).perform()
        self.assertEqual(place(False), idle)

    def test_a_picture_of_the_graph_says_what_it_shows(self):
        self.open("temperature")
        self.await_lines(12)
        data, width, height = self.picture()
        plot = self.run_script("const c = document.querySelector('.plot canvas'); return [c.width, c.height]")
        self.assertGreater(width, plot[0])
        self.assertGreater(height, plot[1] + 12 * 18)  # a row for each series
        (SCREENS / "picture.png").write_bytes(data)
        # Opaque, with the paper's colour at its edge and lines in it, as the browser reads it back.
        edge, kinds = self.browser.execute_async_script("""
            const [bytes, done] = arguments;
            createImageBitmap(new Blob([new Uint8Array(bytes)])).then((image) => {
              const canvas = new OffscreenCanvas(image.width, image.height), pen = canvas.getContext("2d");
              pen.drawImage(image, 0, 0);
              const all = pen.getImageData(0, 0, image.width, image.height).data, kinds = new Set();
              for (let i = 0; i < all.length; i += 4) kinds.add(all.slice(i, i + 4).join());
              done([[...all.slice(0, 4)], [...kinds].filter((kind) => !kind.endsWith(",255")).length * 1e6 + kinds.size]);
            });""", list(data))
        self.assertEqual(edge, [255, 255, 255, 255])
        self.assertTrue(12 < kinds < 1e6, kinds)  # many colours, none of them see-through
        # One that is hidden is not in the picture.
        self.press_legend("i3")
        wait_for("a row less", lambda: self.picture()[2] < height)

    def test_tabs_stay_where_they_are(self):
        """Whichever is chosen, and bold."""
        self.open("temperature")
        self.await_lines(12)

        def places():
            return self.run_script("return [...document.querySelectorAll(\"[role='tab']\")].map("
                                   "b => [b.innerText, b.getBoundingClientRect().left])")

        before = places()
        self.assertEqual(len(before), 7)
        self.click("view-explain")
        wait_for("the plan", lambda: self.find("view-explain").get_attribute("aria-selected") == "true")
        self.assertEqual(places(), before)
        self.click("tab-fabric")
        wait_for("the fabric", lambda: self.find("tab-fabric").get_attribute("aria-selected") == "true")
        self.assertEqual(places(), before[:4])

    def test_dragging_zooms_and_a_double_click_widens(self):
        self.open("temperature")
        self.await_lines(12)
        over = self.browser.find_element(By.CSS_SELECTOR, ".u-over")
        ActionChains(self.browser).move_to_element_with_offset(over, -200, 0).click_and_hold() \
            .move_by_offset(200, 0).release().perform()
        zoomed = wait_for("a shorter range", lambda: re.search(
            r"g0\.range_input=(\d+)m", self.browser.current_url))
        self.assertLess(int(zoomed[1]), 30)
        self.await_text("status", " series, ")
        self.double_click_graph()
        wait_for("a longer range", lambda: zoomed[0] not in self.browser.current_url)

    def double_click_graph(self):
        """The graph may be drawn anew between finding and clicking: then on the new one."""
        def clicked():
            try:
                over = self.browser.find_element(By.CSS_SELECTOR, ".u-over")
                ActionChains(self.browser).move_to_element(over).double_click().perform()
            except (NoSuchElementException, StaleElementReferenceException):
                return False
            return True

        wait_for("a graph to click", clicked)

    def test_the_mouse_over_the_graph_shows_the_nearest_value(self):
        self.open("temperature")
        self.await_lines(12)
        over = self.browser.find_element(By.CSS_SELECTOR, ".u-over")
        ActionChains(self.browser).move_to_element_with_offset(over, 10, 30).perform()
        tip = wait_for("the tip", lambda: self.run_script(
            "return document.querySelector('.tip')?.innerText"))
        self.assertRegex(tip, r"(?s)\d.*temperature.*instance")
        self.press_legend("i3")
        wait_for("a line less", lambda: self.run_script(
            "return document.querySelectorAll('.legend [aria-pressed=false]').length") == 1)

    def press_legend(self, text):
        next(b for b in self.browser.find_elements(By.CSS_SELECTOR, ".legend button")
             if text in b.text).click()

    def test_a_zone_and_a_tenant_can_be_chosen(self):
        self.open("up", "table")
        self.await_text("status", " series, ")
        for zone, text in (("utc", "2023-11-14 23:20:00Z"), ("Asia/Tokyo", "2023-11-15 08:20:00"),
                           ("America/St_Johns", "2023-11-14 19:50:00")):
            Select(self.find("zone")).select_by_value(zone)
            wait_for(text, lambda: self.find("until").get_property("value") == text)
            self.assertIn(text, self.shown("table"))
        # A time that is typed is one of that zone.
        self.find("until").send_keys(ALL + "2023-11-14 19:40:00" + Keys.ENTER)
        wait_for("the time in UTC", lambda: "end_input=2023-11-14+23%3A10%3A00"
                 in self.browser.current_url)
        self.run_script("localStorage.clear()")
        tenant = self.find("tenant")
        tenant.send_keys("nobody" + Keys.ENTER)
        wait_for("the address", lambda: "tenant=nobody" in self.browser.current_url)
        self.await_text("status", "No series match")

    def test_the_old_graph_stays_until_there_are_new_data(self):
        self.open("temperature", **{"g0.range_input": "3h", "g0.step_input": "1"})
        self.await_lines(12)
        self.await_text("status", " points in ")
        field = self.editor()
        field.send_keys(ALL + LONG + Keys.ESCAPE + Keys.ENTER)
        wait_for("work", lambda: self.fabric.scaling()["work"]["running"] > 0)
        self.assertEqual(self.find("run").text, "Cancel (Esc)")
        self.await_text("status", "Running")
        self.await_lines(12)
        self.find("run").click()
        self.await_text("error", "canceled")

    def test_escape_cancels_and_reaches_the_workers(self):
        self.open(LONG, "explain", **{"g0.range_input": "3h", "g0.step_input": "1"})
        wait_for("work", lambda: self.fabric.scaling()["work"]["running"] > 0)
        self.await_text("explain", "accepted")
        # What is shown is what the API says of it.
        query = self.fabric.data("/api/v1/queries")[0]
        rows = self.run_script("return document.querySelectorAll(`[data-testid='plan'] .work`).length")
        self.assertEqual((query["work_total"], query["work_done"]), (rows, 0))
        self.assertIn(query["query_id"], self.shown("explain"))
        self.screen("running")
        self.editor().send_keys(Keys.ESCAPE)
        self.await_text("error", "canceled")
        wait_for("idle workers", lambda: self.fabric.scaling()["work"]["inflight"] == 0)


class Showing(Page):
    def samples_read(self):
        """Of both workers, as their own metrics say."""
        total = 0.0
        for port in self.fabric.http_ports:
            for line in self.fabric_get(port).splitlines():
                if line.startswith("promfabric_worker_samples_read_total "):
                    total += float(line.split()[1])
        return total

    @staticmethod
    def fabric_get(port):
        import urllib.request
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            return answer.read().decode()

    def test_explain_shows_every_work_item_and_the_receipt(self):
        expr = "sum(rate(http_requests_total[5m])) / count(temperature)"
        before = self.samples_read()
        self.open(expr, "explain")
        self.await_text("receipt", "checksum")
        rows = self.browser.find_elements(By.CSS_SELECTOR, "[data-testid='plan'] tr.work")
        planned = self.fabric.data("/api/v1/explain", {
            "query": expr, "start": START, "end": END, "step": 60})
        self.assertEqual(len(rows), len(planned["works"]))
        for row in rows:
            self.assertIn("fetched", row.text)
            self.assertRegex(row.text, "worker-[01]")
        # The receipt's samples are those the workers counted.
        read = wait_for("the workers' count", lambda: self.samples_read() - before)
        shown = re.search(r"Samples read\s+([0-9.]+)(k?)", self.shown("receipt"))
        self.assertAlmostEqual(float(shown[1]) * (1000 if shown[2] else 1), read, delta=read / 500)
        # Times of nodes are there: the division, and both leaves below it.
        times = self.run_script("return [...document.querySelectorAll(`[data-testid='plan'] .node`)]"
                                ".map(r => r.lastElementChild.innerText)")
        self.assertEqual(len(times), 3)
        self.assertTrue(all(re.search(r"\d (µs|ms|s)$", text) for text in times), times)
        self.assertIn("worker-0", self.shown("lanes"))
        self.screen("explain")

    def test_queries_that_are_over_are_listed_and_asked_again(self):
        self.fabric.query("count(temperature) + 7", END)
        self.fabric.get("/api/v1/query", {"query": "sum("})
        self.open(tab="queries")
        text = self.await_text("finished", "count(temperature) + 7")
        self.assertIn("parse error", self.await_text("finished", "sum("))
        self.assertRegex(text, r"\d (ms|µs)")
        self.find("finished-filter").send_keys("+ 7")
        wait_for("the filter", lambda: "sum(" not in self.shown("finished"))
        self.screen("queries")
        next(b for b in self.browser.find_elements(By.CSS_SELECTOR, "[data-testid='finished'] .link")
             if "+ 7" in b.text).click()
        self.await_text("status", "1 series")
        self.assertIn("+ 7", self.editor().text)

    def test_finished_queries_are_filtered(self):
        self.fabric.query("Sum(temperature) + 70", END)
        self.fabric.get("/api/v1/query", {"query": "sum(temperature) +"})
        self.fabric.get("/api/v1/series", {"match[]": "temperature", "start": START, "end": END})
        self.open(tab="queries")
        self.await_text("finished", "+ 70")

        def kinds():
            return set(self.run_script(
                "return [...document.querySelectorAll(`[data-testid='finished'] tbody tr`)].map(r => "
                "r.querySelector('small').innerText.split(' ')[0] + ' ' + r.querySelector('.state').innerText)"))
        self.assertNotIn("series ok", kinds())
        self.assertIn("query ok", kinds())
        self.click("finished-lists")
        wait_for("lists too", lambda: "series ok" in kinds())
        self.click("finished-failed")
        wait_for("failed ones", lambda: kinds() and not any(k.endswith(" ok") for k in kinds()))
        self.assertIn("parse error", self.shown("finished"))
        self.click("finished-failed")
        self.find("finished-filter").send_keys("SUM(temperature) + 70")
        wait_for("one", lambda: kinds() == {"query ok"})
        self.find("finished-filter").send_keys("no such text")
        self.await_text("queries", "None fits the filter.")

    def test_a_running_query_can_be_ended_from_the_list(self):
        self.open(LONG, "table", **{"g0.range_input": "3h", "g0.step_input": "1"})
        wait_for("work", lambda: self.fabric.scaling()["work"]["running"] > 0)
        self.browser.switch_to.new_window("tab")
        self.addCleanup(self.browser.switch_to.window, self.browser.window_handles[0])
        self.addCleanup(self.browser.close)
        self.open(tab="queries")
        self.await_text("running", "stddev_over_time")
        self.assertRegex(self.shown("running"), "0 of 4")
        self.press("Cancel")
        wait_for("nothing", lambda: self.fabric.data("/api/v1/queries") == [])
        self.await_text("finished", "canceled")

    def test_the_fabric_shows_its_workers(self):
        self.open(tab="fabric")
        self.await_text("fabric", "worker-1")
        workers = self.fabric.data("/api/v1/workers")
        cards = self.browser.find_elements(By.CSS_SELECTOR, "[data-testid='worker']")
        self.assertEqual(len(cards), len(workers))
        for worker in workers:
            self.assertIn(worker["address"], self.shown("fabric"))
        self.assertIn(f"0 of {workers[0]['slots']} slot", cards[0].text)
        self.await_text("health", "2 workers")
        self.screen("fabric")

    def test_text_from_right_to_left_leaves_the_rest_in_its_order(self):
        """Where quotes, names and braces are on the screen, beside values that run, or turn, the other way."""
        self.open("rtl", "table")
        self.await_text("status", "1 series")
        (name,) = self.rows()
        self.assertEqual(name, 'rtl{v="\u05d0\u05d1\u05d2", w="1 \u05d3 2", x="\u202eabc", y="end"}')
        for view, box in (("table", "[data-testid='table'] .name"), ("graph", ".legend .name")):
            self.click("view-" + view)
            places = wait_for("the name", lambda: self.run_script("""
                const name = document.querySelector(arguments[0]), places = [];
                if (!name) return null;
                const walk = document.createTreeWalker(name, NodeFilter.SHOW_TEXT);
                while (walk.nextNode()) {
                  const range = document.createRange();
                  range.selectNodeContents(walk.currentNode);
                  const box = range.getBoundingClientRect();
                  if (box.width) places.push([walk.currentNode.data, box.left, box.right, box.top]);
                }
                return places;""", box))
            self.assertEqual(places[-1][0], "}" if places[-1][0] == "}" else '"}')
            for (left, _, end, top), (right, start, _, below) in zip(places, places[1:]):
                self.assertTrue(below > top or start >= end - 0.5, (view, left, right, places))
        # Within a value the first letter is the rightmost.
        self.assertEqual(self.run_script("""
            const text = [...document.querySelectorAll(".legend .name bdi")].find((e) => e.textContent.startsWith("\u05d0")).firstChild;
            const at = (i) => { const r = document.createRange(); r.setStart(text, i); r.setEnd(text, i + 1); return r.getBoundingClientRect().left; };
            return at(0) > at(1) && at(1) > at(2)"""), True)

    def test_metrics_show_names_labels_and_what_is_stored(self):
        self.open(tab="metrics")
        self.await_text("metrics", "temperature")
        storage = self.fabric.data("/api/v1/storage")
        self.assertIn(f"Segments\n{storage['segments']}", self.shown("storage"))
        self.find("metrics-filter").send_keys("HTTP_")
        self.press("http_requests_total")
        text = self.await_text("metric", "instance")
        self.assertRegex(text, r"Series in that day\s+12")
        self.assertRegex(text, r"(?s)instance\s+12.*job\s+2")
        self.screen("metrics")
        self.press("Its rate")
        self.await_text("status", "12 series")
        self.assertIn("rate(http_requests_total[5m])", self.editor().text)

    def test_every_tab_in_the_dark(self):
        self.open("temperature")
        self.await_text("status", " series, ")
        light = self.run_script("return getComputedStyle(document.body).color")
        self.find("theme").send_keys("dark")
        wait_for("the dark", lambda: self.run_script(
            "return getComputedStyle(document.body).color") != light)
        self.await_lines(12)
        self.screen("dark-graph")
        for tab, text in (("fabric", "worker-1"), ("metrics", "temperature"), ("queries", "Running")):
            self.click("tab-" + tab)
            self.await_text(tab, text)
            self.screen("dark-" + tab)
        self.run_script("localStorage.clear()")

    def test_a_narrow_window_has_no_sideways_scroll(self):
        self.browser.set_window_size(420, 800)
        self.addCleanup(self.browser.set_window_size, 1280, 1000)
        for view in ("graph", "table", "explain"):
            self.open("temperature", view)
            self.await_text("status", " series, ")
            self.check_width("narrow-" + view)
        for tab in ("queries", "fabric", "metrics"):
            self.open(tab=tab)
            wait_for(tab, lambda: self.find(tab))
            self.check_width("narrow-" + tab)

    def check_width(self, name):
        wide = self.run_script("return [document.documentElement.scrollWidth, innerWidth]")
        self.screen(name)
        self.assertLessEqual(wide[0], wide[1], name)


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
        self.assertLess(shell, 40_000, sizes)
        self.assertLess(sum(size for name, size in sizes.items() if "licences" not in name),
                        200_000, sizes)

    def test_what_is_painted_first_waits_for_one_small_script(self):
        """The head of the page is in its HTML; what draws the rest begins after a frame, and is fetched meanwhile."""
        html = self.fabric.get("/")[2].decode()
        scripts = re.findall(r'<script [^>]*src="/assets/([^"]+)"', html)
        self.assertEqual(len(scripts), 1, html)
        boot = (FILES / scripts[0]).read_text()
        self.assertLess(len(boot), 1000)
        main = re.search(r'import\("\./(main-[^"]+)"\)', boot)[1]
        self.assertIn(f'<link rel="modulepreload" href="/assets/{main}">', html)
        for imported in re.findall(r'from"\./([^"]+)"', boot + (FILES / main).read_text()):
            self.assertIn(f'<link rel="modulepreload" href="/assets/{imported}">', html)
        self.assertRegex(html, r"<header><h1><svg .*</svg> Promfabric</h1></header>")

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
            for accept, coding, end in (("gzip", "gzip", ".gz"), ("gzip, deflate, br, zstd", "br", ".br")):
                packed = self.fabric.get("/assets/" + path.name, headers={"Accept-Encoding": accept})
                self.assertEqual(packed[1]["Content-Encoding"], coding)
                self.assertEqual(packed[2], path.with_name(path.name + end).read_bytes())
        self.assertIn(b"MIT", self.fabric.get("/assets/licences.txt")[2])
        for path in ("/assets/index.html", "/assets/nothing.js", "/assets/%2e%2e/api"):
            self.assertNotEqual(self.fabric.get(path)[0], 200, path)
        self.assertEqual(self.fabric.get("/assets/../assets/nothing.js")[0], 301)  # says where it would be

    def test_other_sites_may_link_but_not_ask(self):
        foreign = {"Sec-Fetch-Site": "cross-site"}
        self.assertEqual(self.fabric.get("/graph?g0.expr=up", headers=foreign)[0], 200)
        self.assertEqual(self.fabric.get("/api/v1/query?query=1", headers=foreign)[0], 403)
        for site in ("same-origin", "none"):
            self.assertEqual(self.fabric.get("/api/v1/query?query=1",
                                             headers={"Sec-Fetch-Site": site})[0], 200)

    def test_storage_is_told_from_the_listing(self):
        self.assertEqual(self.fabric.data("/api/v1/storage"), {
            "segments": 0, "bytes": 0, "min_ms": None, "max_ms": None, "days": []})
        load(self.fabric.store, ["up 1x480"], shards=1)
        self.fabric.query("up", END)  # has it listed
        stored = self.fabric.data("/api/v1/storage")
        self.assertEqual((stored["min_ms"], stored["max_ms"]),
                         (START * 1000, (START + 480 * 15) * 1000))
        self.assertEqual(sum(day["bytes"] for day in stored["days"]), stored["bytes"])
        self.assertEqual(sum(day["segments"] for day in stored["days"]), stored["segments"])
        self.assertEqual(stored["days"][0]["date"], "2023-11-14")
        other = self.fabric.data("/api/v1/storage", headers={"X-Scope-OrgID": "nobody"})
        self.assertEqual(other["segments"], 0)


if __name__ == "__main__":
    unittest.main()
