"""test_interrupted.py - additions and removals that are interrupted at every phase end all the same, at their pace; what former owners
hold goes after each of its checks, and not before."""
import time
import unittest

from harness import wait_for
from test_migrations import MIGRATIONS, NODES, MigrationTest

RATE = 12 << 10
PHASES = (1, 0.7, 0.4, 0.1)  # of the slots that move, so many are left
OWNS, MOVES, EARLY = "the node owns the slot", "the slot moves", "it is too early for it"
LACKS, NOTHING = "no quorum is known to hold everything", "nothing to do"


class Interrupted(MigrationTest):
    def kill(self, *victims):
        for victim in victims:
            victim.kill()
        for victim in victims:
            if victim in self.nodes:
                victim.start(ready=False)
            else:
                victim.start()

    def leader_of_meta(self):
        return wait_for("a leader of meta", lambda: self.leader(self.nodes, "meta"), 60)

    def now(self, migration):
        """How far it is; what was heard last if it is over and forgotten."""
        def heard():
            for node in self.nodes:
                try:
                    status, answer = node.request("GET", f"{MIGRATIONS}/{migration}", timeout=15)
                except OSError:
                    continue
                if status in (200, 404):
                    self.heard = answer if status == 200 else {**self.heard, "status": "forgotten"}
                    return True
            return False
        wait_for("an answer", heard, 60)
        return self.heard

    def interrupt(self, migration, mover):
        """At each phase of it the leader dies, or who moves, or both; what it brought."""
        moving, interruptions = None, 0
        for i, share in enumerate(PHASES):
            def there():
                left = self.now(migration)["progress"]["slots_moving"]
                return left and left <= share * (moving or 1024) or self.heard["status"] != "running"
            wait_for(f"{share} of the slots to be left", there, 240)
            if self.heard["status"] != "running":
                break  # this machine takes longer to start a process than that for the rest
            moving = moving or self.heard["progress"]["slots_moving"]
            self.kill(*([self.leader_of_meta()] if i % 3 != 1 else []), *([mover] if i % 3 != 0 else []))
            interruptions += 1
        wait_for("it to end", lambda: self.now(migration)["status"] != "running", 240)
        self.assertIn(self.heard["status"], ("completed", "forgotten"), self.heard)
        self.assertGreaterEqual(interruptions, 2)
        return self.heard["progress"]

    def in_order(self, names):
        """Every owner has everything, and nobody else anything, though leader and a keeper died while it was cleaned."""
        wait_for("the cleanup to begin", lambda: any(n["slots_to_clean"] for n in self.nodes_of_ring()) or self.cleaned(names), 60)
        self.kill(self.leader_of_meta(), self.keepers["k0"])
        wait_for("former owners to be cleaned", lambda: self.cleaned(names), 180)

    def cleaned(self, names):
        held = self.copies()
        return set(held) == names and all(len(who) == 2 for who in held.values())

    def test_at_every_phase_of_an_addition_and_a_removal(self):
        self.fabric(nodes=3, args=["--move-rate", str(RATE)], grace="20s")
        self.write(11, tenants=24)
        names = set(self.copies())
        for mover in "k3", "k1":
            migration = self.add("k3") if mover == "k3" else self.ask("DELETE", f"{NODES}/{mover}")["migration"]
            brought = self.interrupt(migration, self.keepers[mover])
            self.assertEqual(set(self.copies()), names)
            self.assertGreater(brought["segments"], 8)
        self.assertEqual({n["name"]: n["state"] for n in self.nodes_of_ring() if n["state"] != "REMOVED"},
                         {"k0": "NORMAL", "k2": "NORMAL", "k3": "NORMAL"})
        self.keepers.pop("k1").kill()  # what a removed node holds stays on its disk
        self.in_order(names)
        self.check_answers(11, tenants=24)


class Cleanup(MigrationTest):
    """Each of the checks alone stands against it. Slots are asked for one by one: which are in what state is the ring's business."""

    def clean(self, node, slot, **params):
        status, answer = self.nodes[0].request("POST", f"{NODES}/{node}/clean", {"slot": slot, **params})
        return "" if status == 200 and answer["changed"] else answer.get("message", NOTHING)

    def held(self, node, slot):
        return [f for f in (self.keepers[node].disk / "blobs" / f"{slot:04x}").rglob("*") if f.is_file()]

    def all_said(self, names):
        """What was said, and the nodes and slots that it was said of."""
        found = {}
        for name in names:
            for slot in range(0, 1024, 8):
                said = self.clean(name, slot)
                self.assertNotEqual(said, "", "a cleanup was allowed")
                found.setdefault(said, []).append((name, slot))
        return found

    def test_what_former_owners_hold_stays_while_any_check_says_so(self):
        self.fabric(keepers=3, copies=2, grace="15s", args=["--move-rate", str(RATE)])
        self.write(3, tenants=24)
        began, migration, seen = time.monotonic(), self.add("k3"), {}
        # Slots that it has left, while it is not over.
        wait_for("a slot that has moved", lambda: seen.update(self.all_said(("k0", "k2"))) or EARLY in seen, 60)
        self.assertEqual(self.ask("GET", f"{MIGRATIONS}/{migration}")["status"], "running")
        self.assertEqual(self.clean(*seen[OWNS][0], force="true", reason="no"), OWNS)
        self.assertEqual(self.clean(*seen[EARLY][0], force="true"), "a force needs a reason")
        done = self.ended(migration, 240)
        self.assertEqual(done["status"], "completed")
        self.assertGreater(done["progress"]["bytes"], 4 * RATE)
        self.assertLess(done["progress"]["bytes"] / (time.monotonic() - began), 1.1 * RATE)  # at its pace
        # It is over and nothing moves; its grace period is not.
        late = self.all_said(("k0", "k2"))
        self.assertEqual(set(late), {EARLY, OWNS, NOTHING})
        # Another one streams the same slots.
        migration = self.add("k4")
        wait_for("one that moves again", lambda: any(self.clean(*it) == MOVES for it in late[EARLY]), 60)
        self.assertEqual(self.ended(migration, 240)["status"], "completed")
        # All is over, and nobody knows of k2 whether it holds everything.
        self.keepers["k2"].kill()
        name, slot = wait_for("the grace period to be over", self.not_known_to_be_held, 90)
        self.assertEqual(self.clean(name, slot, force="true", reason="the disk is needed"), "")
        wait_for("it to be gone", lambda: not self.held(name, slot), 60)
        log = self.nodes[0].log_text()
        self.assertRegex(log, rf'msg="a cleanup without its checks was asked for" node={name} slot={slot} reason="the disk is needed"')
        self.assertEqual(log.count("a cleanup without its checks"), 1)
        self.keepers["k2"].start()
        wait_for("former owners to be cleaned", lambda: not any(n["slots_to_clean"] for n in self.nodes_of_ring()), 120)
        self.assertTrue(all(len(who) == 2 for who in self.copies().values()), self.copies())
        self.check_answers(3, tenants=24)

    def not_known_to_be_held(self):
        """A former owner and a slot of which it still has blobs; None: there is none yet."""
        for name in ("k0", "k1"):
            for slot in sorted(int(f.name, 16) for f in (self.keepers[name].disk / "blobs").iterdir()):
                if self.held(name, slot) and self.clean(name, slot) == LACKS:
                    return name, slot
        return None


if __name__ == "__main__":
    unittest.main()
