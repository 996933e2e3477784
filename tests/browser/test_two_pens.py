"""Every figure drawn by both pens: do they show the same? Read back from the SVG and the Axes.

Places are compared in shares of the plotting area, so that a pixel is a pixel of the browser's.
Ticks and the places of names may differ.
"""

import functools
import itertools
import json
import re
import tempfile
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from browser import lab
from matplotlib.colors import to_hex, to_rgba
from synthetic_runs import bilinear_runs, chain_runs, sweep_runs, tasks

import evo
import replay
from replay.explorers import explore_allocation
from replay.planning.bilinear import fit_bilinear
from replay.plots import charts
from replay.plots.chart import Chart, pack
from replay.plots.marks import Points, Rule, Shape
from replay.plots.medium import PALETTE
from replay.plots.panel import Axis, Panel
from replay.plots.scripts import chart_figure, charts_script
from replay.plots.strokes import ink_of
from replay.plots.style import THEMES
from replay.plots.ticks import even_ticks, tick_texts
from replay.statistics.numbers import number

pytestmark = pytest.mark.slow

LOGS = Path(__file__).resolve().parents[2] / "logs"
CONSTRUCTIONS = {
    "circles": (np.random.default_rng(0).random((9, 2)), np.linspace(0, 0.2, 9), 0.9),
    "points": np.random.default_rng(1).standard_normal((8, 2)).tolist(),
    "triangle": [[0.1 + 0.07 * k, 0.02 * k**1.5 / 3] for k in range(11)],
}


CUT = pd.DataFrame(
    [("a", 1, 0.5, -0.7, 0.8), ("a", 2, 0.6, 0.3, 1.9), ("b", 1, 0.4, -1.0, 2.0)],
    columns=["line", "x", "value", "low", "high"],
)
"""Estimates whose intervals end beyond what is possible."""
NAMED = {"title": "Estimates", "about": "n = 5"}


SHAPES = Panel(
    title="Shapes", x=Axis(domain=(0, 14), named=False), y=Axis(domain=(0.0, 2.0)),
    marks=[
        Rule(y=1.5, text="a level"),
        *(
            Points(x=[k + 1.0, 7.0], y=[1.0, 0.5], shape=shape, color=PALETTE[k % 6], size=4)
            for k, shape in enumerate(get_args(Shape))
        ),
    ],
)  # fmt: skip
"""Every shape of points, above an axis whose values are written elsewhere."""


def run_now() -> dict[str, Chart]:
    """Figures of an allocation and of forks, which are made for them."""
    how: dict[str, Any] = {"children": 2, "progress": False}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = evo.allocate_live("mmd", "ucb1", arms=3, rounds=8, log_dir=folder / "arms", **how)
        log = evo.run("mmd", generations=2, log=folder / "run.jsonl", **how)
        forks = evo.fork(
            log, at=1, copies=6, generations=4, log_dir=folder / "forks", progress=False
        )
        frame = replay.load(*forks, progress=False)
        return {"pulls": charts.pulls(made), "worth": charts.worth(frame)}


