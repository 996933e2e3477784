"""Makes the pictures of the README anew: runs the notebooks and keeps some of their figures.

python notebooks/pictures/make.py
"""

import base64
import json
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent
WANTED = json.loads((HERE / "wanted.json").read_text())
"""By name of the picture: the notebook and the id of the cell that draws it."""


def main() -> None:
    """Runs each notebook once and writes its pictures beside this file."""
    for name in sorted({notebook for notebook, _ in WANTED.values()}):
        notebook = nbformat.read(HERE.parent / name, as_version=4)
        resources = {"metadata": {"path": str(HERE.parent)}}
        NotebookClient(notebook, timeout=600, resources=resources).execute()
        cells = {cell.id: cell for cell in notebook.cells}
        for picture, (place, cell) in WANTED.items():
            if place == name:
                png = next(o.data["image/png"] for o in cells[cell].outputs if "data" in o)
                (HERE / picture).write_bytes(base64.b64decode(png))
                sys.stdout.write(f"{picture} from {name}, cell {cell}\n")


if __name__ == "__main__":
    main()
