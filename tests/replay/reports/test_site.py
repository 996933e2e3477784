import base64
import json
import re
from pathlib import Path
from urllib.parse import unquote

import msgspec
import pytest
from odd_logs import odd_logs
from samples import sample_child, sample_header, sample_lines, write_lines, write_sample

import evo
import replay
from evo.logs.journal import LogError, encode_line
from evo.logs.log import read_log
from evo.logs.records import Child, Evaluation, Generation, Initial
from replay.cli.entry import main
from replay.explorers.run_data import name as name_of
from replay.plots.chart import pack
from replay.plots.constructions import construction

ROOT = Path(__file__).resolve().parents[3]

HOSTILE = "</script><img src=x onerror=document.title=1>\u202e"


def data_of(folder, number):
    text = (folder / "runs" / f"{number}.js").read_text()
    found = re.fullmatch(rf"replaySite\({number}, (.*)\);\n", text, re.DOTALL)
    return json.loads(found[1])


def test_a_page_says_of_each_run_what_its_log_says(tmp_path):
    paths = [write_sample(tmp_path / f"{stem}.jsonl", seed=k) for k, stem in enumerate("abc")]
    page = replay.site(paths, tmp_path / "site", title="Three runs")
    assert page == tmp_path / "site" / "index.html"
    text = page.read_text()
    assert "<h1>Three runs</h1>" in text
    links = re.findall(r'href="#run/(\w+)" data-run="(\d)"', text)
    assert links == [("a", "0"), ("b", "1"), ("c", "2")]
    for number, path in enumerate(paths):
        log, shown = read_log(path), data_of(tmp_path / "site", number)
        marks = [mark for panel in shown["chart"]["panels"] for mark in panel["marks"]]
        texts = [text for mark in marks for text in mark.get("texts", ())]
        for outcome in log.outcomes:
            [said] = [
                text
                for text in texts
                if text.startswith(f"{name_of((outcome.generation, outcome.index))}: ")
            ]
            fitness = outcome.evaluation.fitness
            assert (f", fitness {fitness:.6g}" if fitness is not None else "boom") in said
        improved = [each.best for each in log.generations if each.improved]
        assert [step["at"] for step in shown["steps"]] == [f"{g}-{i}" for g, i in improved]
        assert [tuple(shown["places"][k]) for k in shown["better"]] == improved
        assert all("data-sign='+'" in step["html"] for step in shown["steps"])


def test_links_to_runs_name_them_whatever_else_there_is(tmp_path):
    names = ("b", "a b/ü", "a")
    for count in (1, 2, 3):
        for name in names[:count]:
            path = tmp_path / "logs" / f"{name}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.exists() or write_sample(path)
        text = replay.site(tmp_path / "logs", tmp_path / "site").read_text()
        links = re.findall(r'data-key="([^"]*)"><a href="#run/([^"]*)" data-run="(\d)"', text)
        assert {name: unquote(link) for name, link, _ in links} == {n: n for n, _, _ in links}
        assert all("/" not in link and link.isascii() for _, link, _ in links)
        for name, _, number in links:
            assert data_of(tmp_path / "site", number)["name"] == name


def test_tokens_that_no_call_reported_are_not_counted_as_0(tmp_path):
    path = tmp_path / "a.jsonl"
    plan = {"generations": 1, "children": 1, "log": path, "progress": False}
    evo.run("mmd", model=lambda messages: "no program", **plan)
    text = replay.site(path, tmp_path / "site").read_text()
    assert "<div><b>none</b><span>tokens reported</span></div>" in text


@pytest.mark.parametrize("fitness", [None, 0.5])
def test_the_page_of_a_run_says_how_many_children_are_ok(tmp_path, fitness):
    children = [sample_child(1, k, fitness) for k in range(3)]
    first, *_ = sample_lines()
    initial = Initial(evaluation=Evaluation(status="ok", fitness=0.1))
    replay.site(write_lines(tmp_path / "a.jsonl", [first, initial, *children]), tmp_path / "site")
    facts = dict(data_of(tmp_path / "site", 0)["facts"])
    assert facts["children ok"] == ("0" if fitness is None else "3")


def test_a_page_holds_the_construction_of_the_best_program_of_a_run(tmp_path):
    path = next((ROOT / "logs" / "samples" / "searches").glob("*islands-s40*"))
    replay.site(path, tmp_path / "site")
    log, shown = read_log(path), data_of(tmp_path / "site", 0)["drawing"]
    [wanted] = json.loads(pack(construction(log.header.task.picture, log.best.value)))["panels"]
    assert shown["chart"]["panels"] == [{**wanted, "title": f"The best: {wanted['title']}"}]


def test_of_a_long_run_the_last_steps_are_shown(tmp_path):
    """Of 70 improving children the last 60; the marks in the picture are those of all."""
    children = [sample_child(g, 0, g / 100) for g in range(1, 71)]
    ends = [
        Generation(generation=g, best_fitness=g / 100, best=(g, 0), improved=True, seconds=1.0)
        for g in range(1, 71)
    ]
    first = Initial(evaluation=Evaluation(status="ok", fitness=0.0))
    both = [line for pair in zip(children, ends, strict=True) for line in pair]
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(map(encode_line, [sample_header(1), first, *both])))
    replay.site(path, tmp_path / "site")
    shown = data_of(tmp_path / "site", 0)
    assert [step["at"] for step in shown["steps"]] == [f"{g}-0" for g in range(11, 71)]
    assert all(step["gain"] == "+0.01" for step in shown["steps"])
    assert len(shown["better"]) == 70