@functools.cache
def every() -> dict[str, Chart]:
    """Every public figure by name; of shipped logs where they have what it needs."""
    frame = replay.load(LOGS / "corpus" / "local-tsp", progress=False)
    frame = frame[frame["children"] == frame["children"].iloc[0]]
    runs, sweep = bilinear_runs(budget=64), sweep_runs()
    grid, fit = replay.depth_breadth(runs), fit_bilinear(runs)
    pilot, children = chain_runs(sizes=(1, 2, 4, 8), budget=8)
    plan = replay.plan(pilot, children=children, budget=16, tau=0.5, kernels=3, arms=(2,))
    contest = replay.compete(frame, ["ucb1", "thompson"], rounds=16, replicates=50)
    logs = {name: next((LOGS / "samples" / "searches").glob(f"*{name}-s40*"))
            for name in ("greedy", "islands")}  # fmt: skip
    explorer = explore_allocation(frame)
    allocation = explorer._spec.chart_of(explorer._view)
    explorer.close()
    return {
        "best so far": charts.best_so_far(frame),
        "trajectories: strips": charts.trajectories(runs, x="calls", references={"known": 0.5}),
        "policy curves": charts.policy_curves(contest.curves),
        "pulls per arm": charts.pulls_per_arm(contest.pulls),
        "threshold times": charts.threshold_times(contest.times),
        "pool vs allocation": charts.pool_vs_allocation(contest.effects),
        "gains": charts.gains(replay.diagnose(frame).ways),
        "heatmap": charts.heatmap(grid),
        "heatmap: fit": charts.heatmap(grid, fit=fit),
        "slices": charts.slices(grid),
        "value of knowing": charts.value_of_knowing(grid),
        "regime probabilities": charts.regime_probabilities(fit),
        "envelope curves": charts.envelope_curves(replay.envelope(runs)),
        "odds": charts.odds(replay.fit_kernel(children), draws=3),
        "planner card": charts.planner_card(plan),
        "main effects": charts.main_effects(sweep),
        "depth breadth slice": charts.depth_breadth_slice(sweep),
        "parallel coordinates": charts.parallel_coordinates(sweep),
        "cost and fitness": charts.cost_and_fitness(sweep),
        "race": charts.race(replay.select(sweep)),
        "comparison": charts.comparison(replay.compare(tasks(1.0), by="search")),
        "verdict": charts.verdict(replay.judge(frame, "ucb1", "single", margin=0.01)),
        "verdicts": charts.verdicts(replay.ledger({"runs": frame}, policies=["ucb1"])),
        "timeline": charts.timeline(evo.read_log(logs["greedy"])),
        **run_now(),
        **{f"tree: {name}": charts.tree(evo.read_log(path)) for name, path in logs.items()},
        **{
            f"construction: {name}": charts.construction(name, value)
            for name, value in CONSTRUCTIONS.items()
        },
        "allocation explorer": allocation,
        "shapes": Chart(panels=[SHAPES]),
        "estimates: cut": charts.estimates(CUT, rows="line", possible=(0, 1), **NAMED, x="fitness"),
        "lines: cut upright": charts.lines(
            CUT, by="line", limits="bars", possible=(0, 1), **NAMED, x="calls", y="fitness"
        ),
    }


NAMES = [
    "best so far", "trajectories: strips", "policy curves", "pulls per arm", "threshold times",
    "pool vs allocation", "gains", "heatmap", "heatmap: fit", "slices", "value of knowing",
    "regime probabilities", "envelope curves", "odds", "planner card", "main effects",
    "depth breadth slice", "parallel coordinates", "cost and fitness", "race", "comparison",
    "verdict", "verdicts", "timeline", "pulls", "worth", "tree: greedy", "tree: islands",
    "construction: circles", "construction: points", "construction: triangle",
    "allocation explorer", "shapes", "estimates: cut", "lines: cut upright",
]  # fmt: skip

