"""test_access.py - the page for everybody: keyboard alone, screen readers (axe-core), and keys of the API."""
import os
import pathlib
import subprocess
import unittest

from browser import By, Keys, Page, wait_for


def axe():
    """The source of axe-core, which the lock file of the page brings for this test."""
    top = pathlib.Path(__file__).resolve().parents[3]
    found = subprocess.run(["bash", "-c", f'. "{top}/scripts/lib/common.sh"; . "{top}/scripts/lib/page.sh"; '
                                          'echo "$page_modules"'], capture_output=True, text=True, check=True)
    return (pathlib.Path(found.stdout.strip()) / "axe-core/axe.min.js").read_text()


class Readable(Page):
    def findings(self):
        """What is serious in what is shown now, editor included."""
        self.browser.set_script_timeout(60)
        if not self.run_script("return !!window.axe"):
            self.run_script(self.source)
        found = self.browser.execute_async_script("""
            const done = arguments[0];
            axe.run(document, { resultTypes: ['violations'] })
               .then(r => done(r.violations), e => done([{ id: String(e), impact: 'critical', nodes: [] }]))""")
        return [(f["id"], f["impact"], f.get("help"), [n["html"][:150] for n in f["nodes"][:3]])
                for f in found if f["impact"] in ("serious", "critical")]

    def check(self, name):
        self.assertEqual(self.findings(), [], name)

    def test_axe_finds_nothing_serious(self):
        self.source = axe()
        self.open()  # it would find something: an image that says nothing, grey on grey
        self.run_script("""const p = document.createElement('p'), i = document.createElement('img');
            p.textContent = 'grey'; p.style.color = '#999'; p.style.background = '#aaa'; i.src = 'data:,';
            document.querySelector('main').append(p, i)""")
        self.assertEqual({finding[0] for finding in self.findings()}, {"color-contrast", "image-alt"})
        for theme in ("light", "dark"):
            self.open()
            self.run_script("localStorage.setItem('promfabric.theme', arguments[0])", theme)
            self.open()
            self.editor()
            self.check(theme + " welcome")
            for view in ("graph", "table", "explain"):
                self.open(["sum by (job) (rate(http_requests_total[5m]))", "up"], view)
                self.await_text("status", " series, ")
                self.editor(1)
                self.check(f"{theme} {view}")
            self.open("sum(")
            self.await_text("error", "parse error")
            self.check(theme + " error")
            for tab, text in (("queries", "sum by"), ("fabric", "worker-1"), ("metrics", "temperature")):
                self.open(tab=tab)
                self.await_text(tab, text)
                if tab == "metrics":
                    self.press("temperature")
                    self.await_text("metric", "instance")
                self.check(f"{theme} {tab}")
        self.run_script("localStorage.clear()")

    def test_one_polite_region_tells_how_it_ends(self):
        self.open("temperature")
        self.await_text("status", " series, ")
        self.assertEqual(len(self.browser.find_elements(By.CSS_SELECTOR, "[aria-live], [role=status]")), 1)
        wait_for("the end told", lambda: self.run_script(
            "return document.querySelector(`[data-testid='live']`).textContent").startswith("12 series"))

    def test_nothing_moves_for_who_does_not_want_it(self):
        moving = ("const one = document.body.appendChild(document.createElement('span')); one.className = 'status busy';"
                  "const name = getComputedStyle(one, '::before').animationName; one.remove(); return name")
        self.open()
        self.editor()
        self.assertEqual(self.run_script(moving), "turn")
        self.addCleanup(self.browser.execute_cdp_cmd, "Emulation.setEmulatedMedia", {"features": []})
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-reduced-motion", "value": "reduce"}]})
        self.assertEqual(self.run_script(moving), "none")

    def test_patterns_stand_beside_colours(self):
        self.open("temperature")
        self.await_lines(12)
        dashes = "return new Set([...document.querySelectorAll('.legend line')]" \
                 ".map(l => l.getAttribute('stroke-dasharray'))).size"
        self.assertEqual(self.run_script(dashes), 1)
        self.click("patterns")
        wait_for("patterns", lambda: self.run_script(dashes) == 4)
        self.run_script("localStorage.clear()")


