import json
from pathlib import Path

import msgspec
import pandas as pd

from evo.studies.protocol import load_protocol
from replay.cli.entry import main
from replay.reports.protocol import methods, write_findings

CORPUS = Path(__file__).resolve().parents[3] / "logs" / "corpus" / "local-tsp"


def test_each_claim_is_judged_on_the_runs_that_are_complete(tmp_path, capsys):
    target = tmp_path / "page.html"
    options = ["--protocol", "local-tsp", str(CORPUS), "-o", str(target)]
    assert main(["report", *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    protocol = load_protocol("local-tsp")
    stated = {cell["of"] for cell in found["cells"] if cell["table"] == "Claims"}
    assert stated == {claim.name for claim in protocol.claims}
    others = {cell["table"] for cell in found["cells"]} - {"Claims"}
    assert others
    assert all(title.startswith("Exploratory") for title in others)
    text = target.read_text()
    assert protocol.digest[:16] in text
    for claim in protocol.claims:
        assert claim.text.replace("'", "&#x27;") in text
    assert "of 24 runs; broad:" in text
    assert text.count("class='verdict") == len(protocol.claims)
    assert text.index("Exploratory") > text.rindex("class='verdict")


def test_a_protocol_of_which_nothing_was_made_says_so(tmp_path, capsys):
    write_findings("qwen3-8b-c512", tmp_path / "nothing", tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "No run has a complete generation yet" in text
    assert "0 of " in text
    assert "supported" not in text
    assert main(["report", "--protocol", "local-tsq"]) == 2
    assert "did you mean 'local-tsp'" in capsys.readouterr().err
    for wrong in (["-o", "page.png"], ["--tau", "0.9"], ["a", "b"]):
        assert main(["report", "--protocol", "local-tsp", *wrong]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert main(["report"]) == 2


def test_the_methods_paragraph_states_every_condition_and_measure():
    protocol = load_protocol("local-tsp")
    said = methods(protocol, pd.DataFrame({"kind": ["confirmatory"], "null": [""]}))
    for condition in protocol.conditions:
        assert f"{condition.name}: {len(condition.numbers)} runs of T = " in said
    assert all(f"{name}: {text}" in said for name, text in protocol.measures.items())
    assert f"{protocol.calls} calls" in said
    assert "pairs" not in said
    null = "the runs of each pair exchanged"
    table = pd.DataFrame({"kind": ["confirmatory"], "null": [null]})
    assert f"null {null}" in methods(protocol, table)
    settled = methods(msgspec.structs.replace(protocol, stop="settled"), table)
    assert "e-Holm" in settled
    assert "e-Holm" not in methods(protocol, table)


def test_a_margin_is_named_only_where_the_protocol_fixes_one():
    protocol = load_protocol("local-tsp")
    table = pd.DataFrame({"kind": ["confirmatory"], "null": ["none"]})
    claims = protocol.claims
    for margin, says in ((0.0, "fixes no margin"), (0.1, "Margins were fixed in the protocol")):
        stated = tuple(msgspec.structs.replace(claim, margin=margin) for claim in claims)
        said = methods(msgspec.structs.replace(protocol, claims=stated), table)
        assert says in said
        assert ("within margin" in said) == (margin > 0)
