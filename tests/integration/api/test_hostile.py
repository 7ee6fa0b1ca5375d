"""test_hostile.py - queries written to take the API down: each gets an error, nobody else notices.

Memory is capped twice: every query may use 64 MiB, and the process must never have had more than
MEMORY_MAX. A process that died, or that took the memory first and refused later, fails."""
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

    def peak(self):
        status = pathlib.Path(f"/proc/{self.fabric.api.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) * 1024

    def refused(self, path, params, status=422):
        """The request is refused with a message, and the next client is answered."""
        body = urllib.parse.urlencode(params)
        got, _, answer = self.fabric.request(
            "POST", path, body=body, headers={"Content-Type": "application/x-www-form-urlencoded"})
        self.assertEqual(got, status, answer[:300])
        self.assertIn(b"error", answer)
        self.assertEqual(self.fabric.query("count(up)", END)["result"][0]["value"][1], "2")
        self.assertLess(self.peak(), MEMORY_MAX)
        return answer.decode()

    def test_a_label_doubled_and_joined_thousands_of_times(self):
        """17 KB of text that stand for a label of gigabytes."""
        sources = ", ".join(['"a"'] * 4000)
        text = f'label_join({doubled(21)}, "b", "", {sources})'
        self.assertLess(len(text), 25_000)
        answer = self.refused("/api/v1/query", [("query", text), ("time", str(END))])
        self.assertIn("needs more memory than its limit", answer)

    def test_a_label_doubled_beyond_any_memory(self):
        self.refused("/api/v1/query", [("query", doubled(60)), ("time", str(END))])

    def test_a_replacement_that_grows(self):
        text = 'label_replace(vector(1), "a", "0123456789abcdef", "", "")'
        for _ in range(20):
            text = f'label_replace({text}, "a", "{"$1" * 16}", "a", "(.*)")'
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
        wide = "(" * 900 + 'label_join(x, "a", "", ' + ",".join(['"b"'] * 120_000) + ")" + ")" * 900
        for path in ("/api/v1/format_query", "/api/v1/parse_query"):
            status, _, answer = self.fabric.request(
                "POST", path, body=urllib.parse.urlencode({"query": nested}),
                headers={"Content-Type": "application/x-www-form-urlencoded"})
            self.assertEqual(status, 200, answer[:200])
        answer = self.refused("/api/v1/format_query", [("query", wide)])
        self.assertIn("longer than", answer)

    def test_large_expressions_in_many_selectors(self):
        matches = [("match[]", f'{{a=~"b{{1000}}c{{1000}}{i}"}}') for i in range(64)]
        answer = self.refused("/api/v1/series", [*matches, ("start", str(START)), ("end", str(END))])
        self.assertIn("more memory", answer)


if __name__ == "__main__":
    unittest.main()
