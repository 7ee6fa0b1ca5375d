"""test_faults.py - the page when things break, and when answers are large or odd."""
import json
import subprocess
import unittest

from browser import BINARY, LONG, MARKUP, START, By, Keys, Page, wait_for

MEGABYTE = "x" * 1_000_000


class Odd(Page):
    expected = ("status of 400",)  # where that is the point

    @classmethod
    def lines(cls):
        return (super().lines()
                + [f'wide{{n="{i}"}} {i}+1x480' for i in range(5100)]
                + [f'long{{v="{MEGABYTE}"}} 1x240'])

    def test_markup_in_labels_is_text(self):
        self.open("odd or rtl", "table")
        self.await_text("status", "2 series")
        name = next(row for row in self.rows() if row.startswith("odd"))
        self.assertIn("<img src=x onerror=", name)
        self.assertEqual(self.browser.find_elements(By.CSS_SELECTOR, "main img, main b b"), [])
        self.click("view-graph")
        wait_for("the legend", lambda: "<img" in self.browser.find_element(
            By.CSS_SELECTOR, ".legend").text)
        self.assertEqual(self.browser.find_elements(By.CSS_SELECTOR, "main img"), [])
        self.assertEqual(self.browser.title, "Promfabric")
        self.assertIn(json.dumps(MARKUP)[1:20], self.saved("JSON"))

    def test_what_cannot_be_drawn_is_said(self):
        self.open("odd")
        self.await_text("status", "1 series")
        wait_for("the note", lambda: "NaN or infinite and not drawn" in self.run_script(
            "return document.querySelector('.graph')?.innerText ?? ''"))  # it comes a moment after the page

    def test_native_histograms_are_shown(self):
        text = self.fabric.store + "-native.om"
        with open(text, "w", encoding="ascii") as file:
            for i in range(61):
                file.write("native {count:4,sum:5,schema:0,zero_threshold:1e-4,zero_count:0,"
                           f"positive_spans:[0:2],positive_buckets:[1,3]}} {START + i * 60}\n")
            file.write("# EOF\n")
        subprocess.run([BINARY, "import", "--quiet", f"--store={self.fabric.store}", text], check=True)
        self.open("native")
        self.await_text("status", "1 series")
        self.await_lines(1)
        self.assertIn("drawn as their number of observations", self.run_script(
            "return document.querySelector('.graph').innerText"))
        self.click("view-table")
        self.assertEqual(list(self.rows().values()), ["count 4, sum 5"])

    def test_a_label_of_a_megabyte_does_not_break_the_page(self):
        self.open("long", "table")
        self.await_text("status", "1 series", 60)
        name = next(iter(self.rows()))
        self.assertLess(len(name), 1000)
        self.assertIn("characters)", name)
        self.click("view-graph")
        self.await_lines(1)
        self.assertLess(self.run_script("return document.body.innerText.length"), 10_000)
        self.assertEqual(self.run_script("return document.documentElement.scrollWidth <= innerWidth"), True)

    def test_thousands_of_series_and_those_beyond_are_said(self):
        self.open("wide", **{"g0.step_input": "12"})
        self.await_text("status", "5100 series", 90)
        self.await_lines(5000)
        self.assertIn("5000 of 5100 series are drawn", self.run_script(
            "return document.querySelector('.graph').innerText"))
        self.assertIn("more series", self.run_script("return document.querySelector('.graph').innerText"))
        # A bound that an unhurried machine is far below: nothing here takes seconds per frame.
        self.assertLess(float(self.run_script(
            "return document.querySelector('.plot').dataset.drawMs")), 5000)

    def test_eleven_thousand_points(self):
        self.open("temperature", **{"g0.range_input": "11000s", "g0.step_input": "1"})
        self.await_text("status", "12 series", 60)
        self.await_lines(12)
        self.open("temperature", **{"g0.range_input": "11001s", "g0.step_input": "1"})
        self.await_text("error", "exceeded maximum resolution of 11,000 points")


class Broken(Page):
    """A fabric of its own, which loses its parts."""
    expected = ("ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_INCOMPLETE_CHUNKED_ENCODING",
                "ERR_EMPTY_RESPONSE", "ERR_NETWORK_CHANGED")
    long_range = {"g0.range_input": "3h", "g0.step_input": "1"}

    def test_a_killed_worker_is_shown_lost_and_its_work_elsewhere(self):
        self.open(LONG, "explain", **self.long_range)
        wait_for("work for both", lambda: all(
            w["accepted"] > 0 for w in self.fabric.data("/api/v1/workers")))
        self.await_text("explain", "accepted")
        self.fabric.workers[0].kill()
        text = self.await_text("explain", "worker worker-0 was lost")
        self.assertIn("attempt 2", text)
        self.await_text("health", "1 worker")
        self.screen("lost")
        self.editor().send_keys(Keys.ESCAPE)
        self.await_text("error", "canceled")
        self.open(tab="fabric")
        wait_for("one away", lambda: self.browser.find_elements(By.CSS_SELECTOR, ".card.away"))
        self.fabric.start_worker(0)
        self.fabric.wait_workers(2)
        wait_for("both", lambda: not self.browser.find_elements(By.CSS_SELECTOR, ".card.away"))

    def test_an_api_that_is_started_again_under_an_open_page(self):
        self.open(LONG, "explain", **self.long_range)
        wait_for("work", lambda: self.fabric.scaling()["work"]["running"] > 0)
        self.browser.switch_to.new_window("tab")
        self.open(tab="fabric")
        self.await_text("fabric", "worker-1")
        self.fabric.api.kill()
        self.await_text("fabric", "cannot be reached")
        self.await_text("health", "API away")
        self.screen("api-away")
        self.browser.switch_to.window(self.browser.window_handles[0])
        self.await_text("error", "cut")
        self.fabric.start_api()
        self.fabric.wait_workers(2)
        # The lists come back by themselves, a query when it is asked for.
        self.click("again")
        wait_for("work again", lambda: self.fabric.scaling()["work"]["running"] > 0)
        self.assertEqual(self.shown("error"), "")
        self.editor().send_keys(Keys.ESCAPE)
        self.await_text("error", "canceled")
        self.browser.switch_to.window(self.browser.window_handles[1])
        wait_for("the list again", lambda: "cannot be reached" not in self.shown("fabric"))
        self.await_text("health", "2 workers")
        self.browser.close()
        self.browser.switch_to.window(self.browser.window_handles[0])


if __name__ == "__main__":
    unittest.main()