READ = """(figure) => {
  const {plans} = figure.querySelector('.replay-view').view.shown();
  return plans.map((plan) => {
    const {panel, picture, x, y, left, right, top, bottom} = plan;
    const at = (px, py) => [(px - left) / (right - left), (bottom - py) / (bottom - top)];
    const read = (node) => {
      const of = (name) => parseFloat(node.getAttribute(name));
      const look = getComputedStyle(node);
      const color = look.stroke !== 'none' ? look.stroke : look.fill;
      let places = [];
      if (['circle', 'ellipse'].includes(node.localName)) places = [at(of('cx'), of('cy'))];
      else if (node.localName === 'line') {
        places = [at(of('x1'), of('y1')), at(of('x2'), of('y2'))];
      } else if (['rect', 'image'].includes(node.localName)) {
        places = [at(of('x'), of('y')), at(of('x') + of('width'), of('y') + of('height'))];
      } else if (node.localName === 'path') {
        let px = 0, py = 0;
        const steps = node.getAttribute('d').matchAll(/([MLHVCZhlmv])([^MLHVCZhlmv]*)/gi);
        for (const [, letter, rest] of steps) {
          const n = (rest.match(/-?[\\d.]+(?:e-?\\d+)?/g) || []).map(Number);
          if (letter === 'M' || letter === 'L' || letter === 'C') [px, py] = n.slice(-2);
          else if (letter === 'H') px = n[0];
          else if (letter === 'V') py = n[0];
          else continue;
          places.push(at(px, py));
        }
      }
      return {kind: node.localName, color, places};
    };
    const marks = [...picture.querySelectorAll('[data-mark]')].map((group) => ({
      number: +group.dataset.mark,
      parts: [...group.children].filter((each) => each.localName !== 'text').map(read),
      words: [...group.querySelectorAll('text')].map((each) => each.textContent),
    }));
    const texts = [...picture.querySelectorAll('text')].map((each) => each.textContent);
    return {
      domain: [panel.x.domain, panel.y.domain], size: [right - left, bottom - top],
      title: picture.parentElement.querySelector('b').textContent, marks, texts,
      back: [[x.back(left), x.back(right)], [y.back(bottom), y.back(top)]],
    };
  });
}"""


@pytest.fixture(scope="module")
def page(chromium: str):
    with lab.browser(width=1000, height=900) as (page, errors):
        yield page
        assert errors == []


@pytest.fixture(scope="module")
def shown(page, tmp_path_factory: pytest.TempPathFactory):
    """What the browser drew of each figure, by name."""
    page_file = tmp_path_factory.mktemp("pens") / "page.html"
    parts = [chart_figure(pack(chart), name) for name, chart in every().items()]
    style = "<meta charset='utf-8'><body style='color:#222222;background:#ffffff'>"
    page_file.write_text(f"{style}{''.join(parts)}{charts_script()}", encoding="utf-8")
    page.goto(page_file.as_uri())
    page.wait_for_selector(".replay-view svg")
    figures = page.query_selector_all("figure")
    return dict(zip(every(), [figure.evaluate(READ) for figure in figures], strict=True))


def artists_of(ax) -> dict[int, list]:
    """What matplotlib drew of each mark, by its number."""
    found: dict[int, list] = {}
    for artist in ax.get_children():
        if named := re.fullmatch(r"mark-(\d+)", artist.get_gid() or ""):
            found.setdefault(int(named[1]), []).append(artist)
    return found


def places_of(ax, artist) -> np.ndarray:
    """Where an artist lies, in shares of the axes."""
    share = ax.transAxes.inverted()
    kind = type(artist).__name__
    if kind == "Line2D":
        path = artist.get_path()
        points = path.vertices
        if len(points) == 2 and artist.get_transform() != ax.transData:  # across the axes
            return share.transform(artist.get_transform().transform(points))
        if artist.get_drawstyle() == "steps-post":
            points = np.column_stack(
                [np.repeat(points[:, 0], 2)[1:], np.repeat(points[:, 1], 2)[:-1]]
            )
    elif kind == "PathCollection" and len(artist.get_offsets()) and artist.get_sizes().size:
        points = np.ma.filled(artist.get_offsets(), np.nan)
    elif kind == "AxesImage":
        x0, x1, y0, y1 = artist.get_extent()
        points = np.array([(x0, y0), (x1, y1)])
    elif kind == "Polygon":
        points = artist.get_xy()
    else:
        paths = [each.vertices for each in artist.get_paths()]
        points = np.concatenate(paths) if paths else np.empty((0, 2))
    with np.errstate(all="ignore"):
        placed = share.transform(ax.transData.transform(points))
    return placed[np.isfinite(placed).all(axis=1)]


def box(places) -> np.ndarray:
    """The corners of what lies inside the axes."""
    inside = np.clip(np.asarray(places, dtype=float).reshape(-1, 2), 0, 1)
    return np.array([inside.min(axis=0), inside.max(axis=0)])


