"""Types of data whose shape is not ours: of JSON that was read, and of settings that were given.

Both are checked where they are used; what only passes them on takes `object`.
"""

from collections.abc import Mapping
from typing import Any

JsonObject = dict[str, Any]
"""An object out of JSON, TOML or YAML: its values are of any type that these have."""

Fields = Mapping[str, Any]
"""Values of fields by name, each of the type of its field."""
