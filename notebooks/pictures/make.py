"""Runs the notebooks that are named, keeps what they show, and takes the README's pictures out.

python notebooks/pictures/make.py 01_depth_breadth    # what its cells show, in it
python notebooks/pictures/make.py                     # the README's pictures alone

Kept are pictures, tables, and sentences that were made from the data (`replay.say`).
"""

import base64
import hashlib
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image

HERE = Path(__file__).resolve().parent
WANTED = json.loads((HERE / "wanted.json").read_text())
"""By name of the picture: the notebook and the id of the cell that draws it."""

SENTENCES, TABLES = "text/markdown", "text/html"
STILL = re.compile(r'data-replay-still="[^"]*"><img [^>]*src="data:image/png;base64,([^"]+)"')
TABLE = re.compile(r'<table border="1" class="dataframe">.*</table>', re.DOTALL)


def main() -> None:
    """Runs each notebook once."""
    for name in sys.argv[1:]:
        path = HERE.parent / f"{name}.ipynb"
        notebook = nbformat.read(path, as_version=4)
        resources = {"metadata": {"path": str(HERE.parent)}}
        NotebookClient(notebook, timeout=600, resources=resources).execute()
        path.write_text(json.dumps(kept(notebook), indent=1, ensure_ascii=False) + "\n")
    for picture, (place, wanted) in WANTED.items():
        for cell in nbformat.read(HERE.parent / place, as_version=4).cells:
            if cell.id == wanted and (pngs := pictures(cell)):
                (HERE / picture).write_bytes(base64.b64decode(pngs[0]))


def shown(cell: Any, kind: str) -> list[str]:
    """What a cell has shown of a kind: PNGs in base64, texts."""
    every = (each.get("data", {}) for each in cell.get("outputs", ()))
    return [data[kind] for data in every if kind in data]


def pictures(cell: Any) -> list[str]:
    """The figures that a cell has shown, and the still picture of an explorer."""
    stills = (STILL.search(text) for text in shown(cell, TABLES))
    return [*shown(cell, "image/png"), *(still[1] for still in stills if still)]


def tables(cell: Any) -> list[str]:
    """The tables of pandas that a cell has shown, without their styles."""
    found = (TABLE.search(text) for text in shown(cell, TABLES))
    return [match[0] for match in found if match]


def kept(notebook: Any) -> Any:
    """The notebook with its pictures, small, its tables and sentences; nothing else shown."""
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type != "code":
            continue
        found: list[dict[str, Any]] = [
            {"image/png": at_screen_size(png), "text/plain": "figure"} for png in pictures(cell)
        ]
        found += [{"text/markdown": text, "text/plain": text} for text in shown(cell, SENTENCES)]
        found += [{"text/html": text, "text/plain": "table"} for text in tables(cell)]
        cell.execution_count, cell.outputs = None, []
        cell.metadata.pop("shows", None)
        for data in found:
            cell.outputs.append(nbformat.v4.new_output("display_data", data))
            cell.metadata["shows"] = hashlib.sha256(cell.source.encode()).hexdigest()[:12]
    return notebook


def at_screen_size(png: str, *, width: int = 1400) -> str:
    """The same picture, at most so wide and with few colours."""
    image = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    image.thumbnail((width, 4 * width))
    stream = io.BytesIO()
    image.quantize(128).save(stream, "PNG", optimize=True)
    return base64.b64encode(stream.getvalue()).decode("ascii")


if __name__ == "__main__":
    main()
