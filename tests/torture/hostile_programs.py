"""Hostile programs, each harmless even where a sandbox fails: bounded in number, size and time.

Every program that finds itself able to do what it must not raises `Escaped`. Fields in double
angle brackets are filled in by the test.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent

GOOD = "[[0.5, 0.5]] * 4"
"""A value whose fitness is 0.5."""

_HEAD = f"""
import os, sys, time, ctypes, signal
class Escaped(Exception): pass
GOOD = {GOOD}
def fork_and(action, seconds=20):
    pid = os.fork()
    if pid == 0:
        signal.alarm(seconds)
        try:
            action()
        finally:
            os._exit(0)
    return pid
"""


@dataclass(frozen=True)
class Hostile:
    """A program, the statuses that are right, and text its error must hold."""

    name: str
    source: str
    statuses: tuple[str, ...]
    says: str = ""
    needs: tuple[str, ...] = ()
    """Layers without which the program may get away with it."""

    def program(self, **fields: object) -> str:
        """Source with its fields filled in."""
        text = _HEAD + dedent(self.source)
        for name, value in fields.items():
            text = text.replace(f"<<{name}>>", str(value))
        return text


def _returns(name: str, value: str, *statuses: str, says: str = "") -> Hostile:
    source = f"""
        import numpy as np
        def construct():
            return {value}
    """
    return Hostile(f"returns {name}", source, statuses, says)


def _attempt(name: str, body: str, *, needs: tuple[str, ...] = ()) -> Hostile:
    """A program that tries something, escapes if that works, else returns a good value."""
    indented = "\n".join(f"        {line}" for line in dedent(body).strip().splitlines())
    source = f"""
def construct():
    try:
{indented}
    except OSError:
        return GOOD
    raise Escaped({name!r})