def colours_of(artist) -> set[str]:
    """Its colours, without their opacity."""
    found = []
    for part in ("color", "edgecolor", "facecolor"):
        get = getattr(artist, f"get_{part}", None)
        if get is not None:
            colours = np.atleast_2d(np.array(get(), dtype=object))
            found += [get()] if isinstance(get(), str) else [tuple(each) for each in colours]
    rgb = [to_rgba(each) for each in found if len(each)]
    return {to_hex(each[:3]) for each in rgb if each[3] > 0}


def browser_colour(text: str) -> str | None:
    """A colour of the browser as hex; None for what is mixed from the ink of the page."""
    numbers = re.match(r"rgba?\(([\d., ]+)\)", text)
    if numbers is None:
        return None
    return to_hex([float(each) / 255 for each in numbers[1].split(",")[:3]])


def test_every_public_figure_is_among_those_that_are_compared() -> None:
    compared = {name.partition(":")[0].replace(" ", "_") for name in NAMES}
    assert compared >= {*charts.__all__}


@pytest.mark.parametrize("name", NAMES)
def test_both_pens_show_the_same(shown, name: str) -> None:
    chart = every()[name]
    assert set(every()) == set(NAMES)
    figure = chart.figure()
    figure.draw_without_rendering()
    axes = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
    assert len(axes) == len(shown[name]) == len(chart.panels)
    for ax, drawn, panel in zip(axes, shown[name], chart.panels, strict=True):
        x, y = (axis.domain for axis in (panel.settled().x, panel.settled().y))
        assert " ".join(ax.get_title(loc="left").split()) == drawn["title"]
        assert drawn["domain"] == [list(x), list(y)]
        if not panel.equal:
            assert ax.get_xlim() == pytest.approx(x)
            assert ax.get_ylim() == pytest.approx(y)
            np.testing.assert_allclose(drawn["back"], [x, y], rtol=1e-9, atol=1e-9)
            assert ax.get_xlabel() == panel.x.label
            assert {panel.x.label, panel.y.label} - {""} <= set(drawn["texts"])
        pixel = 1 / np.array(drawn["size"])
        artists = artists_of(ax)
        for mark in drawn["marks"]:
            compare(ax, artists.get(mark["number"], []), mark, pixel, panel)


def test_colours_are_those_of_the_ground_that_they_lie_on(page, tmp_path: Path) -> None:
    """Both pens have lighter ones on a dark page, and paper has those of a light one."""
    marks = [Points(x=[1.0], y=[1.0], color=color, size=4) for color in PALETTE]
    panel = Panel(title="Colours", marks=marks, x=Axis(domain=(0, 2)), y=Axis(domain=(0, 2)))
    path = Chart(panels=[panel]).save(tmp_path / "chart.html", theme="neutral")

    def seen() -> list[str | None]:
        found = page.eval_on_selector_all(
            "[data-mark] > *", "all => all.map((each) => getComputedStyle(each).fill)"
        )
        return [browser_colour(each) for each in found]

    page.goto(path.as_uri())
    page.wait_for_selector(".replay-view svg")
    light, dark = ([ink_of(each, theme).lower() for each in PALETTE] for theme in ("light", "dark"))
    for scheme, colours in (("light", light), ("dark", dark), ("light", light), ("dark", dark)):
        page.emulate_media(color_scheme=scheme)
        lab.rest(page)
        assert seen() == colours
    page.emulate_media(media="print")
    assert seen() == light
    page.emulate_media(media="screen", color_scheme="light")


def test_an_interval_that_goes_on_has_an_arrow_with_its_tip_at_the_frame(shown) -> None:
    [panel] = shown["estimates: cut"]
    paths = [part for mark in panel["marks"] for part in mark["parts"] if part["kind"] == "path"]
    tips = sorted(x for part in paths for x, _ in part["places"][:1])
    assert [x for x in tips if not 0.01 < x < 0.99] == pytest.approx([0, 0, 1, 1])


