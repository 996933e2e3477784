"""Where a captured name is imported from."""

import pathlib
from concurrent.futures import Future

from evo.capture.scope import place_of


def test_private_modules_of_the_standard_library_are_not_imported_since_other_pythons_lack_them():
    assert place_of(Future, "Future") == ("concurrent.futures", "Future")
    assert place_of(pathlib.PurePath, "PurePath") == ("pathlib", "PurePath")
