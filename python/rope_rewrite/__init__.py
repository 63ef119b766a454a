"""Extends the context of language models that are exported to ONNX: rope-rewrite for Python.

    import onnxruntime, rope_rewrite

    rope_rewrite.rewrite("model.onnx", "long.onnx", scaling="yarn:factor=4")
    options = rope_rewrite.register(onnxruntime.SessionOptions())
    session = onnxruntime.InferenceSession("long.onnx", options)

`rewrite` runs the command rope-rewrite of this package and returns its report. `register` adds the fused op
to a session. A patched model also runs without the op, more slowly.
"""
from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, Union

__all__ = ["Error", "PartialError", "command", "library_path", "main", "register", "rewrite", "run"]

_HERE = Path(__file__).resolve().parent
_LIBRARIES = {"linux": "librope_ops.so", "darwin": "librope_ops.dylib", "win32": "rope_ops.dll"}
_RUNTIME = "ONNXRUNTIME_SHARED_LIBRARY_PATH"

PathLike = Union[str, "os.PathLike[str]"]
Specs = Union[str, Sequence[str]]


class Error(Exception):
    """The command failed. `code` is its exit code: 1 failed, 2 wrong usage, 4 no rotary attention."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class PartialError(Error):
    """Some attention layers could not be rewritten, so nothing was written. `report` says which, and why."""

    def __init__(self, message: str, report: dict[str, Any]) -> None:
        super().__init__(message, 3)
        self.report = report


class _Options(Protocol):
    def register_custom_ops_library(self, path: str) -> None: ...


_SessionOptions = TypeVar("_SessionOptions", bound=_Options)


def library_path() -> str:
    """Returns the path of the op library: the one that ROPE_OPS_LIBRARY names, else the one in this package or, where it
    was installed from a clone, beside the command."""
    named = os.environ.get("ROPE_OPS_LIBRARY")
    name = _LIBRARIES.get(sys.platform, "librope_ops.so")
    path = Path(named) if named else _HERE / name
    if not named and not path.is_file() and (found := _command()):
        path = Path(found).resolve().parent / name
    if not path.is_file():
        raise FileNotFoundError(f"the op library {path} does not exist" + ("; ROPE_OPS_LIBRARY names it" if named else ""))
    return str(path)


def register(options: _SessionOptions) -> _SessionOptions:
    """Registers the op library with onnxruntime.SessionOptions, and returns the same options."""
    options.register_custom_ops_library(library_path())
    return options


def command() -> str:
    """Returns the path of the command rope-rewrite: the one that ROPE_REWRITE names, else the one in this package or,
    where it was installed from a clone, the one on PATH."""
    found = _command()
    if found is None or not os.path.isfile(found):
        what = f"the command {found} does not exist; ROPE_REWRITE names it" if found else "the command rope-rewrite was not found"
        raise FileNotFoundError(what + ": run make build in the clone, and set ROPE_REWRITE to build/rope-rewrite or put build/ on PATH")
    return found


def _command() -> str | None:
    name = "rope-rewrite.exe" if sys.platform == "win32" else "rope-rewrite"
    if named := os.environ.get("ROPE_REWRITE"):
        return named
    if (own := _HERE / name).is_file():
        return str(own)
    for folder in os.get_exec_path():
        path = os.path.join(folder, name)
        if os.path.isfile(path) and not _calls_this(path):
            return path
    return None


def _calls_this(path: str) -> bool:
    """Whether a program is the one that pip made to call main: the command itself is no script, and is large."""
    with open(path, "rb") as f:
        return f.read(2) == b"#!" or os.path.getsize(path) < 1 << 20


def rewrite(
    model: PathLike,
    output: PathLike | None = None,
    *,
    scaling: Specs | None = None,
    positions: Specs | None = None,
    mask: Specs | None = None,
    documents: str | None = None,
    kv: str | None = None,
    logits: str | None = None,
    cache: Literal["rotated", "raw"] | None = None,
    precision: Literal["exact", "fast"] | None = None,
    angles: Literal["exact", "original"] | None = None,
    target: str | None = None,
    fallback: Literal["functions", "none"] | None = None,
    opset: int | None = None,
    rope_parameters: Mapping[str, Any] | None = None,
    context: int | str | None = None,
    layers: str | None = None,
    base: Literal["original", "carried"] | None = None,
    weights: Literal["copy", "link"] | None = None,
    recipe: PathLike | None = None,
    restore: bool = False,
    allow_partial: bool = False,
    dry_run: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Rewrites a model, or a folder of models, and returns the report of `rope-rewrite --json`.

    Each argument is the command's flag of the same name; scaling, positions and mask take one SPEC or several.
    Raises PartialError if an attention layer could not be verified, and Error for everything else that fails.
    """
    arguments = [os.fspath(model)]
    flags: dict[str, Any] = {
        "output": output, "scaling": scaling, "positions": positions, "mask": mask, "documents": documents, "kv": kv,
        "logits": logits, "cache": cache, "precision": precision, "angles": angles, "target": target, "fallback": fallback, "opset": opset,
        "rope-parameters": None if rope_parameters is None else json.dumps(dict(rope_parameters)), "context": context,
        "layers": layers, "base": base, "weights": weights, "recipe": recipe,
    }
    for name, value in flags.items():
        several = isinstance(value, Sequence) and not isinstance(value, str)
        for item in value if several else [value]:
            if item is not None:
                arguments += [f"--{name}", os.fspath(item) if isinstance(item, os.PathLike) else str(item)]
    switches = {"restore": restore, "allow-partial": allow_partial, "dry-run": dry_run, "force": force}
    arguments += [f"--{name}" for name, on in switches.items() if on]
    return run(*arguments)


def run(*arguments: str) -> dict[str, Any]:
    """Runs the command with --json, e.g. run("inspect", "model.onnx"), and returns the JSON that it prints."""
    done = subprocess.run([command(), "--json", *arguments], env=_environment(), stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8")
    message = " ".join(done.stderr.split()).removeprefix("rope-rewrite: ").replace(" Run rope-rewrite --help for usage.", "")
    if done.returncode == 3:
        raise PartialError(message or "not every attention layer could be rewritten", json.loads(done.stdout))
    if done.returncode != 0:
        raise Error(message or f"rope-rewrite ended with code {done.returncode}", done.returncode)
    result = json.loads(done.stdout)
    return result if isinstance(result, dict) else {"result": result}


def _environment() -> dict[str, str]:
    """Returns the environment, with the ONNX Runtime of this Python unless the environment names one."""
    environment = dict(os.environ)
    if _RUNTIME not in environment and (spec := importlib.util.find_spec("onnxruntime")) and spec.origin:
        pattern = {"darwin": "libonnxruntime.*.dylib", "win32": "onnxruntime.dll"}.get(sys.platform, "libonnxruntime.so*")
        if found := sorted((Path(spec.origin).parent / "capi").glob(pattern)):
            environment[_RUNTIME] = str(found[-1])
    return environment


def main() -> None:
    """Runs the command rope-rewrite with the arguments of this process."""
    try:
        command()
    except FileNotFoundError as e:
        sys.exit(f"rope-rewrite: {e}")
    if sys.platform == "win32":
        sys.exit(subprocess.run([command(), *sys.argv[1:]], env=_environment()).returncode)
    os.execve(command(), [command(), *sys.argv[1:]], _environment())
