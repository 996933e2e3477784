import io

from PIL import Image

from replay.explorers.paper import on_axes, png_of
from replay.plots import Chart


def test_where_nothing_can_be_drawn_the_figure_states_why():
    def refuse(ax):
        ax.set_xlabel("begun")
        raise ValueError("no run has a cost")

    [ax] = on_axes(refuse, 3.0, "light").axes
    assert [each.get_text() for each in ax.texts] == ["no run has a cost"]
    assert not ax.get_xlabel()


def test_a_png_tells_what_it_shows():
    figure = Chart(message="There is nothing.").figure("dark")
    image = Image.open(io.BytesIO(png_of(figure, {"Description": "nothing", "Source": "τ=1"})))
    assert image.text["Description"] == "nothing"
    assert image.text["Source"] == "τ=1"
    assert image.convert("RGB").getpixel((1, 1)) == (0x11, 0x14, 0x18)
