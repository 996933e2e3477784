"""Options of functions: what signatures, docstrings and help show of them."""

from __future__ import annotations

import inspect

from evo.runs.options import takes_options


def documented(**options):
    """Does something.

    Args:
        **options: See `Settings`.
    """


def test_a_docstring_lists_every_option_with_or_without_its_indentation():
    """Python 3.13 strips the indentation of docstrings, earlier ones keep it."""
    texts = []
    for text in (documented.__doc__, inspect.cleandoc(documented.__doc__)):

        def function(**options): ...

        function.__doc__ = text
        texts.append(inspect.getdoc(takes_options()(function)))
    assert texts[0] == texts[1]
    assert "    max_tokens: Completion tokens at most." in texts[1].splitlines()
