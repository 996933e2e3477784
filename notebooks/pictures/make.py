"""Runs the notebooks that are named, keeps what they show, and takes pictures out.

python notebooks/pictures/make.py 01_depth_breadth    # what its cells show, in it
python notebooks/pictures/make.py                     # the pictures beside them alone

Beside them are the picture with which each notebook opens, one of its own, and the README's film.

Kept are pictures with their words, tables, cards of logs, sentences that were made from the data
(`replay.say`), and what cells print, without the places of temporary files.

The documentation shows a picture for dark pages, too. It was drawn in the same run, is in the
folder `dark`, and is named after the bytes of the one for light pages, so that it belongs to no
other.
"""

import base64
import hashlib
import io
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
from nbclient import NotebookClient
from PIL import Image

import replay
from replay.plots.output import small_png

HERE = Path(__file__).resolve().parent
OPENING = json.loads((HERE / "opening.json").read_text())
"""By notebook: the id of the cell that draws the picture with which it opens."""

FILMED = HERE.parents[1] / "logs/corpus/islands/circle_packing-offline-N4-s40.jsonl.gz"

OVER = """
import time
from replay.explorers.live_view import LiveView

def under_way(view):
    with view._lock:  # in which it stores its last frame
        return not view._is_over()

while any(isinstance(each, LiveView) and under_way(each) for each in [*Out.values()]):
    time.sleep(0.5)
"""
"""Waits until the runs that cells follow have ended, and their last frames are stored."""

STILLS_IN_DARK = """
import base64
from replay.explorers.explorer import Explorer
from replay.plots.scripts import picture_of

explorers = {number: each for number, each in Out.items() if isinstance(each, Explorer)}
pictures = {number: picture_of(each.figure("dark")) for number, each in explorers.items()}
encoded = {str(number): base64.b64encode(each).decode() for number, each in pictures.items()}
display({"application/json": encoded}, raw=True)
"""
"""Draws what explorers show for dark pages, by the number of the cell that ran."""

DARK = HERE / "dark"

MOST_LINES = 40  # of printed text
IN_DARK = re.compile(r'data-dark="data:image/png;base64,([^"]+)"')
STILL = re.compile(r'data-replay-still="[^"]*"><img [^>]*src="data:image/png;base64,([^"]+)"')
TABLE = re.compile(r'<table border="1" class="dataframe">.*</table>', re.DOTALL)


def main() -> None:
    """Runs each notebook once."""
    for name in sys.argv[1:]:
        path = HERE.parent / f"{name}.ipynb"
        notebook = nbformat.read(path, as_version=4)
        resources = {"metadata": {"path": str(HERE.parent)}}
        notebook.cells.append(nbformat.v4.new_code_cell(OVER + STILLS_IN_DARK))
        NotebookClient(notebook, timeout=600, resources=resources).execute()
        stills = notebook.cells.pop().outputs[-1].data["application/json"]
        path.write_text(json.dumps(kept(notebook, stills), indent=1, ensure_ascii=False) + "\n")
    for name, wanted in OPENING.items():
        picture = HERE / "opening" / f"{name}.png"
        picture.write_bytes(drawn(nbformat.read(HERE.parent / f"{name}.ipynb", 4), wanted))
    replay.film(FILMED).save(HERE / "film.gif")
    for left_over in {*DARK.glob("*.png")} - {twin_of(png) for png in stored_pictures()}:
        left_over.unlink()


def twin_of(png: bytes) -> Path:
    """Where the dark twin of a picture is."""
    return DARK / f"{hashlib.sha256(png).hexdigest()[:12]}.png"


def stored_pictures() -> Iterator[bytes]:
    """The pictures of all notebooks."""
    for path in HERE.parent.glob("*.ipynb"):
        for cell in nbformat.read(path, 4).cells:
            yield from pictures_of(cell)