class Typing(Page):
    """No mouse: keys go to whatever has the focus."""
    def keys(self, *keys):
        for key in keys:
            self.browser.switch_to.active_element.send_keys(key)

    def focus(self):
        return self.run_script("return document.activeElement.dataset.testid || document.activeElement.id"
                               " || document.activeElement.className || document.activeElement.tagName")

    def tab_to(self, name, most=40):
        """Press Tab until @name has the focus; the keyboard is never trapped."""
        for _ in range(most):
            if self.focus() == name:
                return
            self.keys(Keys.TAB)
        self.fail(f"{name} is not reached, at {self.focus()}")

    def test_a_query_from_typing_to_its_plan(self):
        self.open()
        field = self.editor()
        wait_for("the focus", lambda: self.focus() == "editor-0")
        field.send_keys("sum(temperature)" + Keys.ESCAPE + Keys.ENTER)  # closes the list, then runs
        self.await_text("status", "1 series")
        self.tab_to("run")
        self.tab_to("view-graph")
        self.keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        self.assertEqual(self.focus(), "view-explain")
        self.await_text("receipt", "checksum")
        self.tab_to("node")
        rows = "return document.querySelectorAll(`[data-testid='plan'] tbody tr`).length"
        level = "return document.activeElement.getAttribute('aria-level')"
        before = self.run_script(rows)
        self.keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
        self.assertGreater(int(self.run_script(level)), 1)
        self.keys(Keys.HOME, Keys.ARROW_LEFT)  # folds the tree
        wait_for("one row", lambda: self.run_script(rows) == 1)
        self.keys(Keys.ARROW_RIGHT)
        wait_for("all rows", lambda: self.run_script(rows) == before)

    def test_a_line_more_and_no_key_that_is_taken(self):
        self.open("up")
        self.await_text("status", " series, ")
        field = self.editor()
        field.send_keys(Keys.END + " +" + Keys.ESCAPE + Keys.SHIFT + Keys.ENTER + Keys.NULL + "1" + Keys.ENTER)
        self.await_text("status", " series, ")
        wait_for("both lines", lambda: "%0A1" in self.browser.current_url or "+%0A1" in self.browser.current_url)
        field.send_keys(Keys.TAB)
        self.assertNotEqual(self.focus(), "editor-0")
        self.run_script("document.activeElement.blur()")

    def test_tabs_by_arrows(self):
        self.open("up", "table")
        self.await_text("status", " series, ")
        self.run_script("document.getElementById('tab-query').focus()")
        for tab in ("queries", "fabric", "metrics"):
            self.keys(Keys.ARROW_RIGHT)
            wait_for(tab, lambda: self.find(tab) and self.focus() == "tab-" + tab)
        self.keys(Keys.ARROW_RIGHT)
        self.await_text("status", " series, ")


class Keyed(Page):
    expected = ("401",)

    @classmethod
    def setUpClass(cls):
        cls.keys = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"pf-page-keys-{os.getpid()}"
        cls.give("secret *")
        cls.addClassCleanup(cls.keys.unlink)
        cls.api_flags = (f"--api-keys={cls.keys}",)
        super().setUpClass()

    @classmethod
    def give(cls, line):
        cls.keys.write_text(line + "\n")
        cls.keys.chmod(0o600)

    def use(self, key):
        form = wait_for("the form", lambda: self.find("key-form"))
        form.find_element(By.TAG_NAME, "input").send_keys(key + Keys.ENTER)

    def test_no_key_a_wrong_one_a_right_one_and_one_that_is_taken_away(self):
        self.open("temperature")
        self.await_text("key-form", "asks for a key")
        self.use("guess")
        self.await_text("key-form", "not, or no longer, good")
        self.use("secret")
        self.await_text("status", " series, ")
        self.assertIsNone(self.find("key-form"))
        self.assertNotIn("secret", self.browser.current_url)
        self.assertEqual(self.run_script("return Object.values(localStorage).join()").count("secret"), 0)
        # It goes with the tab, and over a reload.
        self.open("up")
        self.await_text("status", " series, ")
        self.give("another *")
        wait_for("the change", lambda: self.fabric.get(
            "/api/v1/query", {"query": "1"}, headers={"Authorization": "Bearer secret"})[0] == 401)
        self.click("run")
        self.await_text("key-form", "not, or no longer, good")
        self.use("another")
        self.await_text("status", " series, ")
        self.give("secret *")
        wait_for("the change back", lambda: self.fabric.get(
            "/api/v1/query", {"query": "1"}, headers={"Authorization": "Bearer secret"})[0] == 200)
        self.run_script("sessionStorage.clear()")

    def test_a_tenants_key_sees_its_own_and_no_workers(self):
        self.give("secret *\nmine default")
        wait_for("the key", lambda: self.fabric.get(
            "/api/v1/query", {"query": "1"}, headers={"Authorization": "Bearer mine"})[0] == 200)
        type(self).expected = ("401", "403")
        self.open("up")
        self.use("mine")
        self.await_text("status", " series, ")
        self.click("tab-fabric")
        self.await_text("fabric", "workers are shown to operators")
        self.click("tab-queries")
        self.await_text("queries", "Running")
        self.run_script("sessionStorage.clear()")


if __name__ == "__main__":
    unittest.main()