def test_each_child_names_the_program_that_it_rewrote(tmp_path):
    path = next((ROOT / "logs" / "samples" / "searches").glob("*islands-s40*"))
    replay.site(path, tmp_path / "site")
    shown = data_of(tmp_path / "site", 0)
    asked = [o.parents[0] for o in read_log(path).outcomes]
    assert len({*asked}) > 2
    assert [tuple(shown["places"][number]) for number in shown["parents"][1:]] == asked


def test_hostile_text_of_a_log_stays_text(tmp_path):
    lines = [
        msgspec.structs.replace(line, program=f"{HOSTILE}\n{line.program}")
        if isinstance(line, Child)
        else line
        for line in sample_lines()
    ]
    header = msgspec.structs.replace(
        lines[0], model=msgspec.structs.replace(lines[0].model, name=HOSTILE)
    )
    (tmp_path / "a.jsonl").write_bytes(b"".join(map(encode_line, [header, *lines[1:]])))
    text = replay.site(tmp_path / "a.jsonl", tmp_path / "site").read_text()
    assert "<img src=x" not in text
    markup = [step["html"] for step in data_of(tmp_path / "site", 0)["steps"]]
    markup += [html for _, html in data_of(tmp_path / "site", 0)["programs"]]
    assert any("onerror" in html for html in markup)
    assert all("<img" not in html and "\u202e" not in html for html in markup)


@pytest.mark.filterwarnings("ignore:1 of 2 runs have no complete generation")
def test_odd_and_compact_logs_have_pages_and_damaged_ones_are_refused(tmp_path, capsys):
    *odd, damaged = odd_logs(tmp_path)
    replay.site(odd, tmp_path / "site")
    assert len(list((tmp_path / "site" / "runs").iterdir())) == len(odd)
    assert data_of(tmp_path / "site", 0)["places"] == []
    with pytest.raises(LogError, match="damaged"):
        replay.site([*odd, damaged], tmp_path / "site")
    assert main(["site", str(damaged), "-o", str(tmp_path / "other")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["site", str(odd[-1]), "-o", str(tmp_path / "other")]) == 0
    assert capsys.readouterr().out == f"page: {tmp_path / 'other' / 'index.html'}\n"
    (tmp_path / "file").write_text("")
    assert main(["site", str(odd[-1]), "-o", str(tmp_path / "file")]) == 2


def test_a_best_child_without_a_fitness_has_a_page(tmp_path):
    """As logs of other tools may state; the same log is reported and browsed."""
    lines = [
        msgspec.structs.replace(line, best=(line.generation, 0), improved=True)
        if isinstance(line, Generation)
        else line
        for line in sample_lines(generations=2)
        if not isinstance(line, Child) or line.index
    ]
    first = msgspec.structs.replace(lines[0], source="elsewhere")
    failed = [sample_child(generation, 0, None) for generation in (1, 2)]
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(map(encode_line, [first, *lines[1:3], *failed, *lines[3:]])))
    replay.site(path, tmp_path / "site")
    steps = data_of(tmp_path / "site", 0)["steps"]
    assert [step["head"][-17:] for step in steps] == ["without a fitness"] * 2
    assert main(["report", str(path), "-o", str(tmp_path / "report.png")]) == 0
    browser = replay.browse(path)
    assert "error" in browser.words
    browser.close()


def test_a_page_shows_the_studies_of_its_folder(tmp_path):
    evo.allocate_live(
        "mmd", "ucb1", arms=2, rounds=4, children=1, model="offline", progress=False,
        log_dir=tmp_path / "logs" / "race",
    )  # fmt: skip
    made = evo.select_best(
        [{"children": 1}, {"children": 2}], task="mmd", generations=1, seeds=[1, 2, 3],
        progress=False, log_dir=tmp_path / "logs" / "best",
    )  # fmt: skip
    text = replay.site([tmp_path / "logs", tmp_path / "logs" / "race"], tmp_path / "x").read_text()
    found = re.findall(r"<section class='study'><h2>(\w+ \w+)</h2>(.*?)</section>", text, re.DOTALL)
    assert [title for title, _ in found] == ["Selection best", "Allocation race"]  # each once
    assert "4 of 4 rounds by ucb1" in found[1][1]
    for logs in made.logs:
        mean = sum(log.best.fitness for log in logs) / len(logs)
        assert f"{mean:.6g} (n = {len(logs)})" in found[0][1]
    [packed] = re.findall(r'data-chart="([^"]+)"', found[0][1])
    [panel] = json.loads(base64.b64decode(packed))["panels"]
    means = {k: sum(each.best.fitness for each in logs) / 3 for k, logs in enumerate(made.logs, 1)}
    names = [f"children {k}" for k in sorted(means, key=lambda k: -means[k])]
    assert [text for _, text in panel["y"]["ticks"]] == names
    assert panel["marks"][0]["x"] == pytest.approx(sorted(means.values(), reverse=True))
    assert "too few runs for an interval; n = 3 runs" in panel["about"]
    assert f"{made.selector}, delta 0.05" in found[0][1]
    alone = replay.site(made.logs[0], tmp_path / "y").read_text()
    assert "class='study'" not in alone