def pictures_of(cell: Any) -> list[bytes]:
    """The pictures that a cell shows."""
    pngs = (each.get("data", {}).get("image/png") for each in cell.get("outputs", ()))
    return [base64.b64decode(png) for png in pngs if png]


def drawn(notebook: Any, wanted: str) -> bytes:
    """The first picture that a cell of the notebook shows."""
    [cell] = [each for each in notebook.cells if each.id == wanted]
    return pictures_of(cell)[0]


def kept(notebook: Any, stills: dict[str, str]) -> Any:
    """The notebook with its pictures, small, its tables, cards, sentences and printed lines.

    Dark twins of its pictures are written to files; `stills` has those of explorers.
    """
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type != "code":
            continue
        found = []
        for output in joined(cell.outputs):
            if shown := kept_of(output):
                found.append(shown)
                keep_dark(shown, dark_of(output, stills.get(str(cell.execution_count))))
        cell.execution_count, cell.outputs = None, found
        cell.metadata.pop("shows", None)
        if found:
            cell.metadata["shows"] = hashlib.sha256(cell.source.encode()).hexdigest()[:12]
    return notebook


def joined(outputs: list[Any]) -> list[Any]:
    """The outputs, with printed lines that follow each other in one."""
    found: list[Any] = []
    for each in outputs:
        if found and each.get("name", "") == found[-1].get("name") == "stdout":
            found[-1].text += each.text
        else:
            found.append(each)
    return found


def kept_of(output: Any) -> Any:
    """What is kept of one output; None: nothing."""
    data, about = dict(output.get("data", {})), output.get("metadata", {})
    page, words = data.get("text/html", ""), data.get("text/plain", "")
    still, table = STILL.search(page), TABLE.search(page)
    if png := still[1] if still else data.get("image/png"):
        words = "figure" if tempfile.gettempdir() in words else words
        size = about.get("image/png", {})
        return display(
            {"image/png": at_screen_size(png)}, words, {"image/png": size | {"alt": words}}
        )
    if "text/markdown" in data:
        return display({"text/markdown": data["text/markdown"]}, data["text/markdown"])
    if table:
        return display({"text/html": table[0]}, "table")
    if "<svg" in page and "<script" not in page:
        return display({"text/html": page}, "card")
    if output.output_type == "stream" and output.name == "stdout":
        words = output.text
    elif set(data) != {"text/plain"}:
        return None
    words = re.sub(rf"{re.escape(tempfile.gettempdir())}/[^/\s'\"]+/?", "", words)
    return display({}, cut(words)) if words.strip() else None


def dark_of(output: Any, still: str | None) -> str | None:
    """The picture of an output for dark pages; `still` is that of the explorer of its cell."""
    page = output.get("data", {}).get("text/html", "")
    if STILL.search(page):
        return still
    found = IN_DARK.search(page)
    return found and found[1]


def keep_dark(shown: Any, dark: str | None) -> None:
    """Writes the dark twin of a picture that is kept to its file."""
    if dark:
        DARK.mkdir(exist_ok=True)
        light = base64.b64decode(shown.data["image/png"])
        twin_of(light).write_bytes(base64.b64decode(at_screen_size(dark)))


def display(data: dict[str, str], words: str, about: dict[str, Any] | None = None) -> Any:
    """An output with these contents, and words for where there is only text."""
    return nbformat.v4.new_output(
        "display_data", {**data, "text/plain": words}, metadata=about or {}
    )


def cut(text: str) -> str:
    """The first lines of a text, and how many follow."""
    lines = text.rstrip().splitlines()
    more = len(lines) - MOST_LINES
    return "\n".join(lines[:MOST_LINES]) + (f"\n... and {more} more lines" if more > 0 else "")


def at_screen_size(png: str, *, width: int = 1400) -> str:
    """The same picture, at most so wide and with few colours."""
    image = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    image.thumbnail((width, 4 * width))
    return base64.b64encode(small_png(np.asarray(image))).decode("ascii")


if __name__ == "__main__":
    main()
