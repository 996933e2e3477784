"""How figures leave the library: as files, and as what a notebook shows."""

import io

import numpy as np
import pytest
from PIL import Image, ImageColor

from replay.plots import style
from replay.plots.arranging import arrange
from replay.plots.medium import LIGHTER
from replay.plots.output import save, show, small_png


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_same_figure_gives_the_same_bytes(tmp_path, suffix):
    def drawn(name):
        _, (ax,) = style.subplots()
        ax.fill_between([0, 1], [0, 0], [1, 2])
        return save(ax, tmp_path / f"{name}{suffix}").read_bytes()

    first = drawn("first")
    assert len(first) > 1000
    assert drawn("second") == first


def test_an_unknown_suffix_is_refused(tmp_path):
    figure, _ = style.subplots()
    with pytest.raises(ValueError, match=r"ends in \.png, \.svg, \.pdf, got .*figure\.bmp"):
        save(figure, tmp_path / "figure.bmp")


def test_a_shown_figure_is_a_picture_with_its_titles_as_text():
    figure, axes = style.subplots(1, 2)
    for ax, title in zip(axes, ("Left", "Right"), strict=True):
        style.draw_heading(ax, "light", title, "a subtitle")
    found = show(axes)
    png, size = found._repr_png_()
    assert png.startswith(b"\x89PNG")
    assert size == {"width": 900}
    assert repr(found) == "Left; Right"
    assert repr(show(axes[1])) == repr(show(figure))


@pytest.mark.parametrize("dpi", [72, 144])
def test_what_is_shown_is_what_a_file_holds_and_the_layout_stays_open(tmp_path, dpi):
    def drawn():
        figure, axes = style.subplots(1, 2)
        for ax, title in zip(axes, ("Left", "Right"), strict=True):
            style.draw_heading(ax, "light", title, "a subtitle that is long enough to wrap " * 3)
            ax.set_ylabel("fitness")
        return figure

    figure, other = drawn(), drawn()
    engine, before = figure.get_layout_engine(), figure.dpi
    assert engine is not None
    shown = show(figure, dpi=dpi)
    assert figure.get_layout_engine() is engine
    assert figure.dpi == before
    other.dpi = dpi
    arrange(other)
    assert save(other, tmp_path / "picture.png", dpi=dpi).read_bytes() == shown.png


def test_a_static_figure_follows_the_theme_and_stays_as_it_was():
    figure, [ax] = style.subplots()
    style.prepare(ax, "light")
    style.draw_heading(ax, "light", "Title", "what is drawn")
    ax.plot([0, 1], [0, 1], color=style.PALETTE[0])
    ax.plot([0, 1], [1, 0], color="#800080")
    style.label_ends(ax, "light", [(0.5, "a name", style.PALETTE[0], "")])
    show(figure)
    found = show(figure)
    light, dark = (
        np.asarray(Image.open(io.BytesIO(each)).convert("RGB")).astype(int)
        for each in (found.png, found.dark)
    )
    assert light[0, 0].tolist() == [255, 255, 255]
    assert dark[0, 0].tolist() == [0x11, 0x14, 0x18]
    blue = (light == [0x00, 0x72, 0xB2]).all(axis=2)
    assert blue.sum() > 100
    assert (dark[blue] == ImageColor.getrgb(LIGHTER["#0072B2"])).all()  # its label's line, too
    assert not (dark == [0x00, 0x72, 0xB2]).all(axis=2).any()
    other = (light == [0x80, 0x00, 0x80]).all(axis=2)
    assert other.sum() > 100
    assert (dark[other] == light[other]).all()
    ink = (light == 0x22).all(axis=2)
    assert ink.sum() > 50
    assert (dark[ink] == 0xE6).all()
    assert show(figure).png == found.png
    assert "data-dark=" in found._repr_html_()
    assert show(style.prepare(None, "dark"))._repr_html_() is None


def pixels_of(png):
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


def test_a_small_picture_keeps_the_colours_of_its_ground_and_of_a_rare_line():
    shades = np.stack(np.broadcast_arrays(*np.ogrid[0:200, 0:200], 90), axis=-1).astype(np.uint8)
    picture = np.full((400, 400, 4), 255, np.uint8)
    picture[:200, :200, :3] = shades  # 40,000 colours
    for row, color in ((250, (0, 158, 115)), (300, (0, 114, 178)), (350, (213, 94, 0))):
        picture[row : row + 2, :, :3] = color
    found = pixels_of(small_png(picture))
    assert len(np.unique(found.reshape(-1, 3), axis=0)) <= 256
    np.testing.assert_array_equal(found[200:], picture[200:, :, :3])
    assert np.abs(found - picture[..., :3]).max() <= 32


def test_a_small_picture_of_few_colours_is_the_picture():
    picture = np.zeros((20, 20, 3), np.uint8)
    picture[5] = 255, 0, 0
    picture[9] = 0, 40, 0
    np.testing.assert_array_equal(pixels_of(small_png(picture)), picture)
