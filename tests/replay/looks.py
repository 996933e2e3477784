"""What is seen of a figure's texts: their boxes, and how they stand out from what is under them."""

import itertools

import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.text import Text


def luminance(colour):
    """Relative luminance of a colour (WCAG 2)."""
    channels = np.array(to_rgb(colour))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def contrast(a, b):
    low, high = sorted([luminance(a), luminance(b)])
    return (high + 0.05) / (low + 0.05)


def texts(ax):
    """Every text of axes that is seen, after a layout."""
    found = [*ax.texts, ax.title, ax._left_title, ax.xaxis.label, ax.yaxis.label]
    if ax.get_legend():
        found += ax.get_legend().get_texts()
    if ax.axison:
        for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
            low, high = sorted(limits)
            found += [t.label1 for t in axis.get_major_ticks() if low <= t.get_loc() <= high]
            found.append(axis.get_offset_text())
    return [text for text in found if text.get_text() and text.get_visible()]


def whole(figure):
    """Texts of a figure that belong to no axes."""
    found = [figure._suptitle, figure._supxlabel, *figure.texts]
    found += [text for legend in figure.legends for text in legend.get_texts()]
    return [text for text in dict.fromkeys(found) if text and text.get_text()]


def complaints(figure):
    """Texts that overlap another, are cropped, or stand out by less than 4.5 to 1, in words."""
    figure.draw_without_rendering()
    found = []
    seen = [(ax, text) for ax in figure.axes if ax.get_visible() for text in texts(ax)]
    seen += [(figure.axes[0], text) for text in whole(figure)]
    boxes = [(text.get_text(), Text.get_window_extent(text)) for _, text in seen]
    for (a, one), (b, other) in itertools.combinations(boxes, 2):
        if one.padded(-1).overlaps(other.padded(-1)):
            found.append(f"{a!r} overlaps {b!r}")
    inside = figure.bbox.padded(1)
    for text, box in boxes:
        if box.x0 < inside.x0 or box.x1 > inside.x1 or box.y0 < inside.y0 or box.y1 > inside.y1:
            found.append(f"{text!r} is cropped")
    for (ax, text), (_, box) in zip(seen, boxes, strict=True):
        ground = under(ax, text, box, figure.get_facecolor())
        if contrast(text.get_color(), ground) < 4.5:
            found.append(f"{text.get_text()!r}: {text.get_color()} on {ground}")
    return found


def under(ax, text, box, ground):
    """The colour of the cell that a text is written on, else of the figure."""
    if text not in ax.texts:
        return ground
    middle = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    place = ax.transData.inverted().transform(middle)
    faces = [
        patch.get_facecolor()
        for patch in ax.patches
        if patch.get_fill() and patch.get_visible() and patch.contains_point(middle)
    ]
    faces += [
        face
        for cells in ax.collections
        if isinstance(cells, PatchCollection)
        for path, face in zip(cells.get_paths(), itertools.cycle(cells.get_facecolors()))
        if path.contains_point(place)
    ]
    if faces:
        face = to_rgba(faces[0])
        return tuple(face[3] * c + (1 - face[3]) * g for c, g in zip(face, ground, strict=True))
    return ground
