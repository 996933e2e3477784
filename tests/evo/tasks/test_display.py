"""A task in a cell of a notebook."""

from evo.tasks.functions import task


def test_a_task_shows_as_html_with_all_its_parts_escaped() -> None:
    made = task(
        "shown", initial_program="Answer <b>briefly</b>.", evaluate=lambda reply, row: 1.0,
        instances=[{"prompt": "a & b"}], statement="<script>",
    )  # fmt: skip
    html = made._repr_html_()
    assert "&lt;script&gt;" in html
    assert "<script>" not in html
    assert "a &amp; b" in html
    assert "Limits: seconds 60" in html
