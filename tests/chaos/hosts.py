"""hosts - the machines of the campaign: network namespaces on one bridge, with nft rules between them.

Nothing here has a name outside of this process: the namespaces are held by open descriptors, the bridge
lives in a namespace of its own, and tmpfs disks are mounted in a private mount namespace. So whatever
happens to the driver, even SIGKILL, the kernel takes everything down with it.

Where that is not permitted every host is the loopback and faults are left to the relays (proxy.py);
`Hosts.why_plain` says why."""
import contextlib
import ctypes
import os
import shutil
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from ports import free_port  # noqa: E402

CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
MS_REC, MS_PRIVATE = 0x4000, 1 << 18
libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def enter(fd):
    """Move the calling thread, and whatever it starts from now on, into a network namespace."""
    check(libc.setns(fd, CLONE_NEWNET), "setns")


def new_namespace():
    """A descriptor of a fresh network namespace; the thread that made it is gone."""
    made = []

    def make():
        try:
            check(libc.unshare(CLONE_NEWNET), "unshare")
            made.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC))
        except OSError as e:
            made.append(e)
    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if isinstance(made[0], OSError):
        raise made[0]
    return made[0]


class Host:
    """One machine. `with host.inside():` runs the calling thread there."""

    def __init__(self, hosts, name, ip, fd=None):
        self.hosts, self.name, self.ip, self.fd = hosts, name, ip, fd

    @contextlib.contextmanager
    def inside(self):
        if self.fd is None:
            yield
            return
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            enter(self.fd)
            yield
        finally:
            enter(before)
            os.close(before)

    def settle(self):
        """The calling thread lives here from now on."""
        if self.fd is not None:
            enter(self.fd)

    def port(self, wanted):
        return free_port() if self.fd is None else wanted

    def nft(self, text):
        if self.fd is None:
            return
        with self.inside():
            done = subprocess.run(["nft", "-f", "-"], input=text, text=True, capture_output=True, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f"{self.name}: nft: {done.stderr.strip()}")

    def refuse_from(self, other, percent=100):
        """Packets from @other are dropped on arrival, all or some."""
        some = "" if percent >= 100 else f"numgen random mod 100 < {percent} "
        self.nft(f"add rule ip chaos input ip saddr {other.ip} {some}drop\n")

    def accept_from(self, other):
        """Undo every refuse_from of @other: rules of others stay."""
        if self.fd is None:
            return
        with self.inside():
            listed = subprocess.run(["nft", "-a", "list", "chain", "ip", "chaos", "input"], text=True,
                                    capture_output=True, timeout=60).stdout
        rules = [line.rsplit("# handle ", 1)[1].strip() for line in listed.splitlines()
                 if f"ip saddr {other.ip} " in line and "# handle " in line]
        if rules:
            self.nft("".join(f"delete rule ip chaos input handle {handle}\n" for handle in rules))

    def heal(self):
        self.nft("flush chain ip chaos input\n")


class Hosts:
    def __init__(self, names, plain=False):
        self.why_plain = "asked for" if plain else self.obstacle()
        self.mounts = False
        self.by_name = {}
        if not self.why_plain:
            try:
                self.build(names)
            except (OSError, RuntimeError) as e:
                self.why_plain = str(e)
        if self.why_plain:
            self.by_name = {name: Host(self, name, "127.0.0.1") for name in names}
        self.own_mounts()

    def __getitem__(self, name):
        return self.by_name[name]

    @staticmethod
    def obstacle():
        if os.getuid() != 0:
            return "not root"
        for program in ("ip", "nft", "setpriv"):
            if not shutil.which(program):
                return f"{program} is not installed"
        return ""

    def build(self, names):
        switch = new_namespace()
        script = ["link add br0 type bridge", "link set br0 up"]
        for number, name in enumerate(names, 1):
            host = Host(self, name, f"10.77.0.{number}", new_namespace())
            self.by_name[name] = host
            script += [f"link add v{number} type veth peer name eth0 netns /proc/{os.getpid()}/fd/{host.fd}",
                       f"link set v{number} master br0", f"link set v{number} up"]
        self.switch = Host(self, "switch", "", switch)
        self.ip(self.switch, script)
        for host in self.by_name.values():
            self.ip(host, ["link set lo up", f"addr add {host.ip}/24 dev eth0", "link set eth0 up"])
            host.nft("add table ip chaos\n"
                     "add chain ip chaos input { type filter hook input priority 0; policy accept; }\n"
                     # Does loss work here too? Better found out now.
                     "add rule ip chaos input ip saddr 10.77.255.255 numgen random mod 100 < 5 drop\n")
            host.heal()

    @staticmethod
    def ip(host, lines):
        with host.inside():
            done = subprocess.run(["ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True,
                                  capture_output=True, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f"ip: {done.stderr.strip() or done.stdout.strip()}")

    def own_mounts(self):
        """Mounts made from now on are seen by this process and its children alone."""
        try:
            check(libc.unshare(CLONE_NEWNS), "unshare")
            check(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "mount")
            self.mounts = True
        except OSError:
            self.mounts = False

    def disk(self, folder, mib):
        """A disk of that size mounted on @folder; False if that is not permitted."""
        os.makedirs(folder, exist_ok=True)
        if not self.mounts:
            return False
        return libc.mount(b"tmpfs", folder.encode(), b"tmpfs", 0, f"size={mib}m".encode()) == 0

    def undisk(self, folder):
        libc.umount2(folder.encode(), 2)


def partition(a, b):
    a.refuse_from(b)
    b.refuse_from(a)


def reunite(a, b):
    a.accept_from(b)
    b.accept_from(a)
