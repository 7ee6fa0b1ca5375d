"""test_package.py - the packages on a machine that never built anything.

A Debian 12 made by debootstrap, without a compiler, gets the .deb and nothing but its dependencies; the
program then runs there, in a chroot, as the services would run it."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[2]
sys.path.insert(0, str(TOP / "tests" / "lib"))
from ports import free_port  # noqa: E402

LOG = "install.log"


def run(*args, **kwargs):
    done = subprocess.run(args, capture_output=True, text=True, **kwargs)
    if done.returncode != 0:
        raise AssertionError(f"{args}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done


def run_as_user(root, *args):
    return run("chroot", "--userspec=promfabric:promfabric", root, "/usr/bin/promfabric", *args)


def ask(port, path, **params):
    url = f"http://127.0.0.1:{port}{path}?" + urllib.parse.urlencode(params)
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)


def wait_until_ready(process, port, log):
    for _ in range(600):
        if process.poll() is not None:
            raise AssertionError(f"ended with {process.returncode}:\n{log.read_text()[-2000:]}")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise AssertionError(f"not ready:\n{log.read_text()[-2000:]}")


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("a chroot needs root")
        if not shutil.which("debootstrap"):
            raise unittest.SkipTest("debootstrap is not installed")
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="pf-package-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.root = cls.folder / "root"
        run(TOP / "scripts" / "package", cls.folder / "out")
        run(HERE / "bare-debian", cls.root)
        run("mount", "-t", "proc", "proc", cls.root / "proc")
        cls.addClassCleanup(subprocess.run, ["umount", "-l", cls.root / "proc"])
        cls.deb = next((cls.folder / "out").glob("*.deb"))
        cls.tar = next((cls.folder / "out").glob("*.tar.gz"))
        shutil.copy(cls.deb, cls.root / "promfabric.deb")
        with open(cls.folder / LOG, "w", encoding="utf-8") as log:
            installed = subprocess.run(
                ["chroot", cls.root, "apt-get", "install", "-y", "--no-install-recommends",
                 "/promfabric.deb"], stdout=log, stderr=log,
                env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"})
        if installed.returncode != 0:
            raise AssertionError((cls.folder / LOG).read_text()[-3000:])

    def start(self, name, *args, env=None):
        """The installed program as the user of the services; its process and log."""
        log = self.folder / f"{name}.log"
        with open(log, "w", encoding="utf-8") as out:
            process = subprocess.Popen(
                [shutil.which("chroot"), "--userspec=promfabric:promfabric", self.root,
                 "/usr/bin/promfabric", *args],
                stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                env={"PATH": "/usr/bin:/bin", "HOME": "/var/lib/promfabric", **(env or {})})
        self.addCleanup(self.end, process)
        return process, log

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        return process.wait(30)

    def test_there_is_no_compiler(self):
        for program in ("usr/bin/gcc", "usr/bin/cc", "usr/bin/clang", "usr/bin/make", "usr/bin/cmake"):
            self.assertFalse((self.root / program).exists(), program)

    def test_up_with_demo_data_answers(self):
        port = free_port()
        process, log = self.start("up", "up", "--demo", "--workers=2", f"--http-listen=127.0.0.1:{port}")
        wait_until_ready(process, port, log)
        answer = ask(port, "/api/v1/query", query="count(up)")
        self.assertEqual(answer["status"], "success", answer)
        self.assertGreater(float(answer["data"]["result"][0]["value"][1]), 0)
        self.assertEqual(self.end(process), 0, log.read_text()[-2000:])

    def environment(self, role):
        """What systemd would read for a role."""
        found = {}
        unit = (self.root / f"lib/systemd/system/promfabric-{role}.service").read_text().splitlines()
        for line in unit:
            key, _, value = line.partition("=")
            if key == "EnvironmentFile":
                lines = (self.root / value.removeprefix("-").lstrip("/")).read_text().splitlines()
            elif key == "Environment":
                lines = [value]
            else:
                continue
            found.update(text.split("=", 1) for text in lines if text and not text.startswith("#"))
        return found

    def test_the_services_run_with_their_configuration(self):
        api_port, http_port, control_port = free_port(), free_port(), free_port()
        for folder in ("promfabric-api", "promfabric-worker"):  # CacheDirectory=
            (self.root / "var/cache" / folder).mkdir(exist_ok=True)
            run("chroot", self.root, "chown", "promfabric:promfabric", f"/var/cache/{folder}")
        end = int(time.time())
        lines = "".join(f"orders_total{{shop=\"a\"}} {i} {end - 600 + i * 60}\n" for i in range(10))
        (self.root / "tmp/orders.om").write_text("# TYPE orders counter\n" + lines + "# EOF\n")
        store = self.environment("api")["PROMFABRIC_STORE"]
        run_as_user(self.root, "import", f"--store={store}", "/tmp/orders.om")
        worker, worker_log = self.start("worker", "worker", f"--http-listen=127.0.0.1:{http_port}",
                                        f"--control-listen=127.0.0.1:{control_port}",
                                        env=self.environment("worker"))
        api, api_log = self.start("api", "api", f"--http-listen=127.0.0.1:{api_port}", env={
            **self.environment("api"), "PROMFABRIC_WORKER": f"127.0.0.1:{control_port}"})
        wait_until_ready(worker, http_port, worker_log)
        wait_until_ready(api, api_port, api_log)
        answer = ask(api_port, "/api/v1/query", query="orders_total", time=end - 60)
        self.assertEqual(answer["data"]["result"][0]["value"][1], "9", answer)
        self.assertEqual(self.end(api), 0, api_log.read_text()[-2000:])
        self.assertEqual(self.end(worker), 0, worker_log.read_text()[-2000:])

    def test_the_ingest_service_keeps_records_over_a_restart(self):
        folder = self.root / "var/lib/promfabric-ingest"  # StateDirectory=
        folder.mkdir(exist_ok=True)
        run("chroot", self.root, "chown", "promfabric:promfabric", "/var/lib/promfabric-ingest")
        ports = free_port(), free_port()
        for start in ("offer", "look"):
            ingest, log = self.start("ingest", "ingest", f"--http-listen=127.0.0.1:{ports[0]}",
                                     f"--peer-listen=127.0.0.1:{ports[1]}",
                                     env={**self.environment("ingest"), "PROMFABRIC_BOOTSTRAP": "true"})
            wait_until_ready(ingest, ports[0], log)
            queue = f"--url=http://127.0.0.1:{ports[0]}"
            if start == "offer":
                run_as_user(self.root, "queue", "create", queue, "orders")
                run_as_user(self.root, "queue", "offer", queue, "orders", "kept")
            self.assertIn("kept", run_as_user(self.root, "queue", "tail", queue, "orders").stdout)
            self.assertEqual(self.end(ingest), 0, log.read_text()[-2000:])

    def test_the_archive_runs_where_it_is_unpacked(self):
        run("tar", "-C", self.root / "opt", "-xzf", self.tar)
        program = next((self.root / "opt").glob("promfabric-*/bin/promfabric"))
        inside = "/" + str(program.relative_to(self.root))
        self.assertTrue(run("chroot", self.root, inside, "version").stdout.startswith("promfabric "))
        libraries = run("chroot", self.root, "ldd", inside).stdout
        self.assertNotIn("not found", libraries)
        self.assertIn("/opt/promfabric-", libraries)

    def test_every_command_has_a_manual_page_and_completion(self):
        commands = [line.split()[0] for line in
                    run("chroot", self.root, "promfabric", "--help").stdout.splitlines()
                    if line.startswith("  ")]
        completion = (self.root / "usr/share/bash-completion/completions/promfabric").read_text()
        listed = run("dpkg-deb", "-c", self.deb).stdout
        self.assertIn("api", commands)
        self.assertTrue((self.root / "usr/share/doc/promfabric/copyright").exists())
        for command in commands:
            self.assertIn(f"    {command}) words=", completion)
            self.assertIn(f"./usr/share/man/man1/promfabric-{command}.1.gz", listed)
        words = run("bash", "-c", f"""
            source {self.root}/usr/share/bash-completion/completions/promfabric
            COMP_WORDS=(promfabric worker --disk-b) COMP_CWORD=2; _promfabric
            printf '%s' "${{COMPREPLY[*]}}" """).stdout
        self.assertEqual(words, "--disk-budget")

    def test_units_are_valid_and_confined(self):
        units = sorted((self.root / "lib/systemd/system").glob("promfabric-*.service"))
        self.assertEqual(len(units), 3)
        for unit in units:
            text = unit.read_text()
            for line in ("User=promfabric", "NoNewPrivileges=yes", "ProtectSystem=strict",
                         "CapabilityBoundingSet=", "MemoryDenyWriteExecute=yes"):
                self.assertIn(f"\n{line}\n", text)
        if shutil.which("systemd-analyze"):
            checked = subprocess.run(["systemd-analyze", "verify", "--recursive-errors=no", "--man=no",
                                      f"--root={self.root}", *[unit.name for unit in units]],
                                     capture_output=True, text=True)
            self.assertNotIn("promfabric-", checked.stderr, checked.stderr)

    def test_without_the_package_the_store_stays(self):
        """The last by name: nothing runs after it."""
        kept = self.root / "var/lib/promfabric/store/kept"
        kept.write_text("data")
        run("chroot", self.root, "dpkg", "--purge", "promfabric")
        self.assertFalse((self.root / "usr/bin/promfabric").exists())
        self.assertFalse((self.root / "etc/promfabric").exists())
        self.assertTrue(kept.exists())


if __name__ == "__main__":
    unittest.main()
