import functools
import inspect
import itertools
import linecache
import sys
import textwrap
from types import ModuleType

import numpy as np
import pytest

from evo.capture import NotCaptured, capture, own_source

NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def notebook(monkeypatch):
    """Puts a module without a file in place of the main one, as in a kernel."""
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))


def cell(text: str) -> dict[str, object]:
    """Runs a cell as a kernel does, in a notebook of its own, and returns its names."""
    name, source = f"/tmp/ipykernel_0/{next(NUMBERS)}.py", textwrap.dedent(text)
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    sys.modules["__main__"] = ModuleType("__main__")
    names = vars(sys.modules["__main__"])
    exec(compile(source, name, "exec", dont_inherit=True), names)
    return names


CAPTURED = {
    "an import": "import statistics\ndef f(x): return statistics.mean([x, 3])",
    "an import with another name": "import numpy as np\ndef f(x): return float(np.sqrt(x))",
    "an import inside": "def f(x):\n    import math\n    return math.sqrt(x)",
    "a submodule": "import xml.etree.ElementTree\n"
    "def f(x): return xml.etree.ElementTree.Element('a').tag * x",
    "a star import": "from math import *\ndef f(x): return sqrt(x) + pi + (0 if x < inf else 1)",
    "a name that shadows a module": "json = {'a': 1}\ndef f(x): return x + json['a']",
    "a function that shadows a builtin": "def sum(values): return 7\ndef f(x): return sum([x])",
    "a constant": "RATE = 0.5\ndef f(x): return x * RATE",
    "infinity and nan": "A, B = float('inf'), float('nan')\ndef f(x): return (x < A) + (B == B)",
    "an array that holds nan": "import numpy as np\nT = np.array([[1, np.nan], [3, 4]])\n"
    "def f(x): return x * float(np.nansum(T))",
    "an empty array": "import numpy as np\nT = np.zeros((0, 3))\ndef f(x): return x + T.shape[1]",
    "nested containers": "import math\nT = {'a': [(1,), {2}, frozenset({3})], 'b': math.inf}\n"
    "def f(x): return x + len(T['a'])",
    "functions in a container": "def twice(x): return 2 * x\nimport operator\n"
    "T = {'twice': twice, 'neg': operator.neg}\ndef f(x): return T['neg'](T['twice'](x))",
    "a helper": "def g(x): return x + 1\ndef f(x): return g(x)",
    "recursion": "def f(x): return 1 if x < 2 else x * f(x - 1)",
    "functions that call each other": "def f(x): return x > 0 and g(x - 1)\n"
    "def g(x): return x == 0 or f(x - 1)",
    "a closure": "def outer(k):\n    def f(x):\n        return x * k\n    return f\nf = outer(3)",
    "two closures with equal variables": "def outer(k):\n    def g(x):\n        return x * k\n"
    "    return g\na, b = outer(3), outer(5)\ndef f(x): return a(x) + b(x)",
    "a lambda": "K = 2\nf = lambda x: x + K",
    "a lambda of a constant": "p = (lambda x: 1, lambda x: -1, lambda x: x)\nf = p[1]",
    "a constant beside a sum": "p = (lambda x: x + 2, lambda x, y=lambda: 3: 1 + 1)\nf = p[1]",
    "two lambdas in a line": "p = (lambda x: x + 1, lambda x: x + 2)\nf = p[1]",
    "default values": "N = 3\ndef f(x, n=N, *, m=N + 1): return x + n + m\nN = 100",
    "a decorator": "import functools\ndef plus(g):\n    @functools.wraps(g)\n"
    "    def inner(x):\n        return g(x) + 1\n    return inner\n@plus\ndef f(x): return x",
    "a decorator without wraps": "def plus(g):\n    def inner(x):\n        return g(x) + 1\n"
    "    return inner\n@plus\ndef f(x): return x\n",
    "two decorated functions": "def plus(g):\n    def inner(x):\n        return g(x) + 1\n"
    "    return inner\n@plus\ndef h(x): return 2 * x\n@plus\ndef f(x): return h(x)\n",
    "a cache": "from functools import lru_cache\n@lru_cache(maxsize=None)\n"
    "def f(x): return x if x < 2 else f(x - 1) + f(x - 2)",
    "a cache around it": "import functools\ndef g(x): return x + 1\nh = functools.lru_cache(g)\n"
    "def f(x): return h(x)",
    "a partial": "from functools import partial\ndef g(k, x): return k * x\nh = partial(g, 4)\n"
    "def f(x): return h(x)",
    "a class": "class A:\n    k = 3\n    def go(self, x): return x * self.k\n"
    "def f(x): return A().go(x)",
    "a class with a base": "class A:\n    k = 3\nclass B(A):\n    pass\ndef f(x): return x * B.k",
    "a dataclass": "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass P:\n"
    "    x: float\n    y: float = 2.0\nQ = P(3.0)\ndef f(x): return x + Q.x + Q.y",
    "an enumeration": "from enum import Enum\nclass C(Enum):\n    RED = 1\nT = [C.RED]\n"
    "def f(x): return x + T[0].value",
    "a named tuple": "from collections import namedtuple\n"
    "P = namedtuple('P', 'x y', defaults=[5])\n"
    "Q = P(1)\ndef f(x): return x + Q.y",
    "annotations": "import numpy as np\nfrom typing import Any\n"
    "def f(x: np.ndarray, *more: Any) -> float: return x + 1",
    "annotations that nobody has": "V = list[float]\nclass Client: pass\nc = Client()\n"
    "def f(x: V) -> 'Nobody': return x + 1",
    "an f-string": "NAME = 'a'\ndef f(x): return f'{NAME}-{x!r:>4}'",
    "a comprehension": "ks = [1, 2]\ndef f(x): return [k * x for k in ks if (lambda: k)()]",
    "an imported instance": "import numpy as np\nfrom scipy.stats import norm\n"
    "def f(x): return float(norm.cdf(x))",
    "a text with lines": 'def outer():\n    def f(x):\n        return """a\n  b""" + str(x)\n'
    "    return f\nf = outer()",
    "a pattern": "import re\nP = re.compile('a+', re.I)\ndef f(x): return bool(P.match('AA')) + x",
    "a date": "import datetime\nD = datetime.date(2026, 1, 2)\ndef f(x): return D.year + x",
}


