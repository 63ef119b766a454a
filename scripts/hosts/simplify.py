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
from cases import Host, read_all

DOMAIN = "rope.rewrite"

# onnxslim takes inputs that a function does not read out of the function, but not out of its calls. What it
# writes then runs with the library only.
KNOWN = {"onnxslim": "Number of actual parameters cannot exceed number of formal parameters"}


def main(tool, cases, rewriter, library):
    after, before = Host(f"{tool} {version(tool)}", KNOWN.get(tool)), Host(f"rope-rewrite after {tool} {version(tool)}")
    with tempfile.TemporaryDirectory() as folder:
        simple, patched = os.path.join(folder, "simple.onnx"), os.path.join(folder, "patched.onnx")

        def patched_simplified(case):
            simplify(tool, case.patched, simple)
            if all(node.domain != DOMAIN for node in onnx.load(simple).graph.node):
                return ort.run(simple, case), "the op is inlined"
            ort.run(simple, case, library)
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
