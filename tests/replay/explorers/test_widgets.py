"""Controls, the names of what a user explores, and what closes widgets."""

import types

from IPython.core import getipython

from replay import explorers


def test_the_code_names_the_variable_of_the_user(frame, explorer, monkeypatch):
    named = types.SimpleNamespace(user_ns={"_": frame, "mine": frame})
    monkeypatch.setattr(getipython, "get_ipython", lambda: named)
    assert explorer.code.startswith("replay.explorers.explore_allocation(mine, ")


class Shell:
    """As much of IPython as says which cell runs."""

    def __init__(self):
        self.parent = {}

    def get_parent(self):
        return self.parent

    def run(self, cell, number):
        header = {"msg_id": f"{cell}-{number}"}
        self.parent = {
            "msg_type": "execute_request", "header": header, "metadata": {"cellId": cell},
        }  # fmt: skip


def test_running_a_cell_again_closes_what_it_made_and_nothing_else(frame, monkeypatch):
    from ipywidgets.widgets.widget import _instances

    shell = Shell()
    monkeypatch.setattr(getipython, "get_ipython", lambda: shell)
    made = []
    counts = []
    for number in range(3):
        for cell in ("a", "b"):
            shell.run(cell, number)
            made.append(explorers.explore(frame))
        counts.append(len(_instances))
    assert counts[0] == counts[1] == counts[2]
    for each in made[-2:]:
        each.close()