@pytest.mark.parametrize("kind", CAPTURED)
def test_a_captured_function_does_the_same_elsewhere(kind: str) -> None:
    f = cell(CAPTURED[kind])["f"]
    captured = capture(f)
    elsewhere: dict[str, object] = {"__name__": "elsewhere"}
    exec(compile(captured.text, "<captured>", "exec", dont_inherit=True), elsewhere)
    for x in (1, 3):
        assert elsewhere[captured.name](x) == f(x)


REFUSED = {
    "an open client": (
        "class Client: pass\nclient = Client()\ndef f(x): return client.ask(x)",
        "'f' uses 'client', a Client, which cannot be kept as text",
    ),
    "a client two steps away": (
        "import threading\nlock = threading.Lock()\ndef g(x):\n    with lock: return x\n"
        "def f(x): return g(x)",
        "'g' uses 'lock'",
    ),
    "what is too large": (
        "data = list(range(500_000))\ndef f(x): return data[x]",
        r"'f' uses 'data', a list, which cannot be kept as text \([\d,]+ characters as text",
    ),
    "a data frame": (
        "import pandas as pd\ndata = pd.DataFrame({'a': [1]})\ndef f(x): return data.a.sum()",
        "'f' uses 'data', a DataFrame",
    ),
    "a random generator": (
        "import numpy as np\nrng = np.random.default_rng(0)\ndef f(x): return rng.random()",
        "'f' uses 'rng', a Generator",
    ),
    "a key in a global": (
        "API_KEY = 'sk-aaaaaaaaaaaaaaaaaaaaaaaa'\ndef f(x): return API_KEY",
        "'API_KEY' seems to hold a key",
    ),
    "a key in the text": (
        "def f(x):\n    key = 'sk-aaaaaaaaaaaaaaaaaaaaaaaa'\n    return key",
        "'f' seems to hold a key",
    ),
    "a global that it changes": (
        "n = 0\ndef f(x):\n    global n\n    n += 1\n    return n",
        "'f' changes 'n'",
    ),
    "a variable around it that it changes": (
        "def outer():\n    n = 0\n    def f(x):\n        nonlocal n\n        n += 1\n"
        "        return n\n    return f\nf = outer()",
        "'f' changes 'n'",
    ),
    "a name that is gone": ("def g(x): return x\ndef f(x): return g(x)\ndel g", "'f' uses 'g'"),
    "a method": ("class A:\n    def go(self, x): return x\nf = A().go", "'go' is a method"),
    "an object with __call__": (
        "class A:\n    def __call__(self, x): return x\nf = A()",
        "'A' is an object that can be called",
    ),
    "no function": ("f = 3", "expected a function or class, got 3"),
    "a list that holds itself": (
        "T = []\nT.append(T)\ndef f(x): return T",
        "something that contains itself",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_has_no_text_is_refused_by_name(kind: str) -> None:
    text, words = REFUSED[kind]
    with pytest.raises(NotCaptured, match=words):
        capture(cell(text)["f"])


def test_a_function_whose_source_is_gone_is_refused() -> None:
    names: dict[str, object] = {}
    exec("def f(x): return x", names)
    with pytest.raises(NotCaptured, match=r"'f' cannot be had: .* in a file, .* exec"):
        capture(names["f"])


def test_a_function_whose_file_was_edited_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "mine_edited.py"
    path.write_text("def f(x):\n    return x + 1\n")
    import mine_edited

    capture(mine_edited.f)
    path.write_text("def f(x):\n    return x + 22222\n")
    with pytest.raises(NotCaptured, match="was changed after it was defined"):
        capture(mine_edited.f)


def test_functions_of_a_file_beside_the_notebook_are_captured_and_its_module_is_not(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine_beside.py").write_text("K = 3\ndef f(x):\n    return x + K\n")
    import mine_beside

    f = cell("from mine_beside import f as g\ndef f(x): return g(x)")["f"]
    elsewhere: dict[str, object] = {}
    exec(capture(f).text, elsewhere)
    assert elsewhere["f"](1) == 4 == mine_beside.f(1)
    with pytest.raises(NotCaptured, match="from mine_beside import"):
        capture(cell("import mine_beside\ndef f(x): return mine_beside.f(x)")["f"])


def test_two_things_of_one_name_are_an_error(tmp_path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine_twice.py").write_text("K = 3\ndef g(x):\n    return x + K\n")
    names = cell("from mine_twice import g\nK = 4\ndef f(x): return g(x) + K")
    with pytest.raises(NotCaptured, match="'K', and something else"):
        capture(names["f"])


def test_a_cell_that_was_run_again_gives_the_newer_class() -> None:
    cell("class Again:\n    k: int = 1\n")
    names = cell("class Again:\n    k: int = 2\ndef f(x): return Again.k")
    elsewhere: dict[str, object] = {}
    exec(capture(names["f"]).text, elsewhere)
    assert elsewhere["f"](0) == 2


def test_several_functions_share_one_module() -> None:
    names = cell("K = 2\ndef cheap(x): return x + K\ndef thorough(x): return cheap(x) * K")
    captured = capture(names["cheap"], names["thorough"], lambda x: x)
    assert captured.names == ("cheap", "thorough", "function")
    assert captured.text.count("def cheap") == 1
    assert captured.uses == ("constant K",)


def test_the_text_is_readable() -> None:
    names = cell(
        "import numpy as np\nCAPACITY = 100\n\n"
        "def fits(sizes):\n    # the comment stays\n    return sum(sizes) <= CAPACITY\n\n"
        "def score(bins):\n    return np.mean([fits(each) for each in bins])\n"
    )
    assert (
        capture(names["score"]).text
        == inspect.cleandoc(
            """
        import numpy as np

        CAPACITY = 100


        def fits(sizes):
            # the comment stays
            return sum(sizes) <= CAPACITY


        def score(bins):
            return np.mean([fits(each) for each in bins])
        """
        )
        + "\n"
    )


def test_text_is_the_same_each_time() -> None:
    names = cell("A = {'x', 'y', 'z'}\nB = 2\nimport math\ndef f(x): return math.pi + B + len(A)")
    assert capture(names["f"]).text == capture(names["f"]).text


def test_a_function_alone_has_a_source_whatever_it_uses() -> None:
    names = cell("client = object()\ndef f(x):\n    return client\n")
    assert own_source(names["f"]) == "def f(x):\n    return client\n"
    assert own_source(functools.lru_cache(names["f"])) == own_source(names["f"])
    with pytest.raises(NotCaptured):
        own_source(np.sqrt)


def test_a_function_with_some_arguments_given_beforehand_is_captured_with_them():
    names = cell("""
        import functools
        def weighed(weight, x, power=1): return weight * x ** power
        f = functools.partial(weighed, 3, power=2)
    """)
    captured = capture(names["f"])
    made = {}
    exec(captured.text, made)
    assert captured.name == "partial_weighed"
    assert made[captured.name](2) == names["f"](2) == 12


def timed(body: str, *, kept: bool = True) -> dict[str, object]:
    """Runs the body of a cell that begins with %%time, as IPython does."""
    sys.modules["__main__"] = ModuleType("__main__")
    names = vars(sys.modules["__main__"])
    older = body.replace("- 10", "- 11")
    names["In"] = [f"get_ipython().run_cell_magic('time', '', {text!r})" for text in (older, body)]
    names["In"] += ["x = 1", "get_ipython().run_cell_magic('bash', '', 'ls /')"]
    exec(compile(body, "<timed exec>", "exec", dont_inherit=True), names)
    if not kept:
        names["In"].clear()
    return names


def test_what_a_cell_with_a_magic_defines_is_found_in_the_history():
    body = "S = 2\ndef f(x):\n    g = lambda: x - 10\n    return S * g()\n"
    body += "class C:\n    def h(self):\n        return f(3)\n"
    names = timed(body)
    assert "x - 10" in capture(names["f"]).text
    assert "class C" in capture(names["C"]).text
    other = "def f(x): return x - 9\n"
    exec(compile(other, "<timed exec>", "exec"), names)
    with pytest.raises(NotCaptured, match="beside a magic such as %%time"):
        capture(names["f"])
    with pytest.raises(NotCaptured, match="beside a magic such as %%time"):
        capture(timed(body, kept=False)["f"])