def compare(ax, artists, mark, pixel, panel) -> None:
    """One mark: where it lies, to a pixel, and its colours."""
    kind = panel.marks[mark["number"]].kind
    made = panel.marks[mark["number"]]
    if kind in ("label", "end"):
        if kind == "label":
            assert mark["words"] == [made.text]
        return
    invisible = kind == "bars" and made.opacity == 0
    here = [place for part in mark["parts"] for place in part["places"]]
    there = [places_of(ax, artist) for artist in artists if hasattr(artist, "get_gid")
             and type(artist).__name__ != "Annotation"]  # fmt: skip
    there = [each for each in there if len(each)]
    assert bool(here) == bool(there) or invisible, (kind, made)
    if not there or invisible:
        return
    if not panel.equal:
        slack = 1.01 + (0 if kind not in ("points", "cells") else 9)  # the size of a dot
        near = np.abs(box(here) - box(np.concatenate(there)))
        assert (near <= slack * pixel).all(), (kind, near / pixel)
        every_place(kind, here, there, pixel)
    own = {browser_colour(part["color"]) for part in mark["parts"]} - {None}
    drawn = set().union(*(colours_of(artist) for artist in artists))
    faint = {THEMES["light"].faint.lower(), THEMES["light"].text.lower()}
    if kind != "cells":
        assert own <= drawn | faint, (kind, own, drawn)


def every_place(kind: str, here, there, pixel) -> None:
    """Of points and of lines every place that one pen shows, the other shows too."""
    if kind not in ("points", "line", "polylines"):
        return
    other = np.concatenate(there)
    for place in itertools.islice((p for p in here if np.isfinite(p).all()), 0, None, 3):
        away = np.abs(other - np.array(place)) / pixel
        assert away.max(axis=1).min() <= 6.0 if kind == "points" else True
        if kind != "points":
            assert (away[:, 0]).min() <= 1.01
            assert (away[:, 1]).min() <= 1.01


def test_ticks_have_one_rule(page) -> None:
    """The texts at the ticks of 2,000 axes of every size are the same in both pens."""
    rng = np.random.default_rng(0)
    axes = [[0.0, 5e3, 1e4], [8e8, 1e9], [1.0, 1e3, 1e6], [1e-6, 1e-3, 1.0], [-0.1, 1e-17, 0.1]]
    for power in rng.uniform(-20, 15, 2_000):
        low = rng.uniform(-1, 1) * 10.0**power
        ticks = even_ticks(low, low + rng.uniform(1e-3, 1) * 10.0**power, int(rng.integers(2, 8)))
        axes.append([value for value, _ in ticks])
    script = re.sub(r"export (default )?", "", charts_script())
    code = re.search(r"function tickTexts.*?\n}\n", script, re.DOTALL)
    assert code is not None
    found = page.evaluate(f"(all) => {{ {code[0]}; return all.map(tickTexts); }}", axes)
    assert found == [tick_texts(each) for each in axes]


def test_numbers_have_one_rule(page) -> None:
    """`number` and `ranged` of both pens agree on 10,000 values of every size."""
    rng = np.random.default_rng(0)
    values = rng.choice([-1, 1], 9_000) * 10.0 ** rng.uniform(-12, 18, 9_000)
    rounds = [float(f"{each:.{k}g}") for each in values[:400] for k in (1, 2)]
    halves = [k / 8 * 10.0**power for k in range(1, 100) for power in (-2, 0, 2)]
    values = [*values, *rounds, *halves, 0.0, 999.5, 99950.0, 999500.0, 1e9, 1720000000.0, 1.72e15]
    script = re.sub(r"export (default )?", "", charts_script())
    code = re.search(r"function rounded.*?(?=\nfunction linear)", script, re.DOTALL)
    assert code is not None
    ask = f"(all) => {{ {code[0]}; return all.map((v) => [short(v), digits(v, 4)]); }}"
    found = page.evaluate(ask, json.loads(json.dumps(values)))
    for value, (short, digits) in zip(values, found, strict=True):
        assert short == number(value)
        assert digits == f"{value:.4g}"
