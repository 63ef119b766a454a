"""The cases in the Python package onnx: its checker with shape inference, and its reference evaluator.

    onnx_reference.py CASES
"""
import sys
import warnings

import onnx
from onnx.reference import ReferenceEvaluator

from cases import Host, read_all


def main(cases):
    warnings.simplefilter("ignore", RuntimeWarning)  # masks of exporters add up to −∞ and leave rows without a softmax
    checker, evaluator = Host(f"onnx {onnx.__version__} checker"), Host(f"onnx {onnx.__version__} reference")
    for case in read_all(cases):
        checker.passes(case, lambda case: check(case.patched), lambda case: check(case.original))
        evaluator.check(case, lambda case: (run(case, case.patched), None), run_original, lambda case: run(case, case.original))
    sys.exit(1 if checker.failed or evaluator.failed else 0)


def check(path):
    onnx.checker.check_model(onnx.load(path), full_check=True)


def run(case, path):
    model = ReferenceEvaluator(path)
    return [dict(zip(model.output_names, model.run(None, call["inputs"]))) for call in case.calls]


def run_original(case):
    """With the first call's inputs and an empty cache."""
    model, inputs = ReferenceEvaluator(case.original), case.calls[0]["inputs"]
    model.run(None, {name: inputs[name][:, :, :0] if inputs[name].ndim == 4 else inputs[name] for name in model.input_names})


if __name__ == "__main__":
    main(*sys.argv[1:])
