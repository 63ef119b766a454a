"""The cases through Polygraphy's commands inspect model and run --onnxrt.

    polygraphy_cli.py CASES
"""
import os
import subprocess
import sys
import tempfile

import polygraphy
from polygraphy.comparator import RunResults
from polygraphy.json import save_json
from polygraphy.logger import G_LOGGER

from cases import Host, read_all

COMMAND = os.path.join(os.path.dirname(sys.executable), "polygraphy")


def main(cases):
    G_LOGGER.module_severity = G_LOGGER.ERROR
    inspect, runner = Host(f"polygraphy {polygraphy.__version__} inspect"), Host(f"polygraphy {polygraphy.__version__} run")
    for case in read_all(cases):
        inspect.passes(case, lambda case: look(case.patched), lambda case: look(case.original))
        runner.check(case, lambda case: (run(case), None), None)
    sys.exit(1 if inspect.failed or runner.failed else 0)


def look(path):
    text = command("inspect", "model", path, "--show", "layers", "attrs")
    if "RotaryAttention" not in text and path.endswith("model.onnx"):
        raise RuntimeError("its list of layers has no RotaryAttention")
    return next((line.strip() for line in text.splitlines() if "Opset" in line), "")


def run(case):
    with tempfile.TemporaryDirectory() as folder:
        inputs, outputs = os.path.join(folder, "inputs.json"), os.path.join(folder, "outputs.json")
        save_json([call["inputs"] for call in case.calls], inputs)
        command("run", case.patched, "--onnxrt", "--load-inputs", inputs, "--save-outputs", outputs)
        (_, iterations), = RunResults.load(outputs).items()
        return [dict(iteration.items()) for iteration in iterations]


def command(*words):
    done = subprocess.run([COMMAND, *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(" ".join((done.stderr or done.stdout).split())[-240:])
    return done.stdout


if __name__ == "__main__":
    main(*sys.argv[1:])
