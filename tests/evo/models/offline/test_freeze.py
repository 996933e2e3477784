"""The offline model is frozen: logs name its version, so another answer is another version.

    python tests/evo/models/offline/test_freeze.py

prints the table of a new version.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from offline_requests import PARENTS, SEARCH_REPLACE, TAGGED, TASKS, TEXT, TOY, descend, showing

from evo.models.critics import Triple, critic_messages
from evo.models.offline.bank import BANKS, WORDS
from evo.models.offline.endpoint import respond
from evo.models.offline.failures import RATES
from evo.prompt import ShownProgram, build_messages
from evo.tasks.instances import read_instances
from evo.tasks.task import load_task

SEEDS = range(10)
PROBLEM = [{"role": "user", "content": "Problem: Eve has 3 boxes of 8 figs and eats 5. And now?"}]
ASKED = [{"role": "system", "content": "Step by step. Use units. Answer: <number>"}, *PROBLEM]
MARKED = f"import os\n# EVOLVE-BLOCK-START\n{TOY}# EVOLVE-BLOCK-END\n"
WP = load_task("wp").record
PROBLEMS = [each["prompt"] for each in read_instances(WP)]
PROBLEMS += [
    "Problem: A rope is 2.5 km long. How long is it in metres?",
    "Problem: A pump moves 40 litres per minute for 2 hours. How much is that?",
    "Problem: Tom has 1,200 coins, loses 150 and finds 20. How many are left?",
]
WRONG = "What went wrong lately:\n- instance a: score 0, expected 67, got six seven\n"
FORMATTED = 'def show(x):\n    """Shows."""\n    return f"{x + 1:.3f} of {2.5 * x}"\n'


@functools.cache
def rewritten(task: str, generations: int) -> str:
    return descend(PARENTS[task], generations, temperature=1.0)[-1]


def requests() -> dict[str, Mapping[str, Any]]:
    """Requests by name, each sent with every seed of SEEDS."""
    rows: dict[str, Mapping[str, Any]] = {}
    for task in TASKS:
        for name, temperature in (("cold", 0.0), ("usual", 0.6), ("hot", 2.0)):
            fields = {"messages": showing(PARENTS[task]), "temperature": temperature}
            rows[f"{task}, {name}"] = fields
        for generations in (5, 20, 50):
            parent = rewritten(task, generations)
            rows[f"{task}, after {generations} rewrites"] = {"messages": showing(parent)}
    rows |= {
        "endless": {"messages": showing(PARENTS["cp"]), "temperature": 2.0, "seed": 812},
        "without a seed": {"messages": showing(PARENTS["mmd"]), "seed": None},
        "of another task": {"messages": showing(TOY)},
        "with an f-string": {"messages": showing(FORMATTED)},
        "not Python": {"messages": showing(PARENTS["cp"].replace("):", "", 1))},
        "marked block": {"messages": showing(MARKED)},
        "search and replace": {"messages": showing(PARENTS["cp"], system=SEARCH_REPLACE)},
        "search and replace, cut": {
            "messages": showing(PARENTS["cp"], system=SEARCH_REPLACE),
            "seed": 23,
        },
        "tagged": {"messages": showing(PARENTS["ht"], system=TAGGED)},
        "tagged difference": {"messages": showing(TOY, system=SEARCH_REPLACE + TAGGED)},
        "text": {"messages": showing(TEXT, language="text")},
        "hot text": {"messages": showing(TEXT, language="text"), "temperature": 2.0},
        "problem": {"messages": PROBLEM},
        "problem, asked well": {"messages": ASKED},
        "nothing to do": {"messages": [{"role": "user", "content": "hello"}]},
        "cut": {"messages": showing(PARENTS["mmd"]), "max_tokens": 25},
        "stream": {"messages": showing(PARENTS["mmd"]), "stream": True},
        "too long": {"messages": [{"role": "user", "content": "x" * 140_000}]},
        "refused": {"messages": [], "seed": 1},
        "another model": {"messages": PROBLEM, "model": "gpt-4"},
    }
    return rows | {f"2: {name}": {"model": "offline-2"} | row for name, row in of_second().items()}


def of_second() -> dict[str, Mapping[str, Any]]:
    """Requests that version 2 answers otherwise than version 1."""
    current = {
        "role": "user",
        "content": f"Current program:\n{showing(PARENTS['ht'])[0]['content']}",
    }
    partner = f"Another program, to mix in (fitness 0.5):\n```python\n{rewritten('ht', 20)}```\n"
    both = [{"role": "user", "content": partner + current["content"]}]
    told = [{"role": "user", "content": f"{current['content']}\n{WRONG}"}]
    other = ShownProgram(
        (1, 0), 0.1, "Check the result before you answer. Read the question twice."
    )
    wrong = "You solve problems. Give the answer in words."
    rust = 'fn main() {\n    let total: u32 = (1..10).sum();\n    println!("{}", total);\n}\n'
    in_words = {"role": "system", "content": wrong}
    rows: dict[str, Any] = {
        "program": showing(PARENTS["cp"]),
        "mixed programs": both,
        "program with feedback": told,
        "text among others": build_messages(WP, TEXT, 0.5, inspirations=[other]),
        "mixed texts": build_messages(WP, TEXT, 0.5, mixed=[other]),
        "text with feedback": build_messages(WP, wrong, 0.0, feedback=WRONG),
        "another language": showing(rust, language="rust"),
    }
    for k, problem in enumerate(PROBLEMS):
        asked = {"role": "user", "content": problem}
        rows[f"problem {k}"] = [in_words, asked] if k % 3 == 0 else [ASKED[0], asked]
        rows[f"critic {k}"] = critic_messages("Right?", Triple("s", problem, f"It is {k}."))
    for name, program in (("sound", PARENTS["cp"]), ("broken", "def f(:")):
        query = showing(PARENTS["cp"])[0]["content"]
        triple = Triple("", query, f"```python\n{program}```")
        rows[f"critic of a {name} program"] = critic_messages("Is it sound?", triple)
    return {name: {"messages": messages} for name, messages in rows.items()}


def digest(fields: Mapping[str, Any]) -> str:
    found = hashlib.sha256()
    for seed in SEEDS:
        body = msgspec.json.encode({"model": "offline", "seed": seed} | fields)
        found.update(respond("POST", "/v1/chat/completions", body).content)
    return found.hexdigest()


def digests() -> dict[str, str]:
    """SHA-256 of the answers to each request, and of what the model draws from."""
    sources = {
        "initial programs": PARENTS,  # of the requests, not of the model
        "ideas": BANKS,
        "failures": RATES,
        "words": WORDS,
    }
    made = {name: digest(fields) for name, fields in requests().items()}
    for kind in ("2: problem ", "2: critic "):  # one row for all
        many = "".join(made.pop(name) for name in list(made) if name.startswith(kind))
        made[f"{kind.strip()}s"] = hashlib.sha256(many.encode()).hexdigest()
    return made | {
        name: hashlib.sha256(repr(source).encode()).hexdigest() for name, source in sources.items()
    }


FROZEN = {
    "cp, cold": "dbffbde1825f6b665a0aa9b3e94aa5fae134e50e990fa40645f32cf69249062e",
    "cp, usual": "60e6a54b32f400b39dfb6d3b9a7872270fef840728f9c80eb7b18fcce560b65b",
    "cp, hot": "572f64592a43fa43e169610adf4474b3a3c1b0529dcb82152cef1e10e074012b",
    "cp, after 5 rewrites": "3099413f93f016a934feb2a837d9a11078c91f7c7a97b00298c6c627bda47439",
    "cp, after 20 rewrites": "e50126d2693548b50c309584cb2c77f25c43cf30f127b26793fb858df2cea01a",
    "cp, after 50 rewrites": "30a94d2af641f97eadec62d25839eb8d75497ab464695445e0ac7004896ddcd6",
    "mmd, cold": "e933c8d92a72af1c1979bed874a11b1b64bd656136092c2fefaa4bcac0f0db7a",
    "mmd, usual": "2a0572851ef9f38b20c521b38f0959808fddb71175310eb7358cd84f14d8d8cf",
    "mmd, hot": "ddf3ec9971945f5645901da4418a76e171c77054834ef452f74d236fd0cee452",
    "mmd, after 5 rewrites": "92440bb4c8838028aab40601e7de3b04fb5e7771a408a0769d26decb08f1b138",
    "mmd, after 20 rewrites": "daa01902e987e5eadd523c0cba0f04926739f48e3383fc78fad474a89170c5f2",
    "mmd, after 50 rewrites": "196054694b7c97b301b890b66c6772d66fca3074937b2b49501fa9c040512af5",
    "ht, cold": "9e56c45f39e412c8c5701e8f2e370f7e23d90c34ea0fc2cfae9c4126033e954c",
    "ht, usual": "7ac04deb466336b5157dd8e34ce50408ba555cc9f6c45a7be3a4bb7e45a02112",
    "ht, hot": "1904a1b593e7fa2448c27c0979e50e7c8302bfd3d8fc9526102586fd1d867a08",
    "ht, after 5 rewrites": "bede2dee068b255d0d89e13b496c834dde6ace745e65c4955320c495fdcbc4f8",
    "ht, after 20 rewrites": "a75a4f5441c830345038475f477ed994897a4adf16e47bed8b3988228cfc3d93",
    "ht, after 50 rewrites": "845babcc864a14ab7ee468f595521f47f598949a55350638313eb1fd276f132b",
    "endless": "12f46ea4ac1356d739c641a28cb8ddfefaa968cd1b5dc21220a8f69c6b3d44cf",
    "without a seed": "442c520ebe21fafbc805d9b744662ebf53bc3f35e7e566c5e70b70673fa19b89",
    "of another task": "91245592b5b8ca9ac529052662a50a7b294d9adbe5df70dee62f0340fc20daf7",
    "with an f-string": "beecadada647fddb7a86101de921991c39dc06a417a0601119a090a1b6817904",
    "not Python": "85ffed0750d876622b43844c35709247c0aad55b74993ba25a5545d61b5dfecf",
    "marked block": "1c3911234e73d235fe50f7bce2d31359a089c4a4b58b8d9ad2511d92b73fe10b",
    "search and replace": "cce7ac35dea7dc15a6c2987917d307da506fef39d9867b5c9fef019872245b15",
    "search and replace, cut": "62ff7be62bb752645470e301cb4a36d821073c7e18416f4ba4f2f816ed97876d",
    "tagged": "7e6e472b09d4db98a401da41f072782a064819f21024057f3f5c75cc073ae6fb",
    "tagged difference": "36f28d04d2f9d7aef917444f3ad55d485942821bca9656faf717f20e6ffc32a8",
    "text": "05e576682764457799aeba8241a3caca0f9451fead6284e17f0c76a730cac678",
    "hot text": "34e301339aa3b3787e0262a004ffff6a8930ba44bebf61835b0749a5162ff669",
    "problem": "b8c060fc2108f90c811b7bc0597825079d4977b4b51c9c6e01d43d7a2d8bfddf",
    "problem, asked well": "393a116cdbacb033b88b56a9d81e113753c7af61c7c9e32cf2c207eae438ef3e",
    "nothing to do": "797c5989de8904d6862abf81ce4c37ab3147eb794a25442591a41aa2d328b552",
    "cut": "1a84d673736c0ffd4217a54b80390f6c24cc3cd8bb892ac747f04a5dae8f9761",
    "stream": "87742826c7e61425eefb1c00eac5b973108e43a5bb20b8ad7af1585999ca85d8",
    "too long": "900a37e0b779aaa4d8c385da7a9299151cf878c93db591741da5bc3c56929b8a",
    "refused": "fdfca81591de4505cd57d9b93e86e4cec92d20032520cba24e4c4459d634c035",
    "another model": "407e93f545e271fd6a97a0d848916bd5a083cffeb3a430e64c3b8eb1beec7f4d",
    "2: program": "7d75e96d59825adc11140a0691e73ddd015a38f42d3a8fed1fadad82d10873a6",
    "2: mixed programs": "a5a1acbdefb6f4e8a3d95d9e26b30c7380b8f8abcf470f4f070a4e2b6ea65a32",
    "2: program with feedback": "77926e9805ab4311974bcc06a9ec965258b570b24fb19c50a9ed9574a872ab69",
    "2: text among others": "fa01148371dd48a6cea29057f47782e67675f212a6ae9cb429d87571a2f81e45",
    "2: mixed texts": "e3906aa0ed0320c63d8f91f2467953238a19d4dfa77a82d48f18b2847982b591",
    "2: text with feedback": "6ef3fbb7a0e53cf332fcffa1f6edf6553b5ae6524e5b5938ff49726bc03d1ae6",
    "2: another language": "4cf15997af0bd873e7c9cb2122d81e959f1622874fdfe0ab156a7deb5159b0ef",
    "2: problems": "68f925477ff2008aa9c22f89e36ff1811ac763fefdf380d7681aaba02fe4b3ff",
    "2: critics": "7cfdc9387736b361420a516f953d102eeec3fa79af0d9afd8223fc939e90eece",
    "initial programs": "cfdc59f88dcdf38584e3de542becdc1390e453fb9aea89c2cf4c7876af915fce",
    "ideas": "71781391a251a8640204b673a5cc78bbaf5dfc626e97698b1e5f365c01e69052",
    "failures": "dca00f6a7a8bfe87a558e0c79662baa573b55d63135fb49fd32b23da5c6fbeb8",
    "words": "53a338790dbeed0b7d1316c65200f3c68fac5cc3b60cfa76d095048a366c647e",
}
"""Versions 1 and 2."""


@pytest.fixture(scope="module")
def found() -> dict[str, str]:
    return digests()


@pytest.mark.parametrize("name", FROZEN)
def test_the_answers_of_a_version_never_change(name: str, found: dict[str, str]) -> None:
    assert found[name] == FROZEN[name], (
        f"the offline model answers differently ({name}): logs name its version, so undo the "
        "change or add a version and freeze it here"
    )


def test_every_request_is_in_the_table(found: dict[str, str]) -> None:
    assert found.keys() == FROZEN.keys()


if __name__ == "__main__":
    for name, value in digests().items():
        print(f'    "{name}": "{value}",')
