"""test_hostile.py - queries written to take the API down: each gets an error, nobody else notices.

Memory is capped twice: every query may use 64 MiB, and the process must never have had more than
MEMORY_MAX. A process that died, or that took the memory first and refused later, fails."""
import concurrent.futures
import pathlib
import re
import unittest
import urllib.parse

from harness import START, FabricTest

END = START + 3600
MEMORY_MAX = 1 << 30  # with room for sanitizers; each of the queries below asks for far more
API_FLAGS = ("--query-memory=64MiB", "--queries-memory=256MiB")


def doubled(times):
    """A label of 16 bytes that was doubled so many times."""
    text = 'label_replace(vector(1), "a", "0123456789abcdef", "", "")'
    for _ in range(times):
        text = f'label_join({text}, "a", "", "a", "a")'
    return text


class Hostile(FabricTest):
    workers = 1
    api_flags = API_FLAGS

    def memory(self, name):
        status = pathlib.Path(f"/proc/{self.fabric.api.pid}/status").read_text()
        return int(re.search(rf"{name}:\s+(\d+) kB", status).group(1)) * 1024

    def peak(self):
        return self.memory("VmHWM")

    def forget_peak(self):
        """What is used now is the most that was used."""
        pathlib.Path(f"/proc/{self.fabric.api.pid}/clear_refs").write_text("5")
        return self.memory("VmRSS")

    def refused(self, path, params, status=422):
        """The request is refused with a message, and the next client is answered."""
        body = urllib.parse.urlencode(params, safe='",()')
        got, _, answer = self.fabric.request(
            "POST", path, body=body, headers={"Content-Type": "application/x-www-form-urlencoded"})
        self.assertEqual(got, status, answer[:300])
        self.assertIn(b"error", answer)
        self.assertEqual(self.fabric.query("count(up)", END)["result"][0]["value"][1], "2")
        self.assertLess(self.peak(), MEMORY_MAX)
        return answer.decode()

    def test_a_label_doubled_and_joined_thousands_of_times(self):
        """20 KB of text that stand for a label of gigabytes. What is doubled has room in the budget, so that the join
        alone takes too much: it must be refused before it is made."""
        sources = ", ".join(['"a"'] * 4000)
        text = f'label_join({doubled(16)}, "b", "", {sources})'
        self.assertLess(len(text), 25_000)
        answer = self.refused("/api/v1/query", [("query", text), ("time", str(END))])
        self.assertIn("memory limit exceeded", answer)

    def test_a_label_doubled_beyond_any_memory(self):
        self.refused("/api/v1/query", [("query", doubled(60)), ("time", str(END))])

    def test_a_replacement_that_grows(self):
        """To 8 KiB, to 4 MiB, to 2 GiB."""
        text = 'label_replace(vector(1), "a", "0123456789abcdef", "", "")'
        for _ in range(3):
            text = f'label_replace({text}, "a", "{"$1" * 512}", "a", "(.*)")'
        self.refused("/api/v1/query", [("query", text), ("time", str(END))])

    def test_a_thousand_large_expressions_in_label_replace(self):
        text = "up"
        for i in range(900):
            text = f'label_replace({text}, "a", "", "b", "[a-z{i}]{{1000}}")'
        answer = self.refused("/api/v1/query", [("query", text), ("time", str(END))])
        self.assertIn("memory limit exceeded", answer)

    def test_a_query_that_is_long_when_printed(self):
        """A megabyte of text that is hundreds of megabytes when it is indented, or a tree."""
        nested = "(" * 900 + "sum(x)" + ")" * 900
        wide = "(" * 900 + 'label_join(x, "a", "", ' + ",".join(['"b"'] * 200_000) + ")" + ")" * 900
        for path in ("/api/v1/format_query", "/api/v1/parse_query"):
            status, _, answer = self.fabric.request(
                "POST", path, body=urllib.parse.urlencode({"query": nested}),
                headers={"Content-Type": "application/x-www-form-urlencoded"})
            self.assertEqual(status, 200, answer[:200])
        before = self.forget_peak()
        answer = self.refused("/api/v1/format_query", [("query", wide)])
        self.assertIn("longer than", answer)
        self.assertLess(self.peak() - before, 256 << 20)  # all of it would be 360 MB
        many = 'label_join(x, "a", "", ' + ",".join(['"b"'] * 250_000) + ")"
        answer = self.refused("/api/v1/parse_query", [("query", many)])
        self.assertIn("longer than", answer)

    def test_many_queries_that_are_long_when_printed(self):
        """Each is within its limit, and takes its memory from what all queries have together: at once they find no
        room rather than take it."""
        many = 'label_join(x, "a", "", ' + ",".join(['"b"'] * 200_000) + ")"
        body = urllib.parse.urlencode({"query": many}, safe='",()')

        def ask(_):
            return self.fabric.request("POST", "/api/v1/parse_query", body=body, headers={
                "Content-Type": "application/x-www-form-urlencoded"})[0]

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            statuses = set(pool.map(ask, range(32)))
        self.assertLessEqual(statuses, {200, 429, 503})
        self.assertLess(self.peak(), MEMORY_MAX)

    def test_texts_that_are_parsed_at_once_are_short(self):
        answer = self.refused("/api/v1/query_exemplars", [("query", '{a="' + "x" * 70_000 + '"}')])
        self.assertIn("longer than the limit of 65536 bytes", answer)

    def test_large_expressions_in_many_selectors(self):
        matches = [("match[]", f'{{a=~"b{{1000}}c{{1000}}{i}"}}') for i in range(64)]
        answer = self.refused("/api/v1/series", [*matches, ("start", str(START)), ("end", str(END))])
        self.assertIn("more memory", answer)


if __name__ == "__main__":
    unittest.main()
