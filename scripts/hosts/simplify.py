"""What onnxslim and onnxsim make of patched models, and what rope-rewrite makes of models that they simplified.

    simplify.py onnxslim|onnxsim CASES ROPE_REWRITE LIBRARY
"""
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version

import onnx

import ort
from cases import Host, OwnFault, compare, read_all

DOMAIN = "rope.rewrite"


def main(tool, cases, rewriter, library):
    after, before = Host(f"{tool} {version(tool)}"), Host(f"rope-rewrite after {tool} {version(tool)}")
    with tempfile.TemporaryDirectory() as folder:
        simple, patched = os.path.join(folder, "simple.onnx"), os.path.join(folder, "patched.onnx")

        def patched_simplified(case):
            simplify(tool, case.patched, simple)
            inputs = {f.name: f.input for f in onnx.load(case.patched).functions}
            kept = {f.name: f.input for f in onnx.load(simple).functions if f.domain == DOMAIN}
            if not kept:
                return ort.run(simple, case), "the op is inlined"
            with_library = ort.run(simple, case, library)
            if any(len(kept[name]) < len(inputs[name]) for name in kept) and compare(case, with_library)[0] <= case.limit:
                raise OwnFault("runs with the library only: inputs that a function does not read are taken out of it, and not out of its calls")
            return ort.run(simple, case), "the op is kept, also for the library"

        def simplified_patched(case):
            simplify(tool, case.original, simple)
            command(rewriter, simple, "-o", patched, "--force", *case.arguments)
            return ort.run(patched, case), None

        for case in read_all(cases):
            original = lambda case: simplify(tool, case.original, simple)
            after.check(case, patched_simplified, original)
            before.check(case, simplified_patched, original)
    sys.exit(1 if after.failed or before.failed else 0)


def simplify(tool, model, result):
    command(os.path.join(os.path.dirname(sys.executable), tool), model, result)


def command(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(" ".join((done.stderr or done.stdout).split())[-240:])


if __name__ == "__main__":
    main(*sys.argv[1:])
