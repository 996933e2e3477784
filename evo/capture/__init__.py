"""From a function of a notebook to the text of a module that holds it and all that it uses.

    captured = capture(score)   # .text, a module that runs; .name, the function in it; .uses

`sources` finds the text of a function or class, `names` what that looks up outside itself,
`constants` the text of values, and `module` puts them in an order that runs.
"""

from evo.capture.module import Captured as Captured
from evo.capture.module import capture as capture
from evo.capture.sources import NotCaptured as NotCaptured
from evo.capture.sources import own_source as own_source
