"""history.py - what a register was told and what was read of it: is the history linearizable?"""
import threading


class History:
    """Writes of growing values to a series, by one writer, and reads of its last value.

    Such a history is linearizable just if each read has no less than what was acknowledged or read
    before it began, and no more than what was begun to be written before it ended."""

    def __init__(self):
        self.lock = threading.Lock()
        self.begun = self.acknowledged = self.read = 0
        self.problems = []

    def begin_write(self):
        with self.lock:
            self.begun += 1
            return self.begun

    def end_write(self, value):
        with self.lock:
            self.acknowledged = max(self.acknowledged, value)

    def begin_read(self):
        with self.lock:
            return max(self.acknowledged, self.read)

    def end_read(self, least, value):
        """What is wrong with it; "" if nothing is."""
        with self.lock:
            problem = "" if least <= value <= self.begun else f"read {value}, not {least} to {self.begun}"
            self.problems += [problem] if problem else []
            self.read = max(self.read, value)
            return problem
