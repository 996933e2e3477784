"""Controls of explorers, of one size and each with a short help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def choice(label: str, options: Sequence[Any], value: Any, *, tip: str) -> Any:
    """A drop-down list."""
    import ipywidgets

    return ipywidgets.Dropdown(
        options=list(options), value=value, description=label, tooltip=tip, **control_style(200)
    )


def slider(label: str, options: Sequence[Any], value: Any, *, tip: str) -> Any:
    """A slider over listed values."""
    import ipywidgets

    return ipywidgets.SelectionSlider(
        options=list(options), value=value, description=label, tooltip=tip, **control_style()
    )


def control_style(width: int = 268) -> dict[str, Any]:
    """Width in pixels, 3 or 4 to a row of 810 pixels, and margins of a control."""
    return {
        "style": {"description_width": "initial"},
        "layout": {"width": f"{width}px", "margin": "2px 2px 2px 0"},
    }