"""
    return Hostile(name, source, ("ok",), needs=needs)


TIME = [
    Hostile("endless loop", "def construct():\n    while True: pass", ("timeout",)),
    Hostile(
        "endless loop inside C",
        "import itertools\ndef construct():\n    return sum(itertools.repeat(1))",
        ("timeout",),
    ),
    Hostile("endless loop on import", "while True: pass", ("timeout",)),
    Hostile(
        "sleeps with all signals ignored",
        """
        def construct():
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
                signal.signal(number, signal.SIG_IGN)
            time.sleep(20)
        """,
        ("timeout",),
    ),
    Hostile(
        "fork bomb",
        """
        def construct():
            for _ in range(300):
                try:
                    fork_and(lambda: time.sleep(20))
                except OSError:
                    time.sleep(0.01)
            time.sleep(20)
        """,
        ("timeout",),
    ),
    Hostile(
        "daemon that holds stdout",
        """
        def daemon():
            os.setsid()
            fork_and(lambda: time.sleep(20))
        def construct():
            fork_and(daemon)
            time.sleep(0.1)
            return GOOD
        """,
        ("ok",),
    ),
    Hostile(
        "executed child in the background",
        """
        import subprocess
        def construct():
            code = "import time; time.sleep(20)"
            subprocess.Popen([sys.executable, "-c", code, "<<token>>"], start_new_session=True)
            return GOOD
        """,
        ("ok",),
    ),
    Hostile(
        "threads that outlive the call",
        """
        import threading
        def construct():
            for _ in range(8):
                threading.Thread(target=time.sleep, args=(20,)).start()
            return GOOD
        """,
        ("ok",),
    ),
    Hostile(
        "hundreds of threads",
        """
        import threading
        def construct():
            for _ in range(500):
                threading.Thread(target=time.sleep, args=(20,), daemon=True).start()
            return GOOD
        """,
        ("error",),
        says="can't start new thread",
        needs=("processes",),
    ),
    Hostile(
        "waits for input",
        "def construct():\n    return input()",
        ("error",),
        says="EOFError",
    ),
]

SIZE = [
    Hostile(
        "allocation of 100 GB",
        "def construct():\n    return bytearray(100 * 2**30)",
        ("error",),
        says="out of memory",
        needs=("limits",),
    ),
    Hostile(
        "1 GB of output",
        """
        def construct():
            for _ in range(2**14):
                os.write(1, b"x" * 2**16)
            return GOOD
        """,
        ("ok", "timeout"),
    ),
    Hostile(
        "huge file",
        """
        def construct():
            with open("huge", "wb") as file:
                for _ in range(64):
                    file.write(b"x" * 2**20)
            raise Escaped
        """,
        ("error",),
        says="OSError",
        needs=("limits",),
    ),
    Hostile(
        "many files",
        """
        def construct():
            for number in range(8):
                with open(str(number), "wb") as file:
                    file.write(b"x" * (4 * 2**20))
            raise Escaped
        """,
        ("error",),
        says="No space left",
        needs=("mount",),
    ),
    Hostile(
        "shared memory",
        """
        from multiprocessing.shared_memory import SharedMemory
        def construct():
            for _ in range(8):
                SharedMemory(create=True, size=4 * 2**20).buf[:] = b"x" * (4 * 2**20)
            raise Escaped
        """,
        ("error", "timeout"),
        needs=("mount",),
    ),
    _attempt(
        "anonymous memory files",
        "os.memfd_create('x')",
        needs=("seccomp",),
    ),
    Hostile(
        "endless paths in its output",
        """
        def construct():
            os.write(2, b"/a" * 8000)
            raise ValueError("/b" * 2000)
        """,
        ("error",),
    ),
    Hostile(
        "flood of warnings",
        """
        import warnings
        def construct():
            warnings.simplefilter("always")
            for number in range(3000):
                warnings.warn(f"flood {number}")
            return GOOD
        """,
        ("ok", "timeout"),
    ),
    Hostile(
        "deep recursion",
        "def construct():\n    return construct()",
        ("error",),
        says="RecursionError",
    ),
    Hostile(
        "deep recursion past the limit",
        """
        def construct():
            sys.setrecursionlimit(10**9)
            def dive(n):
                return 0 if n > 10**7 else max(map(dive, [n + 1]))
            return dive(0)
        """,
        ("error", "timeout"),
    ),
    Hostile(
        "enormous exception",
        "def construct():\n    raise ValueError('x' * 10**7)",
        ("error",),
        says="ValueError",
    ),
    Hostile(
        "many unreadable folders",
        """
        def construct():
            for _ in range(20):
                os.mkdir("d")
                open("d/f", "w").close()
                os.symlink("<<home>>", "d/link")
                os.mkdir("e")
                os.chmod("e", 0)
                os.chdir("d")
            os.chmod(".", 0)
            return GOOD
        """,
        ("ok", "error"),
    ),
    Hostile(
        "deep tree of unreadable folders",
        """
        def construct():
            for _ in range(1500):
                os.mkdir("d")
                os.chdir("d")
            os.chmod(".", 0)
            return GOOD
        """,
        ("ok", "error"),
        needs=("mount",),  # elsewhere the file system takes its time to remove them
    ),
]

SECRETS = [
    Hostile(
        "reads the environment",
        """
        def construct():
            if "<<secret>>" in repr(dict(os.environ)):
                raise Escaped
            return GOOD
        """,
        ("ok",),
    ),
    Hostile(
        "reads environments in /proc",
        """
        import glob
        def construct():
            for path in glob.glob("/proc/*/environ") + ["/proc/<<pid>>/environ"]:
                try:
                    with open(path, "rb") as file:
                        found = file.read()
                except OSError:
                    continue
                if b"<<secret>>" in found:
                    raise Escaped(path)
            return GOOD
        """,
        ("ok",),
        needs=("landlock",),
    ),
    _attempt("reads the log", "open('<<log>>').read()", needs=("landlock",)),
    _attempt("reads the home folder", "os.listdir('<<home>>')", needs=("landlock",)),
    _attempt("reads the project", "open('<<root>>/pyproject.toml')", needs=("landlock",)),
    _attempt(
        "reads through a link",
        "os.symlink('<<log>>', 'link'); open('link').read()",
        needs=("landlock",),
    ),
    _attempt("writes the log", "open('<<log>>', 'a').write('forged')", needs=("landlock",)),
    _attempt("deletes the log", "os.remove('<<log>>')", needs=("landlock",)),
    Hostile(
        "writes outside",
        """
        def construct():
            for place in ("<<home>>", "/", "/dev", "/etc", "/usr", sys.prefix, sys.base_prefix):
                path = os.path.join(place, "<<token>>")
                try:
                    open(path, "w").close()
                except OSError:
                    continue
                os.remove(path)
                raise Escaped(path)
            return GOOD
        """,
        ("ok",),
        needs=("landlock",),
    ),
    _attempt(
        "connects to a local server",
        """
        import socket
        socket.create_connection(("127.0.0.1", <<port>>), timeout=1)
        """,
        needs=("seccomp",),
    ),
    _attempt(
        "sends to the network",
        """
        import socket
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 9))
        """,
        needs=("seccomp",),
    ),
    _attempt(
        "connects to a local socket file",
        """
        import socket
        socket.socket(socket.AF_UNIX).connect("<<socket>>")
        """,
        needs=("seccomp", "landlock"),
    ),
]

FORGERY = [
    Hostile(
        "patches NumPy, json, msgspec and builtins",
        """
        import builtins, json, numpy as np, msgspec
        def construct():
            np.isfinite = np.asarray = np.all = lambda *a, **k: np.ones((4, 2))
            json.dumps = lambda *a, **k: '{"fitness": 99}'
            builtins.float = builtins.isinstance = lambda *a: True
            msgspec.msgpack.encode = lambda *a, **k: b"\\x93\\x01"
            return [float("nan")]
        """,
        ("error", "invalid"),
    ),
    Hostile(
        "patches the sandbox and the evaluator",
        """
        def construct():
            for name, module in list(sys.modules.items()):
                if name.startswith("evo") or "evaluator" in name:
                    for key in ("score", "evaluate", "encode", "send", "Scored", "Evaluation"):
                        setattr(module, key, lambda *a, **k: {"fitness": 99.0})
            return "nothing"
        """,
        ("error", "invalid"),
    ),
    Hostile(
        "writes results to every descriptor",
        """
        import msgspec
        forged = {"status": "ok", "fitness": 99.0, "metrics": {}}
        def construct():
            for descriptor in range(1, 256):
                try:
                    os.write(descriptor, msgspec.msgpack.encode(forged))
                except OSError:
                    pass
            return GOOD
        """,
        ("error",),
    ),
    Hostile(
        "sends two values",
        """
        import msgspec
        def construct():
            value = msgspec.msgpack.encode([[9.0, 9.0]] * 4)
            os.write(3, msgspec.msgpack.encode(value))
            return GOOD
        """,
        ("error",),
        says="no well-formed value",
    ),
    Hostile(
        "claims a fitness in place of a value",
        """
        import msgspec
        def construct():
            os.write(3, msgspec.msgpack.encode({"status": "ok", "fitness": 99.0}))
            os._exit(0)
        """,
        ("error",),
        says="not its to send",
    ),
    Hostile(
        "sends bytes that are no value",
        """
        import msgspec
        def construct():
            os.write(3, msgspec.msgpack.encode(b"\\xdd\\xff\\xff\\xff\\xff" * 1000))
            os._exit(0)
        """,
        ("error",),
        says="no value",
    ),
    Hostile(
        "sends more than allowed",
        """
        def construct():
            while True:
                os.write(3, b"x" * 2**16)
        """,
        ("invalid",),
        says="larger than",
    ),
    Hostile(
        "writes forged results into files",
        """
        def construct():
            for name in ("result.json", "evaluation.json", "fitness", "../result.json"):
                with open(name, "w") as file:
                    file.write('{"status": "ok", "fitness": 99.0, "combined_score": 99.0}')
            return [[0.0, 0.0]]
        """,
        ("invalid",),
    ),
]

ENDINGS = [
    Hostile(
        "os._exit before returning",
        "def construct():\n    os._exit(0)",
        ("error",),
        says="without returning",
    ),
    Hostile(
        "os._exit after returning",
        """
        import threading
        def late():
            time.sleep(0.0005)
            os._exit(0)
        def construct():
            threading.Thread(target=late).start()
            return GOOD
        """,
        ("ok", "error"),
    ),
    Hostile("sys.exit", "def construct():\n    sys.exit(0)", ("error",), says="sys.exit"),
    Hostile(
        "kills itself",
        "def construct():\n    os.kill(os.getpid(), signal.SIGKILL); ctypes.string_at(0)",
        ("error",),
        says="ended by signal",
    ),
    Hostile(
        "becomes another program",
        "def construct():\n    os.execv('/bin/sh', ['sh', '-c', 'exit 0'])",
        ("error",),
        says="without returning",
    ),
    Hostile(
        "closes every descriptor",
        "def construct():\n    os.closerange(0, 4096)\n    return GOOD",
        ("error",),
    ),
    Hostile(
        "exception that cannot be shown",
        """
        class Nasty(BaseException):
            def __str__(self): raise self
            __repr__ = __str__
        def construct():
            raise Nasty
        """,
        ("error",),
    ),
    Hostile(
        "exception that never ends to be shown",
        """
        class Nasty(Exception):
            def __str__(self):
                while True: pass
            __repr__ = __str__
        def construct():
            raise Nasty
        """,
        ("timeout",),
    ),
    Hostile(
        "exception with lone surrogates",
        "def construct():\n    raise ValueError('\\ud800')",
        ("error",),
        says="ud800",
    ),
    Hostile(
        "output streams that raise",
        """
        class Nasty:
            def __getattr__(self, name): raise KeyboardInterrupt
        def construct():
            sys.stdout = sys.stderr = Nasty()
            return GOOD
        """,
        ("ok",),
    ),
    Hostile("syntax error", "def construct(:", ("error",), says="SyntaxError"),
    Hostile("null bytes", "x = '\0'", ("error",)),
    Hostile("no such function", "def other(): pass", ("error",), says="construct() or build()"),
    Hostile(
        "missing package", "import torch_missing", ("error",), says="pip install torch_missing"
    ),
]

SYSTEM = [
    Hostile(
        "signals to its parent and to the driver",
        """
        def construct():
            if os.getppid() > 1:
                os.kill(os.getppid(), signal.SIGKILL)
                time.sleep(20)
            try:
                os.kill(<<pid>>, 0)
            except OSError:
                return GOOD
            raise Escaped
        """,
        ("ok", "error"),
        needs=("pid",),
    ),
    Hostile(
        "ptrace of the driver",
        """
        def construct():
            libc = ctypes.CDLL(None, use_errno=True)
            for pid in {<<pid>>, max(os.getppid(), 1)}:
                if libc.ptrace(16, pid, 0, 0) == 0:
                    libc.ptrace(17, pid, 0, 0)
                    raise Escaped
            return GOOD
        """,
        ("ok",),
        needs=("seccomp",),
    ),
    Hostile(
        "system calls by number",
        """
        def construct():
            libc = ctypes.CDLL(None, use_errno=True)
            for number in (467, 300):  # open_tree_attr, fanotify_init
                if libc.syscall(number, -100, b"/", 0, 0, 0) >= 0:
                    raise Escaped(number)
            calls = {"unshare": (0x10000000,), "setns": (0, 0), "chroot": (b".",),
                     "mount": (b"none", b".", b"tmpfs", 0, None), "umount2": (b"/proc", 2)}
            for name, arguments in calls.items():
                if getattr(libc, name)(*arguments) == 0:
                    raise Escaped(name)
            return GOOD
        """,
        ("ok",),
        needs=("seccomp",),
    ),
    Hostile(
        "lifts its own limits",
        """
        import resource
        def construct():
            for name in ("RLIMIT_AS", "RLIMIT_FSIZE", "RLIMIT_NPROC", "RLIMIT_NOFILE"):
                try:
                    resource.setrlimit(getattr(resource, name), (2**40, 2**40))
                except (OSError, ValueError):
                    continue
                raise Escaped(name)
            return GOOD
        """,
        ("ok",),
        needs=("limits", "user"),
    ),
    _attempt(
        "becomes root",
        "os.setresuid(0, 0, 0); os.seteuid(0); open('/etc/shadow').read()",
        needs=("user",),
    ),
    _attempt(
        "sets the clock",
        "time.clock_settime(time.CLOCK_REALTIME, time.time())",
        needs=("user",),
    ),
    Hostile(
        "changes locale, time zone and hash seed",
        """
        import locale
        def construct():
            os.environ.update(TZ="Asia/Tokyo", LC_ALL="C", PYTHONHASHSEED="7")
            time.tzset()
            locale.setlocale(locale.LC_ALL, "C")
            return GOOD
        """,
        ("ok",),
    ),
]

VALUES = [
    _returns("an object array", "np.array([object()] * 4)", "invalid", says="object"),
    _returns("NaN", "np.full((4, 2), np.nan)", "invalid", says="not finite"),
    _returns("infinity", "[[float('inf'), 0]] * 4", "invalid", says="not finite"),
    _returns("complex numbers", "np.ones((4, 2)) * 1j", "invalid", says="complex128"),
    _returns("a complex number", "1j", "invalid", says="complex"),
    _returns("strings", "[['a', 'b']] * 4", "invalid"),
    _returns("an array of strings", "np.array(['a'])", "invalid"),
    _returns("nested lists", "[[0.5, 0.5]] * 4", "ok"),
    _returns(
        "tuples and NumPy scalars", "tuple((np.float32(0.5), np.int8(0)) for _ in range(4))", "ok"
    ),
    _returns("lone surrogates", "['\\ud800']", "invalid", says="surrogates"),
    _returns("a huge integer", "[10**400]", "invalid", says="64 bits"),
    _returns("a huge array", "np.zeros(10**8)", "invalid", says="larger than"),
    _returns("a huge view", "np.broadcast_to(np.zeros(1), (10**9, 10**9))", "invalid"),
    _returns("an array of nothing", "np.zeros((12_000_000, 0))", "invalid", says="without numbers"),
    _returns("a long list", "[0] * 10**7", "invalid", says="larger than"),
    _returns("a set", "{1, 2}", "invalid", says="set"),
    _returns("None", "None", "invalid"),
    _returns("bytes", "b'abc'", "invalid", says="bytes"),
    _returns("a masked array", "np.ma.masked_all((4, 2))", "invalid", says="MaskedArray"),
    _returns("dates", "np.array(['2020'], dtype='M8[D]')", "invalid"),
    _returns("integer keys", "{1: 2}", "invalid", says="key"),
    Hostile(
        "returns an object with __array__",
        """
        import numpy as np
        class Sly:
            def __array__(self, *a, **k): return np.full((4, 2), 99.0)
            __class__ = np.ndarray
        def construct():
            return Sly()
        """,
        ("invalid",),
        says="Sly",
    ),
    Hostile(
        "returns a list that lies",
        """
        class Sly(list):
            def __iter__(self):
                while True: yield 1
            def __len__(self): return -1
        def construct():
            return Sly(GOOD)
        """,
        ("ok",),
    ),
    Hostile(
        "returns a list within itself",
        "def construct():\n    x = []\n    x.append(x)\n    return x",
        ("invalid",),
        says="nested deeper",
    ),
    Hostile(
        "returns a list of lists of the same list",
        """
        def construct():
            x = [0.0] * 10
            for _ in range(30):
                x = [x] * 10
            return x
        """,
        ("invalid",),
        says="larger than",
    ),
    Hostile(
        "returns a type with a hostile name",
        """
        class Meta(type):
            @property
            def __name__(cls): raise KeyboardInterrupt
        class Sly(metaclass=Meta): pass
        def construct():
            return Sly()
        """,
        ("invalid", "error"),
    ),
]

ALL = [*TIME, *SIZE, *SECRETS, *FORGERY, *ENDINGS, *SYSTEM, *VALUES]
